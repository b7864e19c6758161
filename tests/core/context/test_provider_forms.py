"""Whatever a history holds: the types of the official SDKs and the rules that the providers document accept it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, cast

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter

from reactor_memory.core.context.own_history import trim
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_openai, to_openai_responses
from reactor_memory.models import Message, ToolCall, is_models, is_reasoning
from tests.core.context.histories import count, count_text, plain_histories
from tests.proofs.provider_rules import (
    anthropic_problems,
    gemini_problems,
    openai_problems,
    responses_problems,
)

OPENAI = ("openai.types.chat", "ChatCompletionMessageParam")
RESPONSES = ("openai.types.responses", "ResponseInputItemParam")
ANTHROPIC = ("anthropic.types", "MessageParam")
ANTHROPIC_SYSTEM = ("anthropic.types", "TextBlockParam")

URL = "https://example.org/a.png"
DATA = "aGVsbG8="
PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "beside"},
    {"type": "text", "text": " "},
    {"type": "input_text", "text": "beside"},
    {"type": "output_text", "text": "beside", "annotations": []},
    {"text": "beside", "thought_signature": DATA},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    {"type": "file", "file": {"file_id": "f"}},
    {"type": "file", "base64": DATA, "mime_type": "application/pdf"},
    {"type": "refusal", "refusal": "no"},
    {"type": "input_image", "image_url": f"data:image/webp;base64,{DATA}", "detail": "high"},
    {"type": "input_file", "file_id": "f"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "reasoning", "reasoning": "hm"},
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "thinking", "thinking": "hm"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": DATA}},
    {"type": "image", "source": {"type": "url", "url": URL}},
    {"type": "image", "url": URL},
    {"type": "image", "base64": DATA, "mime_type": "image/svg+xml"},
    {"type": "image"},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
    {"inline_data": {"mime_type": "image/png", "data": DATA}},
    {"inline_data": {"mime_type": "audio/wav", "data": DATA}},
    {"file_data": {"file_uri": URL, "mime_type": "image/png"}},
    {"text": "hm", "thought": True},
    {"function_call": {"name": "made_up", "args": {}}},
    {"type": "tool_use", "id": "1", "name": "made_up", "input": {}},
    {"something": "else"},
    {},
]
ARGUMENTS: list[Any] = [{}, {"q": "é"}, "", " ", '{"q": 1}', '{"broken": ', "[1]", "null", '"text"']
TEXTS = ["", " ", "\n", "hello", "é\u2028", '{"found": 1}', "[1, 2]", "null", "12", "ends with space "]
IDS = ["a", "b", "", "toolu_01", "call|fc", "with space", "é", "x" * 70]
NAMES = ["find", "shop.find", "9 lives", "é", "n" * 80]


@st.composite
def dressed(draw: st.DrawFn, history: list[Message]) -> list[Message]:
    """The history with other texts, parts, roles, ids and arguments: whatever a log may hold."""
    ids = {key: draw(st.sampled_from(IDS)) + "abc".index(key) * "'" for key in "abc"}
    return [draw(_dressed_message(message, ids)) for message in history]


@st.composite
def _dressed_message(draw: st.DrawFn, message: Message, ids: Mapping[str, str]) -> Message:
    role = message.role
    if role == "assistant":
        role = draw(st.sampled_from(["assistant", "assistant", "agent"]))
    if role == "system":
        role = draw(st.sampled_from(["system", "summary"]))
    return replace(
        message,
        role=role,
        content=draw(st.sampled_from(TEXTS)),
        name=draw(st.sampled_from([None, None, "anna", "Anna Bo", "<x>"])),
        parts=tuple(draw(st.lists(st.sampled_from(PARTS), max_size=2))),
        tool_calls=tuple(draw(_dressed_call(call, ids)) for call in message.tool_calls),
        tool_call_id=ids[message.tool_call_id] if message.tool_call_id else message.tool_call_id,
        metadata=draw(st.sampled_from([{}, {"is_error": True}])),
    )


@st.composite
def _dressed_call(draw: st.DrawFn, call: ToolCall, ids: Mapping[str, str]) -> ToolCall:
    return replace(
        call,
        id=ids[call.id],
        name=draw(st.sampled_from(NAMES)),
        arguments=draw(st.sampled_from(ARGUMENTS)),
        metadata=draw(st.sampled_from([{}, {"thought_signature": DATA}])),
    )


def plain(value: Any) -> Any:
    """What pydantic made, with its lazy lists read to their end: so everything in them is checked, too."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in cast("Iterable[Any]", value)]
    return value


@cache
def adapter_of(module: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(import_module(module), name))


