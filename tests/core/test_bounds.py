"""What a model or a tool made never ends a run: it is kept in the nearest form, within the limits, and says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from reactor_memory.core.bounds import checked_message
from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.core.validation import MessageLimits, check_messages
from reactor_memory.errors import InvalidMessageError, LimitExceededError
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_ollama, to_openai, to_openai_responses
from reactor_memory.models import Message, ToolCall

LIMITS = MessageLimits()


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    at: datetime


@dataclass
class Point:
    x: int


ODD: dict[str, tuple[Any, Any]] = {
    "nul": ("a\0b", "a\ufffdb"),
    "half": ("a\ud800b", "a\ufffdb"),
    "nan": (float("nan"), "NaN"),
    "infinity": (float("-inf"), "-Infinity"),
    "tuple": ((1, {2}), [1, [2]]),
    "time": (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"),
    "bytes": (b"hello", "aGVsbG8="),
    "decimal": (Decimal("1.5"), "1.5"),
    "uuid": (UUID(int=7), str(UUID(int=7))),
    "enum": (Colour.RED, "red"),
    "model": (Model(at=datetime(2026, 1, 1, tzinfo=UTC)), {"at": "2026-01-01T00:00:00+00:00"}),
    "dataclass": (Point(1), {"x": 1}),
    "object": (object(), "<object>"),
    "huge": (10**2000, "[an integer of 6644 bits]"),
    "keys": ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_values_take_their_nearest_form(kind: str) -> None:
    given, kept = ODD[kind]
    made = Message.assistant(
        "said", parts=({"type": "note", "x": [given]},), tool_calls=[ToolCall(id="", name="f", arguments={"x": given})]
    )
    message = checked_message(made, LIMITS)
    assert message.parts[0]["x"] == [kept]
    assert message.tool_calls[0].arguments == {"x": kept}
    by_anthropic = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": given}}],
    }
    (message,) = messages_of(by_anthropic)
    check_messages([message], LIMITS)
    assert message.tool_calls[0].arguments == {"x": kept}
    shown = to_anthropic([Message.user("q"), message])["messages"][1]["content"][0]["input"]
    assert shown == {"x": "a\0b" if kind == "nul" else kept}


def test_seventy_levels_are_kept_whole() -> None:
    arguments = {"x": nested(70)}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": arguments}
    block = {"type": "future", "x": nested(70)}
    (message,) = messages_of({"role": "assistant", "content": [call, block]})
    check_messages([message], LIMITS)
    shown = to_anthropic([Message.user("q"), message])["messages"][1]["content"]
    assert shown == [call, block]
    by_value = checked_message(Message.assistant(tool_calls=[ToolCall(id="t", name="f", arguments=arguments)]), LIMITS)
    assert to_anthropic([Message.user("q"), by_value])["messages"][1]["content"] == [call]


def test_what_exceeds_a_limit_is_cut_and_says_so() -> None:
    limits = MessageLimits(max_content_bytes=1000, max_parts_bytes=1000, max_tool_calls=2, max_id_length=40)
    calls = [ToolCall(id=f"{number}" * 60, name="f", arguments={"x": "y" * 5000}) for number in range(3)]
    made = Message.assistant("ü" * 900, parts=({"type": "a", "x": "z" * 2000}, {"type": "b"}), tool_calls=calls)
    message = checked_message(made, limits)
    check_messages([message], limits)
    assert "limits.max_content_bytes is 1,000" in message.content
    assert "the limit is 1,000" in message.parts[0]["text"]
    assert message.parts[1] == {"type": "b"}
    assert len({call.id for call in message.tool_calls}) == 2
    assert "limits.max_content_bytes is 1,000" in str(message.tool_calls[0].arguments)
    result = checked_message(Message.tool("r" * 5000, tool_call_id="0" * 60), limits)
    assert result.tool_call_id == message.tool_calls[0].id


def test_what_people_say_is_refused_as_before() -> None:
    for message in (Message.user("a\0b"), Message.system("\ud800"), Message.user("", parts=({"x": float("nan")},))):
        with pytest.raises(InvalidMessageError):
            checked_message(message, LIMITS)
    with pytest.raises(LimitExceededError):
        checked_message(Message.user("x" * 11), MessageLimits(max_content_bytes=10))


def _call(call_id: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    return call if call_id is None else {"id": call_id, **call}


@pytest.mark.parametrize("ids", [("a", "a", "b"), ("", "", ""), (None, None, None), ("x", None, "x")])
def test_results_find_their_calls_by_order(ids: tuple[Any, ...]) -> None:
    results = [{"role": "tool", "content": f"result {number}"} for number in range(3)]
    for result, call_id in zip(results, ids, strict=True):
        if call_id is not None:
            result["tool_call_id"] = call_id
    called = {"role": "assistant", "content": None, "tool_calls": [*map(_call, ids)]}
    messages = messages_of([{"role": "user", "content": "q"}, called, *results])
    check_messages(messages, LIMITS)
    shown = to_openai(messages)
    by_id = {each["tool_call_id"]: each["content"] for each in shown if each["role"] == "tool"}
    assert [by_id[call["id"]] for call in shown[1]["tool_calls"]] == ["result 0", "result 1", "result 2"]
    assert len(by_id) == 3
    assert [item["output"] for item in to_openai_responses(messages) if "output" in item] == [*by_id.values()]
    assert [each["content"] for each in to_ollama(messages)[2:]] == [*by_id.values()]
    assert len(to_gemini(messages)["contents"][2]["parts"]) == 3


@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_answer_is_kept_and_sent_to_nobody(content: Any) -> None:
    messages = messages_of([{"role": "user", "content": "q"}, {"role": "assistant", "content": content}])
    assert len(messages) == 2
    assert len(to_openai(messages)) == len(to_openai_responses(messages)) == len(to_ollama(messages)) == 1
    assert len(to_anthropic(messages)["messages"]) == len(to_gemini(messages)["contents"]) == 1


def test_messages_of_session_files_are_taken() -> None:
    call = {"id": "c", "name": "f", "arguments": {"a": 1}, "metadata": {"k": 1}}
    messages = messages_of(
        [
            {"role": "user", "content": "q", "at": "2026-01-01T01:00:00+01:00", "author_id": "ann"},
            {"role": "assistant", "content": "", "at": 7, "tool_calls": [call]},
            {"role": "tool", "content": "r", "tool_call_id": "c", "parts": [{"type": "note"}]},
        ]
    )
    assert [message.created_at for message in messages] == [1767225600_000_000, 7, None]
    assert messages[1].tool_calls == (ToolCall(id="c", name="f", arguments={"a": 1}, metadata={"k": 1}),)
    assert messages[2].parts == ({"type": "note"},)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"role": "user", "content": "q", "at": "yesterday"}, "messages.at"),
        ({"role": "user", "content": "q", "at": "2026-01-01T01:00:00"}, "messages.at"),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f", "args": {}}]},
            "messages.tool_calls[0].args",
        ),
    ],
)
def test_what_a_session_file_cannot_hold_is_refused_by_name(given: Any, field: str) -> None:
    with pytest.raises(InvalidMessageError) as raised:
        messages_of(given)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": True}]}, "failed"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": False}]}, "ok"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "error"}]}, None),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"outcome": {"type": "exit", "exit_code": 1}}]},
            "failed",
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"outcome": {"type": "exit", "exit_code": 0}}]},
            "ok",
        ),
        ({"type": "apply_patch_call_output", "call_id": "c", "status": "failed"}, "failed"),
        ({"role": "model", "parts": [{"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}]}, "failed"),
        ({"role": "model", "parts": [{"code_execution_result": {"outcome": "OUTCOME_OK"}}]}, "ok"),
        ({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"isError": True}}}]}, "failed"),
        ({"role": "tool", "tool_call_id": "c", "content": "x", "is_error": True}, "failed"),
        ({"role": "tool", "tool_call_id": "c", "content": "x", "status": "success"}, "ok"),
        ({"role": "user", "content": "it failed"}, None),
    ],
)
def test_flags_of_an_outcome_can_be_read(given: Any, outcome: str | None) -> None:
    (message,) = messages_of(given)
    assert message.outcome == outcome
