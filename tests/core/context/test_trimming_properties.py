"""What holds of every context, on random histories."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context import budget
from reactor_memory.core.context.blocks import block_text
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.turns import find_orphans
from tests.core.context.histories import (
    LEFT_OUT,
    MARK,
    budgets,
    count,
    count_text,
    logs,
    pinned,
    plain_histories,
    text,
    turns,
)
from tests.scenes.drafts import draft as draft_of

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # a turn of 200 messages is large

often = settings(deadline=None, suppress_health_check=list(HealthCheck))

lines = st.lists(
    st.builds(
        lambda size, value: BlockLine(text=f"- {text(size)}", tokens=count_text(f"\n- {text(size)}"), value=value),
        st.integers(1, 200),
        st.sampled_from([0.0, 1.0, 2.0]),
    ),
    max_size=12,
).map(tuple)


pins = st.lists(
    st.builds(
        lambda text, role, seq, fact: pinned(text, role=role, seq=seq, fact=fact),
        st.text(min_size=1, max_size=200),
        st.sampled_from(["user", "assistant", "agent", "system"]),
        st.integers(1, 20),
        st.sampled_from([None, ("anchor", "key")]),
    ),
    max_size=3,
).map(tuple)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    log = draw(logs())
    border = draw(st.integers(0, len(log)))
    covered = draw(st.integers(0, border))
    return draft_of(
        fact_lines=draw(lines),
        narrative=draw(lines),
        pins=draw(pins),
        window=log[border:],
        recalled_lines=draw(lines),
        unread=((covered + 1, border),) if covered < border else (),
        covered_seq=covered,
        freshness="fresh",
    )


@st.composite
def limits(draw: st.DrawFn) -> ContextLimits:
    return ContextLimits(
        budget=draw(budgets),
        overhead=draw(st.sampled_from([0, 4])),
        recent_message_count=draw(st.integers(0, 12)),
        memory_role=draw(st.sampled_from(["system", "user"])),
        on_overflow=draw(st.sampled_from(["raise", "drop_memory"])),
    )


def _assemble(draft: Draft, current: Sequence[Message], given: ContextLimits) -> Context:
    try:
        return assemble(draft, current, given, count=count, count_text=count_text)
    except BudgetExceededError as error:
        return assemble(draft, current, replace(given, budget=error.minimum), count=count, count_text=count_text)


def _tokens(messages: Sequence[Message], overhead: int) -> int:
    return sum(count(message) + overhead for message in messages)


def _is_present(message: Message, shown: Message) -> bool:
    texts = (shown.content, *(str(call.arguments) for call in shown.tool_calls))
    is_cut = MARK in shown.content or any(LEFT_OUT in text for text in texts)
    return shown == message or (shown.role == message.role and is_cut)


def _is_subsequence(shown: Sequence[Message], offered: Sequence[Message]) -> bool:
    rest = iter(offered)
    return all(any(_is_present(message, candidate) for message in rest) for candidate in shown)


@often
@given(draft=drafts(), current=turns(max_steps=3), given_limits=limits())
def test_a_context_keeps_every_promise(draft: Draft, current: list[Message], given_limits: ContextLimits) -> None:
    context = _assemble(draft, current, given_limits)
    report = context.report

    assert _tokens(context.messages, report.overhead) == report.total_tokens <= report.budget
    assert not find_orphans(context.messages, open_tail=True)
    assert verify(context, count=count) == []
    shown = [m for part, m in zip(report.parts, context.messages, strict=True) if part == "current"]
    assert _is_present(current[0], shown[0])
    assert _is_subsequence(shown, current)
    window = [m for part, m in zip(report.parts, context.messages, strict=True) if part == "window"]
    assert _is_subsequence(window, draft.window)


@often
@given(draft=drafts(), current=turns(max_steps=3), given_limits=limits())
def test_trimming_a_context_again_changes_nothing(
    draft: Draft, current: list[Message], given_limits: ContextLimits
) -> None:
    context = _assemble(draft, current, given_limits)
    again = trim(
        context.messages,
        context.report.budget,
        count=count,
        count_text=count_text,
        overhead=context.report.overhead,
    )
    assert again.messages == context.messages


@often
@given(messages=plain_histories(), budget=budgets, overhead=st.sampled_from([0, 4]))
def test_a_trimmed_history_keeps_every_promise(messages: list[Message], budget: int, overhead: int) -> None:
    def trimmed(given_messages: Sequence[Message], tokens: int) -> Context:
        return trim(given_messages, tokens, count=count, count_text=count_text, overhead=overhead)

    try:
        context = trimmed(messages, budget)
    except BudgetExceededError as error:
        budget = error.minimum
        context = trimmed(messages, budget)

    assert _tokens(context.messages, overhead) <= budget
    assert not find_orphans(context.messages, open_tail=True)
    assert _is_subsequence(context.messages, messages)
    assert verify(context, count=count) == []
    assert trimmed(context.messages, budget).messages == context.messages
    users = [message for message in messages if message.role == "user"]
    if users:
        assert any(_is_present(users[-1], message) for message in context.messages)


@often
@given(draft=drafts(), current=turns(max_steps=3), given_limits=limits())
def test_minimum_of_the_error_works_and_one_less_does_not(
    draft: Draft, current: list[Message], given_limits: ContextLimits
) -> None:
    with pytest.raises(BudgetExceededError) as raised:
        assemble(draft, current, replace(given_limits, budget=-1), count=count, count_text=count_text)
    minimum = raised.value.minimum

    context = assemble(draft, current, replace(given_limits, budget=minimum), count=count, count_text=count_text)
    assert verify(context, count=count) == []
    with pytest.raises(BudgetExceededError) as raised:
        assemble(draft, current, replace(given_limits, budget=minimum - 1), count=count, count_text=count_text)
    assert raised.value.minimum == minimum
    assert raised.value.budget == minimum - 1


@often
@given(draft=drafts(), current=turns(max_steps=3), given_limits=limits())
def test_nothing_is_given_up_before_its_turn(draft: Draft, current: list[Message], given_limits: ContextLimits) -> None:
    context = _assemble(draft, current, replace(given_limits, on_overflow="raise"))
    report = context.report
    dropped = {entry.part for entry in report.dropped if entry.reason in ("over_budget", "low_value")}
    shown = {part for part, tokens in report.tokens.items() if tokens}  # what costs nothing need not be given up
    if any(entry.part == "current" for entry in report.clamped):
        assert not {"facts", "narrative", "window", "recalled"} & shown
    if "facts" in dropped:
        assert "narrative" not in shown
    assert [message.content for message in context.part("pins")] == pinned_in(draft)


def pinned_in(draft: Draft) -> list[str]:
    return [message.content for verbatim in draft.verbatim for message in verbatim.messages]


@often
@given(draft=drafts(), current=turns(max_steps=3), given_limits=limits())
def test_every_pin_is_shown_verbatim_or_named_as_dropped(
    draft: Draft, current: list[Message], given_limits: ContextLimits
) -> None:
    context = _assemble(draft, current, given_limits)
    assert verify(context, count=count, verbatim={each.part: each.hashes for each in draft.verbatim}) == []
    shown = [message.content for message in context.part("pins")]
    dropped = sum(entry.count for entry in context.report.dropped if entry.part == "pins")
    assert shown == pinned_in(draft)[dropped:]
    assert not dropped or given_limits.on_overflow == "drop_memory"


@often
@given(draft=drafts(), traffic=turns(max_steps=3).map(lambda turn: turn[1:]), given_limits=limits())
def test_traffic_alone_continues_the_last_turn(
    draft: Draft, traffic: list[Message], given_limits: ContextLimits
) -> None:
    context = _assemble(draft, traffic, given_limits)
    assert not find_orphans(context.messages, open_tail=True)
    assert verify(context, count=count) == []
    current = [m for part, m in zip(context.report.parts, context.messages, strict=True) if part == "current"]
    users = [message for message in draft.window if message.role == "user"]
    if traffic and users:
        assert _is_present(users[-1], current[0])


@often
@given(draft=drafts(), given_limits=limits())
def test_an_unlimited_budget_gives_up_nothing_but_orphans(draft: Draft, given_limits: ContextLimits) -> None:
    current = [Message.user("and now?")]
    context = assemble(draft, current, replace(given_limits, budget=10**9), count=count, count_text=count_text)
    reasons = {entry.reason for entry in context.report.dropped}
    assert reasons <= {"orphan_result", "open_call", "open_reasoning"}
    assert not context.report.clamped


@often
@given(given_draft=drafts(), given=limits())
def test_what_fits_is_shown_as_if_it_had_been_weighed(given_draft: Draft, given: ContextLimits) -> None:
    """Blocks whose tokens were counted, beside a window that fits whole: nothing has to give way."""
    blocks = [
        replace(block, tokens=count_text(block_text(block.frame, [line.text for line in block.lines])) + given.overhead)
        for block in given_draft.blocks
        if block.frame.place != "last"
    ]
    counted = replace(given_draft, blocks=tuple(blocks))
    with pytest.MonkeyPatch.context() as weighing:
        weighing.setattr(budget, "_all_beside", lambda *_: None)
        weighed = _assemble(counted, (), given)
    shown = _assemble(counted, (), given)
    assert (shown.messages, shown.report) == (weighed.messages, weighed.report)
