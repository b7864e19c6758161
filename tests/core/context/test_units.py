"""What a model gave with its reasoning, its calls and their results reach every provider whole, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.selection import newest, window_start
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError
from reactor_memory.features.facts.segments import next_segment
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_openai, to_openai_responses
from reactor_memory.models import Message, ToolCall
from tests.core.context.histories import THOUGHT, budgets, count, count_text, logs, turns
from tests.proofs.provider_rules import provider_problems
from tests.scenes.drafts import draft

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

often = settings(deadline=None, suppress_health_check=list(HealthCheck))


def sealed(log: Sequence[Message], size: int) -> list[Sequence[Message]]:
    """The segments of a log, and at the end what is not sealed yet."""
    segments: list[Sequence[Message]] = []
    while (end := next_segment(log, size)) is not None:
        segments.append(log[:end])
        log = log[end:]
    return [*segments, log]


@st.composite
def drafts(draw: st.DrawFn) -> tuple[Sequence[Message], Draft]:
    """A log, and a draft as a strategy makes it: a window of what was not sealed, or of the newest."""
    log = draw(logs())
    segments = sealed(log, draw(st.integers(1, 6)))
    most = draw(st.integers(1, 12))
    first = window_start(log, message_count=most, max_tokens=draw(budgets), longest_turn=most, count=count)
    window: Sequence[Message] = draw(st.sampled_from([segments[-1], log[first:], newest(log, most)]))
    return log, draft(window=tuple(window))


def made(draft: Draft, current: Sequence[Message], budget: int) -> Context:
    limits = ContextLimits(budget=budget)
    try:
        return assemble(draft, current, limits, count=count, count_text=count_text)
    except BudgetExceededError as error:
        return assemble(draft, current, replace(limits, budget=error.minimum), count=count, count_text=count_text)


@often
@given(given_draft=drafts(), current=turns(max_steps=3), budget=budgets)
def test_no_context_parts_reasoning_from_what_came_with_it(
    given_draft: tuple[Sequence[Message], Draft], current: list[Message], budget: int
) -> None:
    log, draft = given_draft
    numbered = [replace(message, seq=seq) for seq, message in enumerate(current, start=len(log) + 1)]
    for turn in (current[:1], numbered):
        context = made(draft, turn, budget)
        assert verify(context, count=count, log=[*log, *numbered]) == []
        just_made = context.messages and context.messages[-1].role in ("assistant", "agent")
        assert just_made or provider_problems(context) == []


@often
@given(log=logs(), budget=budgets)
def test_no_trimmed_history_parts_them(log: Sequence[Message], budget: int) -> None:
    try:
        context = trim(log, budget, count=count, count_text=count_text)
    except BudgetExceededError as error:
        context = trim(log, error.minimum, count=count, count_text=count_text)
    assert verify(context, count=count, log=log) == []


def answered(*ids: str) -> list[Message]:
    return [Message.tool("found", tool_call_id=call_id) for call_id in ids]


def called(call_id: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=call_id, name="find")])


STEP = [Message.user("where?"), THOUGHT, Message.assistant("let me see"), called("a"), called("b"), *answered("b", "a")]


def test_every_provider_gets_them_as_one() -> None:
    openai = to_openai(STEP)
    assert [message["role"] for message in openai] == ["user", "assistant", "tool", "tool"]
    assert openai[1]["content"] == "let me see"
    assert [call["id"] for call in openai[1]["tool_calls"]] == ["a", "b"]
    kinds = [item.get("type", item.get("role")) for item in to_openai_responses(STEP)]
    calls, results = ["function_call"] * 2, ["function_call_output"] * 2
    assert kinds == ["user", "reasoning", "assistant", *calls, *results]
    thinking = Message.assistant(parts=({"type": "thinking", "thinking": "hm", "signature": "s"},))
    claude = to_anthropic([STEP[0], thinking, *STEP[2:]])["messages"]
    assert [[block["type"] for block in message["content"]] for message in claude] == [
        ["text"],
        ["thinking", "text", "tool_use", "tool_use"],
        ["tool_result", "tool_result"],
    ]
    signed = replace(STEP[3], tool_calls=(replace(STEP[3].tool_calls[0], metadata={"thought_signature": "aGk="}),))
    thought = Message.assistant(parts=({"text": "hm", "thought": True},))
    contents = to_gemini([STEP[0], thought, STEP[2], signed, *STEP[4:]])["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert ["thought_signature" in part for part in contents[1]["parts"]] == [False, False, True, False]


def test_an_answer_without_a_text_stands_behind_its_reasoning() -> None:
    kinds = [item.get("type", item.get("role")) for item in to_openai_responses([THOUGHT, Message.assistant()])]
    assert kinds == ["reasoning", "assistant"]


def test_what_stands_beside_its_reasoning_is_not_cut() -> None:
    """A provider compares it with what it gave; a tool's result is the caller's."""
    text, result = "word " * 60, "word " * 400
    turn = [Message.user("now"), THOUGHT, Message.assistant(text), called("a"), Message.tool(result, tool_call_id="a")]
    context = made(Draft(strategy="take_last", session_id="s"), turn, 200)
    assert context.messages[:-1] == turn[:-1]
    assert context.messages[-1].content != result
    with pytest.raises(BudgetExceededError):
        trim(turn, 80, count=count, count_text=count_text)


def test_the_newest_messages_begin_with_a_whole_unit() -> None:
    log = [replace(message, seq=seq) for seq, message in enumerate([*STEP, *STEP[1:], *STEP[1:]], start=1)]
    assert [message.seq for message in newest(log, 7)] == list(range(14, 20))
    assert [message.seq for message in newest(log, 4)] == list(range(14, 20)), "the unit is larger"
    assert [message.seq for message in newest(log[4:], 14)] == list(range(6, 20)), "its reasoning was not read"
