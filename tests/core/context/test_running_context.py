"""What holds of every context of a turn that goes on, on random turns and drafts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.running_context import RunningContext, ToldTurns, reading_tool_of
from reactor_memory.core.context.running_turn import RunningTurn
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.memory_tools import READING_TOOL
from reactor_memory.models.turns import find_orphans
from reactor_memory.tokens.estimate import EstimateCounter
from tests.core.context.histories import THOUGHT, logs, text, turns
from tests.proofs.provider_rules import anthropic_problems, gemini_problems, openai_problems, responses_problems
from tests.scenes.drafts import draft as draft_of

counter = MessageCounter(EstimateCounter())

often = settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))


def running(draft: Draft, budget: int, *, next_seq: int | None = None) -> RunningContext:
    seq = next_seq or len(draft.window) + 1
    return RunningContext(draft, ContextLimits(budget=budget), counter, system=None, next_seq=seq)


def step(number: int, size: int) -> list[Message]:
    call = ToolCall(id=f"c{number}", name="look_up", arguments={"q": text(number % 50)})
    return [Message.assistant(text(20), tool_calls=[call]), Message.tool(text(size), tool_call_id=call.id)]


def loop(*sizes: int) -> list[Message]:
    return [Message.user("go"), *(message for number, size in enumerate(sizes) for message in step(number, size))]


def window(count: int) -> tuple[Message, ...]:
    """Stored talk of about 25 tokens a message."""
    talk = [Message.user(text(84)) if seq % 2 else Message.assistant(text(84)) for seq in range(1, count + 1)]
    counted = [replace(each, token_count=counter.counted(each), tokenizer=counter.name) for each in talk]
    return tuple(replace(each, seq=seq) for seq, each in enumerate(counted, 1))


def problems(context: Context) -> list[str]:
    anthropic = context.to_anthropic()["messages"]
    return [
        *verify(context, count=counter.counted),
        *openai_problems(context.to_openai()),
        *responses_problems(context.to_openai_responses()),
        *anthropic_problems(anthropic),
        *gemini_problems(context.to_gemini()["contents"]),
    ]


def shared(before: Sequence[Message], after: Sequence[Message]) -> int:
    same = [one == other for one, other in zip(before, after, strict=False)]
    return same.index(False) if False in same else len(same)


@often
@given(turn=turns(max_steps=12), log=logs(max_turns=3), budget=st.integers(60, 3_000))
def test_each_step_fits_and_every_provider_takes_it(turn: list[Message], log: tuple[Message, ...], budget: int) -> None:
    counted = tuple(replace(each, token_count=counter.counted(each), tokenizer=counter.name) for each in log)
    contexts = running(draft_of(window=counted), budget)
    for end in range(2, len(turn) + 1, 3):
        try:
            context = contexts.of(turn[:end])
        except BudgetExceededError:
            continue
        assert problems(context) == []


LOST = Message.assistant(tool_calls=[ToolCall(id="a", name="lost")])
LATE = Message.tool("late", tool_call_id="a")
UNCALLED = Message.tool("nobody called", tool_call_id=None)


@pytest.mark.parametrize(
    "steps",
    [
        [LOST, THOUGHT, LATE],
        [LOST, THOUGHT, THOUGHT, LATE],
        [THOUGHT, LOST, THOUGHT, LATE, LOST],
        [THOUGHT, LOST, LATE, THOUGHT, UNCALLED],
        [THOUGHT, Message.assistant("Well."), LOST, THOUGHT, LATE, THOUGHT, LOST, LATE],
        [LOST, LATE, THOUGHT, Message.system("from now on")],
    ],
)
@pytest.mark.parametrize("budget", [60, 3_000])
def test_reasoning_that_led_to_nothing_is_not_shown(steps: list[Message], budget: int) -> None:
    turn = [Message.user("go"), *(steps * 10)[:40]]
    contexts = running(draft_of(), budget)
    for end in range(2, len(turn) + 1):
        with suppress(BudgetExceededError):
            assert problems(contexts.of(turn[:end])) == []


@often
@given(turn=turns(max_steps=12), room=st.integers(60, 3_000))
def test_what_is_sound_has_no_orphans_whatever_follows(turn: list[Message], room: int) -> None:
    told = RunningTurn(room, lambda message: counter.counted(message) + 4)
    for message in turn:
        told.add(message)
        shown = [step.shown for step in told.live]
        assert all(place >= told.sound for place in find_orphans(shown, open_tail=True))
        assert find_orphans(shown, told.sound, open_tail=True) == find_orphans(shown, open_tail=True)


@often
@given(sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=60), budget=st.integers(400, 2_000))
def test_told_at_once_or_step_by_step_is_the_same(sizes: list[int], budget: int) -> None:
    turn = loop(*sizes)
    watched = running(draft_of(), budget)
    for end in range(2, len(turn) + 1):
        context = watched.of(turn[:end])
    assert running(draft_of(), budget).of(list(turn)).messages == context.messages


@often
@given(sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=30), budget=st.integers(600, 2_000))
def test_a_turn_that_each_load_tells_again_goes_on(sizes: list[int], budget: int) -> None:
    turn, told, draft = loop(*sizes), ToldTurns(), draft_of(window=window(30))
    limits = ContextLimits(budget=budget)
    goes_on = running(draft, budget)
    for end in range(3, len(turn) + 1, 2):
        copied = [replace(message) for message in turn[:end]]
        again = RunningContext(draft, limits, counter, system=None, next_seq=31, told_turns=told, key=("s",))
        assert again.of(copied).messages == goes_on.of(turn[:end]).messages


def test_a_turn_that_is_told_again_is_not_counted_again() -> None:
    texts: list[str] = []

    class Counter(EstimateCounter):
        def count(self, text: str) -> int:
            texts.append(text)
            return super().count(text)

    turn, told, limits = loop(*[300] * 30), ToldTurns(), ContextLimits(budget=100_000)
    for end in range(3, len(turn) + 1, 2):
        RunningContext(draft_of(), limits, MessageCounter(Counter()), system=None, told_turns=told).of(turn[:end])
    assert sum(len(text) == 300 for text in texts) == 30


def test_another_turn_in_place_of_the_told_one_begins_anew() -> None:
    told, limits = ToldTurns(), ContextLimits(budget=1_500)
    first, other = loop(*[600] * 20), loop(*[601] * 20)
    for turn in (first, other, first):
        shared_context = RunningContext(draft_of(), limits, counter, system=None, told_turns=told).of(turn)
        assert shared_context.messages == running(draft_of(), 1_500).of(turn).messages


def test_the_prefix_breaks_only_where_a_batch_was_made() -> None:
    turn = loop(*[600] * 120)
    contexts, before, breaks = running(draft_of(), 4_000), list[Message](), 0
    for end in range(3, len(turn) + 1, 2):
        after = contexts.of(turn[:end]).messages
        breaks += shared(before, after) < len(before)
        before = after
    report = contexts.of(turn).report
    assert report.compaction is not None
    assert breaks == report.compaction.batches <= 16


def test_what_stands_before_moves_seldom_while_a_turn_grows() -> None:
    draft = draft_of(window=window(120), fact_lines=[BlockLine(text=f"- fact {each}", tokens=4) for each in range(60)])
    turn = loop(*[300] * 80)
    contexts = running(draft, 4_000)
    heads: list[list[Message]] = []
    for end in range(3, len(turn) + 1, 2):
        context = contexts.of(turn[:end])
        head = [
            message for part, message in zip(context.report.parts, context.messages, strict=True) if part != "current"
        ]
        heads.append([message for message in head if not message.content.startswith("[Earlier steps")])
        assert verify(context, count=counter.counted) == []
    assert sum(one != other for one, other in pairwise(heads)) <= 6
    assert heads[-1]
    assert contexts.of(turn).report.total_tokens <= 4_000


def test_a_turn_that_fits_leaves_what_was_loaded() -> None:
    contexts = running(draft_of(window=window(20)), 4_000)
    assert len(contexts.of(loop(300, 300)).part("window")) == 20


def test_a_report_tells_what_was_cleared_folded_and_saved() -> None:
    turn = loop(*[800] * 60)
    report = running(draft_of(), 3_000).of(turn).report
    assert report.compaction is not None
    assert report.compaction.folded == sum(entry.count for entry in report.dropped if entry.reason == "folded") > 0
    assert report.compaction.cleared == sum(entry.count for entry in report.clamped if entry.reason == "cleared") > 0
    whole = sum(counter.counted(message) + 4 for message in turn)
    assert report.compaction.saved_tokens == whole - report.total_tokens
    assert 0 < report.compaction.since <= len(turn) + 1


def test_a_report_is_of_its_step_whatever_follows() -> None:
    turn = loop(*[800] * 60)
    contexts = running(draft_of(), 3_000)
    early = contexts.of(turn[:21])
    contexts.of(turn)
    assert verify(early, count=counter.counted) == []


def test_messages_are_counted_once_however_often_a_context_is_made() -> None:
    texts: list[str] = []

    class Counter(EstimateCounter):
        def count(self, text: str) -> int:
            texts.append(text)
            return super().count(text)

    turn = loop(*[300 + number for number in range(40)])
    contexts = RunningContext(draft_of(), ContextLimits(budget=100_000), MessageCounter(Counter()), system=None)
    for end in range(3, len(turn) + 1, 2):
        contexts.of(turn[:end])
    assert sum(text.startswith("lorem") and len(text) >= 300 for text in texts) == 40


def test_other_messages_than_were_told_begin_anew() -> None:
    contexts = running(draft_of(), 2_000)
    contexts.of(loop(*[700] * 20))
    other = [Message.user("something else"), *step(1, 50)]
    assert contexts.of(other).messages == other


@pytest.mark.parametrize(
    ("tools", "expected"),
    [((), READING_TOOL), (({"name": "memory_read"},), READING_TOOL), (({"name": "bash"},), None)],
)
def test_stubs_name_a_reading_tool_that_the_model_has(tools: tuple[object, ...], expected: str | None) -> None:
    assert reading_tool_of(tools) == expected
