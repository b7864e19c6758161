"""A result of a tool that names no call is shown as what it is, and never as a result without a call."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.verification import verify
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_openai, to_openai_responses
from reactor_memory.models import Message, ToolCall

RESULT = "[result of the tool search]\nThe river is 7 km long."
SAID = [
    Message.user("How long is the river?", seq=1, token_count=5, tokenizer="len"),
    Message(role="tool", name="search", content="The river is 7 km long.", seq=2, token_count=5, tokenizer="len"),
    Message.assistant("", tool_calls=[ToolCall(id="c", name="find")], seq=3, token_count=5, tokenizer="len"),
    Message.tool("found", tool_call_id="c", seq=4, token_count=5, tokenizer="len"),
    Message(role="tool", content="27 degrees", seq=5, token_count=5, tokenizer="len"),
    Message.assistant("7 km.", seq=6, token_count=5, tokenizer="len"),
]
LATER = Message.user("Thanks.", seq=7, token_count=5, tokenizer="len")


def count(message: Message) -> int:
    return len(message.content) if message.token_count is None else message.token_count


@pytest.mark.parametrize("how", ["window", "current", "trimmed"])
def test_it_is_kept(how: str) -> None:
    limits = ContextLimits(budget=10_000)
    if how == "trimmed":
        context = trim([*SAID, LATER], 10_000, count=count, count_text=len)
    else:
        window, current = ([*SAID], [LATER]) if how == "window" else ([], SAID)
        draft = Draft(strategy="take_last", session_id="s", window=tuple(window))
        context = assemble(draft, current, limits, count=count, count_text=len, tokenizer="len")
        assert verify(context, count=count) == []
    assert [each.content for each in context.messages][:6] == [each.content for each in SAID]
    assert not context.report.dropped


def texts(value: Any) -> str:
    return repr(value).replace("\\n", "\n")


def test_providers_get_text_of_the_user() -> None:
    openai = to_openai(SAID)
    assert [each["role"] for each in openai] == ["user", "user", "assistant", "tool", "user", "assistant"]
    assert (openai[1]["content"], openai[4]["content"]) == (RESULT, "[result of a tool]\n27 degrees")
    items = to_openai_responses(SAID)
    assert {"role": "user", "content": RESULT} in items
    assert [each["call_id"] for each in items if each.get("type") == "function_call_output"] == ["c"]
    anthropic = to_anthropic(SAID)["messages"]
    assert [each["role"] for each in anthropic] == ["user", "assistant", "user", "assistant"]
    assert {"type": "text", "text": RESULT} in anthropic[0]["content"]
    assert [each["type"] for each in anthropic[2]["content"]] == ["tool_result", "text"]
    gemini = to_gemini(SAID)["contents"]
    assert RESULT in texts(gemini[1])
    assert sum("function_response" in part for each in gemini for part in each["parts"]) == 1
