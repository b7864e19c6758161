"""Where windows begin, when they move, and that nothing is lost between memory and window."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.selection import newest, window_start
from reactor_memory.core.context.strategy import Plan, PlanRequest, TakeLast
from reactor_memory.core.log.branches import root_branch
from reactor_memory.features.facts.hierarchical import Hierarchical
from reactor_memory.models import Message, Session, ToolCall
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.ledger import Fact, Summary, SummaryHead, facts_to_json
from reactor_memory.models.requests import ContextRows
from tests.scenes.drafts import lines_in
from tests.scenes.tables import each_row

SIZE = 10


def cost(message: Message) -> int:
    return message.token_count or 0


def message(role: str, seq: int, **fields: Any) -> Message:
    return Message(role=role, content=f"{role} {seq}", seq=seq, token_count=SIZE, **fields)  # type: ignore[arg-type]


def chat(count: int, *, start: int = 1) -> tuple[Message, ...]:
    return tuple(message("user" if seq % 2 else "assistant", seq) for seq in range(start, start + count))


def turns(lengths: list[int]) -> tuple[Message, ...]:
    """Turns of these many messages: a user message, then calls with their results, then an answer."""
    found: list[Message] = []
    for length in lengths:
        found.append(message("user", len(found) + 1))
        for _ in range((length - 2) // 2):
            call = ToolCall(id=f"c{len(found)}", name="look")
            found.append(message("assistant", len(found) + 1, tool_calls=(call,)))
            found.append(message("tool", len(found) + 1, tool_call_id=call.id))
        found.append(message("assistant", len(found) + 1))
    return tuple(found)


def summary_of(covered_seq: int, **fields: Any) -> Summary:
    facts = tuple(
        Fact(anchor=f"thing {seq}", key="name", value=f"value {seq}", source_seq=seq, verified=True)
        for seq in range(1, covered_seq + 1)
    )
    return Summary(facts_json=facts_to_json(facts), covered_seq=covered_seq, version=1, **fields)


def request(messages: tuple[Message, ...], summary: SummaryHead | None = None, **fields: Any) -> PlanRequest:
    limits = ContextLimits(**{"budget": 100_000, **fields.pop("limits", {})})
    session = Session(
        session_id="s",
        group_id="s",
        owner_id=None,
        last_seq=messages[-1].seq or 0 if messages else 0,
        branch=root_branch("s"),
        created_at=0,
        updated_at=0,
    )
    rows = ContextRows(session=session, summary=summary, messages=messages, layout=fields.pop("layout", None))
    return PlanRequest(session_id="s", rows=rows, limits=limits, count=cost, count_text=len, **fields)


def seqs(plan: Plan) -> list[int]:
    return [shown.seq or 0 for shown in plan.draft.window]


# The window


def test_smallest_window_has_enough_messages_and_begins_with_a_turn() -> None:
    for count, expected in ((10, 0), (30, 20), (31, 20), (4, 0)):
        start = window_start(chat(count), message_count=10, max_tokens=10_000, longest_turn=40, count=cost)
        assert start == expected, count


def test_tight_budget_makes_smallest_window_smaller_but_keeps_newest_turn() -> None:
    assert window_start(chat(30), message_count=10, max_tokens=45, longest_turn=40, count=cost) == 26
    assert window_start(chat(30), message_count=10, max_tokens=1, longest_turn=40, count=cost) == 28


def test_an_over_long_turn_is_cut_at_a_pair_border() -> None:
    pairs = [
        part
        for seq in range(2, 202, 2)
        for part in (
            message("assistant", seq, tool_calls=(ToolCall(id=f"c{seq}", name="look"),)),
            message("tool", seq + 1, tool_call_id=f"c{seq}"),
        )
    ]
    messages = (message("user", 1), *pairs)
    start = window_start(messages, message_count=10, max_tokens=10_000, longest_turn=40, count=cost)
    assert messages[start].role == "assistant"
    assert len(messages) - start in (41, 42)


@given(st.lists(st.integers(2, 9), min_size=1, max_size=30), st.integers(1, 20), st.integers(1, 400))
def test_a_window_never_begins_with_a_tool_result(lengths: list[int], enough: int, tokens: int) -> None:
    messages = turns(lengths)
    start = window_start(messages, message_count=enough, max_tokens=tokens, longest_turn=40, count=cost)
    assert messages[start].role == "user"


def test_take_last_begins_with_a_turn_if_there_is_one() -> None:
    assert [m.seq for m in newest(chat(31), 10)] == list(range(23, 32))
    assert [m.seq for m in newest(chat(9), 10)] == list(range(1, 10))
    only_results = tuple(message("tool", seq, tool_call_id="c") for seq in range(5, 40))
    assert len(newest(only_results, 10)) == 10


# The plan


def test_take_last_names_what_it_does_not_show() -> None:
    plan = TakeLast()(request(chat(50)[20:], limits={"take_last_count": 20}))
    assert seqs(plan) == list(range(31, 51))
    assert plan.draft.unread == ((1, 30),)


def test_the_window_grows_then_drops_its_oldest_turns_at_once() -> None:
    """Without an explicit budget: 10 messages, growing to 20, then 10 again; the lines change only then."""
    layout, starts, lines = None, [], []
    for count in range(22, 80, 2):
        plan = Hierarchical()(request(chat(count), summary_of(count // 10 * 10), layout=layout))
        layout = plan.layout or layout
        starts.append(seqs(plan)[0])
        lines.append(lines_in(plan.draft))
    moves = [index for index in range(1, len(starts)) if starts[index] != starts[index - 1]]
    assert starts == sorted(starts)
    assert [starts[index] for index in moves] == [25, 37, 49, 61]
    assert all((lines[index] != lines[index - 1]) == (index in moves) for index in range(1, len(lines)))


def test_with_budget_the_window_grows_until_the_budget_is_full() -> None:
    limits = {"budget": 2_000, "window_growth": "tokens"}
    layout, lengths = None, []
    for count in range(22, 300, 2):
        plan = Hierarchical()(request(chat(count), summary_of(count // 10 * 10), layout=layout, limits=limits))
        layout = plan.layout or layout
        lengths.append(len(plan.draft.window))
    assert max(lengths) > 25
    assert min(lengths) >= 10


def test_large_message_to_come_moves_window_by_its_allowance_only() -> None:
    layout = Layout(seq=22, window_start_seq=13, covered_seq=20)
    limits = {"budget": 1_000, "window_growth": "tokens"}
    plan = Hierarchical()(request(chat(90), summary_of(80), layout=layout, limits=limits, current_tokens=100_000))
    assert plan.layout is None
    assert seqs(plan)[0] == 13


def test_a_layout_of_another_epoch_is_not_used() -> None:
    layout = Layout(seq=22, window_start_seq=13, covered_seq=20, epoch=0)
    for epoch, start in ((0, 13), (1, 15)):
        plan = Hierarchical()(request(chat(24), replace(summary_of(20), epoch=epoch), layout=layout))
        assert seqs(plan)[0] == start


def test_facts_are_wanted_only_when_the_window_moves() -> None:
    layout, asked = None, []
    for count in range(22, 80, 2):
        whole = request(chat(count), summary_of(count // 10 * 10), layout=layout)
        plan = Hierarchical()(replace(whole, rows=replace(whole.rows, summary=whole.rows.summary.head)))
        asked.append(plan.wants_summary)
        assert plan.missing is None
        with_facts = Hierarchical()(whole)
        assert plan.wants_summary or plan == with_facts
        assert plan.wants_summary == (with_facts.layout is not None)
        assert not with_facts.wants_summary
        layout = with_facts.layout or layout
    assert asked.count(True) == 5


def test_what_is_missing_is_asked_for_before_the_facts() -> None:
    assert Hierarchical()(request(chat(60), summary_of(20).head)).missing is not None
    assert Hierarchical()(request(chat(60), summary_of(20).head, outcome="timeout")).wants_summary


def test_facts_of_messages_that_window_shows_stay_out_of_block() -> None:
    plan = Hierarchical()(request(chat(30), summary_of(30)))
    shown = {seq for line in lines_in(plan.draft) for seq in line.source_seqs}
    assert shown == set(range(1, 21))
    assert seqs(plan)[0] == 21


def talked_of(count: int, **fields: Any) -> Summary:
    """What was done now and then, and much talk."""
    facts = tuple(
        Fact(
            anchor=f"told #{seq}" if seq % 5 else f"Book #{seq}",
            key="said" if seq % 5 else "place",
            value=f"they talked of subject {seq}" if seq % 5 else f"Harbour Inn {seq}",
            source_seq=seq,
            said_by="assistant",
            act="statement" if seq % 5 else "decision",
            salience=40 if seq % 5 else 0,
            verified=True,
        )
        for seq in range(1, count + 1)
    )
    return Summary(facts_json=facts_to_json(facts), covered_seq=count, version=1, **fields)


def used(plan: Plan) -> int:
    assert plan.layout is not None
    return plan.layout.fact_tokens + plan.layout.narrative_tokens + sum(cost(message) for message in plan.draft.window)


def test_a_context_that_is_made_anew_uses_its_budget() -> None:
    limits = {"budget": 4_000, "window_growth": "tokens", "max_window_tokens": 1_000}
    plan = Hierarchical()(request(chat(400), talked_of(390), limits=limits))
    assert plan.layout is not None
    assert plan.layout.left_out
    assert 0.98 * 4_000 <= used(plan) <= 4_000


def test_one_that_follows_another_leaves_the_window_room_to_grow() -> None:
    limits = {"budget": 4_000, "window_growth": "tokens", "max_window_tokens": 1_000}
    before = Layout(seq=300, window_start_seq=1, covered_seq=290)
    plan = Hierarchical()(request(chat(400), talked_of(390), limits=limits, layout=before))
    assert used(plan) < 0.9 * 4_000


def test_memory_leaves_room_for_what_no_summary_covers_yet() -> None:
    limits = {"budget": 4_000, "window_growth": "tokens", "max_window_tokens": 1_000}
    plan = Hierarchical()(request(chat(400), talked_of(290), limits=limits, outcome="timeout"))
    assert plan.draft.freshness == "stale"
    assert sum(line.tokens for line in lines_in(plan.draft)) < 0.75 * 4_000
    assert min(seqs(plan)) <= 391


def test_a_new_context_tells_more_of_the_story_given_room() -> None:
    limits = {"budget": 4_000, "window_growth": "tokens", "max_window_tokens": 1_000}
    story = "\n".join(f"Then they came to town {number}." for number in range(200))
    crowded = Hierarchical()(request(chat(400), talked_of(390, narrative=story), limits=limits)).layout
    roomy = Hierarchical()(
        request(chat(400), replace(talked_of(30, narrative=story), covered_seq=390), limits=limits)
    ).layout
    assert crowded is not None
    assert roomy is not None
    assert 0 < crowded.narrative_tokens <= 0.08 * 4_000
    assert roomy.narrative_tokens > 0.5 * 4_000


def test_lines_that_the_budget_has_no_room_for_are_counted() -> None:
    plan = Hierarchical()(request(chat(80), summary_of(70), limits={"budget": 700, "window_growth": "tokens"}))
    assert plan.layout is not None
    cut = {excerpt.seq for excerpt in plan.layout.excerpts}
    said = [seq for seq in seqs(plan) if seq <= 70 and seq not in cut]
    assert len(lines_in(plan.draft)) + plan.layout.left_out == 70 - len(said)
    assert plan.draft.remarks == (
        f"{plan.layout.left_out} lines of memory were left out when the window last moved: too low in rank, or no room",
    )


def facts_tokens(draft: Draft) -> int:
    block = draft.block("facts")
    return (block and block.tokens) or 0


@pytest.mark.parametrize("current", [0, 400])
def test_a_larger_budget_shows_no_less_of_a_long_turn(current: int) -> None:
    done = tuple(
        Fact(
            anchor=f"order {seq}",
            key="drink",
            value=f"{seq}, a Latte with the oat milk",
            source_seq=seq,
            act="decision",
            verified=True,
        )
        for seq in range(1, 77)
    )
    summary = Summary(facts_json=facts_to_json(done), covered_seq=80, version=1)
    messages = tuple(replace(each, token_count=500) if each.seq == 78 else each for each in chat(80))
    found = {
        budget: Hierarchical()(request(messages, summary, limits={"budget": budget}, current_tokens=current)).draft
        for budget in (1_000, 1_500, 1_700, 1_950, 12_000)
    }
    shown = [{each.seq for each in draft.window} - {each.seq for each in draft.excerpts} for draft in found.values()]
    assert all(less <= more for less, more in pairwise(shown))
    assert (78 in shown[0], 78 in shown[-1]) == (False, True)
    told = [facts_tokens(draft) for draft in found.values()]
    assert told == sorted(told)
    assert told[0] > 550


def test_messages_without_summary_keep_the_share_of_the_window() -> None:
    messages = tuple(replace(each, token_count=400) if each.seq == 78 else each for each in chat(80))
    done = tuple(replace(fact, act="decision") for fact in summary_of(76).facts())
    summary = replace(summary_of(76), facts_json=facts_to_json(done))
    draft = Hierarchical()(request(messages, summary, limits={"budget": 1_000})).draft
    assert draft.window[0].seq == 77
    assert 500 < facts_tokens(draft) <= 650


def test_nothing_leaves_the_window_before_the_budget_is_full() -> None:
    for epoch in (0, 3):
        summary = replace(summary_of(70), epoch=epoch)
        plan = Hierarchical()(request(chat(80), summary, limits={"budget": 1_500, "window_growth": "tokens"}))
        assert plan.layout is None
        assert (seqs(plan), lines_in(plan.draft)) == (list(range(1, 81)), ())


@settings(max_examples=3 * settings().max_examples)
@given(
    st.integers(30, 200),
    st.one_of(st.integers(200, 400), st.integers(50, 3_000)),
    st.one_of(st.integers(0, 5), st.integers(0, 3_000)),
    st.integers(0, 500),
)
@example(count=30, budget=219, more=1, current=22)
@example(count=30, budget=50, more=103, current=0)
def test_for_one_state_a_larger_budget_never_loses_an_item(count: int, budget: int, more: int, current: int) -> None:
    """What a smaller context shows, a larger one shows too: as a line or in its window."""
    summary = summary_of(count)
    done = tuple(replace(fact, act="decision") if fact.source_seq % 5 == 0 else fact for fact in summary.facts())
    summary = replace(summary, facts_json=facts_to_json(done))
    shown: list[set[int]] = []
    for tokens in (budget, budget + more):
        limits = {"budget": tokens, "window_growth": "tokens"}
        plan = Hierarchical()(request(chat(count), summary, limits=limits, current_tokens=current))
        shown.append({seq for row in lines_in(plan.draft) for seq in row.source_seqs} | set(seqs(plan)))
    assert shown[0] <= shown[1]


def test_unverified_facts_are_not_shown() -> None:
    summary = replace(
        summary_of(0),
        facts_json=facts_to_json((Fact(anchor="order", key="number", value="666", source_seq=1),)),
        narrative="They talked.",
        covered_seq=30,
    )
    assert lines_in(Hierarchical()(request(chat(40), summary)).draft) == ()


def test_up_to_a_segment_may_wait_and_is_shown_verbatim() -> None:
    plan = Hierarchical()(request(chat(30), summary_of(12)))
    assert plan.missing is None
    assert seqs(plan) == list(range(13, 31))


def test_before_the_first_segment_everything_is_shown_verbatim() -> None:
    plan = Hierarchical()(request(chat(21)))
    assert plan.missing is None
    assert seqs(plan) == list(range(1, 22))
    assert (plan.draft.freshness, plan.draft.unread) == ("fresh", ())


def test_a_summary_that_says_nothing_is_take_last() -> None:
    plan = Hierarchical()(request(chat(30), Summary(covered_seq=20, version=1)))
    assert (plan.draft.strategy, plan.draft.freshness, seqs(plan)[0]) == ("take_last", "empty", 1)


def test_of_a_stale_range_only_hidden_messages_are_unread() -> None:
    stale = summary_of(24, stale_ranges=((11, 24),))
    plan = Hierarchical()(request(chat(30), stale))
    assert (seqs(plan)[0], plan.draft.unread) == (21, ((11, 20),))


def test_withdrawn_messages_before_the_window_are_not_called_unread() -> None:
    messages = (*chat(20), *chat(10, start=23))
    plan = Hierarchical()(request(messages, summary_of(20)))
    assert (seqs(plan)[0], plan.draft.unread) == (23, ())


def test_more_than_a_segment_is_asked_for() -> None:
    plan = Hierarchical()(request(chat(60), summary_of(20)))
    assert plan.missing is not None
    assert (plan.missing.until_seq, plan.missing.segments) == (40, 2)


@pytest.mark.parametrize("covered", [0, 10, 40])
def test_in_full_mode_nothing_may_wait(covered: int) -> None:
    plan = Hierarchical()(request(chat(60), summary_of(covered), limits={"segment_message_count": 0}))
    assert plan.missing is not None
    assert plan.missing.until_seq == 50


def test_full_mode_asks_a_tight_budget_for_no_more_later() -> None:
    plan = Hierarchical()(request(chat(30), summary_of(20), limits={"segment_message_count": 0, "budget": 100}))
    assert plan.missing is None
    assert (plan.draft.freshness, seqs(plan)[0]) == ("fresh", 21)


@each_row(
    ("outcome", "covered", "freshness"),
    [
        ("timeout", 20, "stale"),
        ("failed", 20, "stale"),
        ("open", 20, "stale"),
        ("catching_up", 20, "catching_up"),
        ("idle", 20, "fresh"),
        ("timeout", 0, "failed"),
        ("open", 0, "failed"),
        ("catching_up", 0, "catching_up"),
    ],
)
def test_what_is_shown_after_waiting_in_vain(outcome: str, covered: int, freshness: str) -> None:
    plan = Hierarchical()(request(chat(60), summary_of(covered), outcome=outcome))
    assert plan.missing is None
    assert plan.layout is None, "a makeshift must not be kept"
    assert plan.draft.freshness == freshness
    assert seqs(plan)[-1] == 60
    assert seqs(plan)[0] == covered + 1


def test_more_messages_wanted_in_the_window_than_there_are() -> None:
    plan = Hierarchical()(request(chat(24), summary_of(20), limits={"recent_message_count": 50}))
    assert plan.missing is None
    assert seqs(plan) == list(range(1, 25))
    assert lines_in(plan.draft) == ()


@settings(deadline=None)
@given(
    count=st.integers(21, 120),
    covered=st.integers(0, 120),
    read=st.integers(1, 120),
    outcome=st.sampled_from([None, "timeout", "failed", "idle", "catching_up", "covered"]),
    budget=st.integers(50, 5_000),
    growth=st.sampled_from(["messages", "tokens"]),
)
def test_every_message_is_covered_in_the_window_or_named_unread(
    count: int, covered: int, read: int, outcome: str | None, budget: int, growth: str
) -> None:
    messages = chat(count)[-read:]
    plan = Hierarchical()(
        request(
            messages,
            summary_of(min(covered, count)),
            outcome=outcome,
            limits={"budget": budget, "window_growth": growth},
        )
    )
    if plan.missing is not None:
        assert outcome is None
        return
    unread = {seq for first, last in plan.draft.unread for seq in range(first, last + 1)}
    shown = set(range(1, plan.draft.covered_seq + 1)) | set(seqs(plan)) | unread
    assert shown == set(range(1, count + 1))