def accept(kind: tuple[str, str], values: Iterable[Any]) -> None:
    """The types take each value, and know every key of it."""
    adapter = adapter_of(*kind)
    for value in values:
        assert plain(adapter.validate_python(value)) == value


def drawn(data: st.DataObject) -> list[Message]:
    history = data.draw(plain_histories().flatmap(dressed))
    return trim(history, 10**9, count=count, count_text=count_text).messages


@given(data=st.data())
def test_rules_of_providers_hold_for_whatever_a_context_shows(data: st.DataObject) -> None:
    shown = drawn(data)
    openai, responses = to_openai(shown, system="Be kind."), to_openai_responses(shown, system="Be kind.")
    anthropic, gemini = to_anthropic(shown), to_gemini(shown)
    assert list(openai_problems(openai)) == []
    assert list(responses_problems(responses)) == []
    assert list(anthropic_problems(anthropic["messages"])) == []
    assert list(gemini_problems(gemini["contents"])) == []
    assert json.loads(json.dumps([openai, responses, anthropic, gemini])) == [openai, responses, anthropic, gemini]


@pytest.mark.slow  # the SDKs take seconds to import
@settings(max_examples=100)
@given(data=st.data())
def test_types_of_sdks_take_whatever_a_context_shows(data: st.DataObject) -> None:
    shown = drawn(data)
    accept(OPENAI, to_openai(shown, system="Be kind."))
    responses = to_openai_responses(shown, system="Be kind.")
    accept(RESPONSES, [{"id": "rs", **item} if item.get("type") == "reasoning" else item for item in responses])
    anthropic = to_anthropic(shown)
    accept(ANTHROPIC, anthropic["messages"])
    accept(ANTHROPIC_SYSTEM, anthropic.get("system", ()))
    gemini = to_gemini(shown)
    for content in [*gemini["contents"], *([gemini["system_instruction"]] if "system_instruction" in gemini else [])]:
        types.Content.model_validate(content)


def spoken(roles: Iterable[str]) -> list[str]:
    """The roles without results, what the assistant says in a row once: with reasoning it is one message."""
    said = [role for role in roles if role != "tool"]
    return [role for before, role in pairwise(["", *said]) if (before, role) != ("assistant", "assistant")]


def tells(message: Message) -> bool:
    """An answer of a model that holds nothing but reasoning, blanks and empty parts is sent to nobody."""
    said = (part for part in message.parts if part and not is_reasoning(part))
    shown = any("text" not in part or str(part["text"]).strip() for part in said)
    return bool(not is_models(message) or message.content or message.tool_calls or shown)


@given(data=st.data())
def test_nothing_that_was_said_or_called_is_lost(data: st.DataObject) -> None:
    """Every text, every call and every result that a context shows reaches each provider, in its order."""
    history = data.draw(plain_histories().flatmap(dressed))
    shown = trim(history, 10**9, count=count, count_text=count_text).messages
    calls = sum(len(message.tool_calls) for message in shown)
    signatures = sum("thought_signature" in call.metadata for message in shown for call in message.tool_calls)

    openai = to_openai(shown)
    assert sum(len(message.get("tool_calls", ())) for message in openai) == calls
    roles = [{"agent": "assistant", "summary": "system"}.get(each.role, each.role) for each in shown if tells(each)]
    assert spoken(message["role"] for message in openai) == spoken(roles)
    assert sum(item.get("type") == "function_call" for item in to_openai_responses(shown)) == calls
    blocks = [block for message in to_anthropic(shown)["messages"] for block in message["content"]]
    assert sum(block["type"] == "tool_use" for block in blocks) == calls
    parts = [part for content in to_gemini(shown)["contents"] for part in content["parts"]]
    assert sum("function_call" in part for part in parts) == calls
    assert sum("function_call" in part and "thought_signature" in part for part in parts) == signatures


def test_equal_ids_of_one_reasoning_are_told_apart_with_results() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    history = [
        Message.user("hi"),
        Message.assistant("", parts=(thought,), tool_calls=[ToolCall(id="a", name="find", arguments={})]),
        Message.assistant("", tool_calls=[ToolCall(id=each, name="find", arguments={}) for each in ("a", "b")]),
        Message.tool("found", tool_call_id="a"),
        Message.tool("none", tool_call_id="b"),
        Message.assistant("done"),
    ]
    written = to_openai(history)
    assert [call["id"] for each in written for call in each.get("tool_calls", ())] == ["a", "a_1", "b"]
    assert [(each["tool_call_id"], each["content"]) for each in written if each["role"] == "tool"] == [
        ("a", "found"),
        ("a_1", "found"),
        ("b", "none"),
    ]
    assert list(openai_problems(written)) == []
    assert list(responses_problems(to_openai_responses(history))) == []
