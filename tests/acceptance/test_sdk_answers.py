"""Answers as the SDKs of providers give them, which nobody has to take apart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from reactor_memory import open_memory
from reactor_memory.errors import InvalidMessageError
from tests.forms.sdk_shapes import shapes

if TYPE_CHECKING:  # they take seconds to import
    from anthropic.types import Message as AnthropicMessage
    from google.genai.types import GenerateContentResponse
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}


def completion(**message: Any) -> ChatCompletion:
    from openai.types.chat import ChatCompletion

    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return ChatCompletion.model_validate(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )


def claude(*blocks: dict[str, Any]) -> AnthropicMessage:
    from anthropic.types import Message as AnthropicMessage

    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks, "usage": usage}
    return AnthropicMessage.model_validate({**whole, "stop_reason": "end_turn", "stop_sequence": None})


def gemini(**candidate: Any) -> GenerateContentResponse:
    from google.genai.types import GenerateContentResponse

    return GenerateContentResponse.model_validate({"candidates": [candidate]})


def gemini_says(*parts: dict[str, Any]) -> GenerateContentResponse:
    return gemini(content={"role": "model", "parts": parts})


def response(*output: dict[str, Any]) -> Response:
    from openai.types.responses import Response

    whole = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": output}
    return Response.model_validate({**whole, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []})


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SAID = {"type": "text", "text": "In Lyon.", "citations": None}
USE: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "In Lyon.", "annotations": []}],
}


def given_and_expected() -> dict[str, tuple[Any, str, int, list[str]]]:
    """What is given, and the text, the number of parts and the calls of the answer that it is."""
    answered = completion(content="In Lyon.")
    gemini_answer = gemini_says({"text": "In Lyon."})
    candidate: Any = (gemini_answer.candidates or [])[0]
    thinking = gemini_says({"text": "hm", "thought": True}, {"text": "In Lyon.", "thought_signature": b"abc"})
    openai_response = response({"type": "reasoning", "id": "rs", "summary": []}, MESSAGE)
    return {
        "OpenAI's completion": (answered, "In Lyon.", 0, []),
        "the same as a dict": (answered.model_dump(), "In Lyon.", 0, []),
        "its choices": (answered.choices, "In Lyon.", 0, []),
        "its message": (answered.choices[0].message, "In Lyon.", 0, []),
        "a list of its message": ([answered.choices[0].message], "In Lyon.", 0, []),
        "a completion with a call": (completion(content=None, tool_calls=[CALL]), "", 0, ["find"]),
        "a refusal": (completion(content=None, refusal="No."), "", 1, []),
        "OpenAI's response": (openai_response, "In Lyon.", 1, []),
        "its output": (openai_response.output, "In Lyon.", 1, []),
        "Anthropic's message": (claude(THOUGHT, SAID), "In Lyon.", 1, []),
        "its blocks": (claude(THOUGHT, SAID).content, "In Lyon.", 1, []),
        "one block": (claude(SAID).content[0], "In Lyon.", 0, []),
        "a message with a call": (claude(SAID, USE), "In Lyon.", 0, ["find"]),
        "Gemini's response": (gemini_answer, "In Lyon.", 0, []),
        "the same as JSON": (gemini_answer.model_dump(mode="json", by_alias=True), "In Lyon.", 0, []),
        "its content": (candidate.content, "In Lyon.", 0, []),
        "its parts": (candidate.content.parts, "In Lyon.", 0, []),
        "Gemini's thoughts": (thinking, "In Lyon.", 2, []),
        "Gemini's call": (gemini_says({"function_call": {"name": "find", "args": {}}}), "", 0, ["find"]),
        "Ollama's dict": ({"model": "m", "message": {"role": "assistant", "content": "In Lyon."}}, "In Lyon.", 0, []),
    }


@pytest.mark.anyio
@pytest.mark.slow
async def test_what_an_sdk_gives_is_an_answer() -> None:
    async with open_memory("memory://") as memory:
        for name, (given, content, parts, calls) in given_and_expected().items():
            async with memory.turn(name, "Where is it?") as turn:
                turn.answer(given)
            _, answer = await memory.read_messages(name)
            found = answer.role, answer.content, len(answer.parts), [call.name for call in answer.tool_calls]
            assert found == ("assistant", content, parts, calls), name


@pytest.mark.anyio
@pytest.mark.slow
async def test_what_only_an_sdk_adds_is_not_sent_back() -> None:
    from anthropic.types.beta import BetaFallbackBlock
    from openai.types.responses import ParsedResponse

    parsed = ParsedResponse[Any].model_validate(response(MESSAGE).model_dump(exclude_unset=True))
    said: Any = parsed.output[0]
    said.content[0].parsed = {"town": "Lyon"}
    fallback = next(shapes(BetaFallbackBlock))
    assert "from" in fallback  # the attribute is from_
    block = BetaFallbackBlock.model_validate(fallback)
    async with open_memory("memory://") as memory:
        for name, given in {"openai": parsed, "its output": parsed.output, "anthropic": claude_of(block)}.items():
            async with memory.turn(name, "Where is it?") as turn:
                turn.answer(given)
        for name in ("openai", "its output"):
            assert (await memory.load_history(name, budget=1000)).to_openai_responses()[1:] == [MESSAGE]
        written = (await memory.load_history("anthropic", budget=1000)).to_anthropic()["messages"][1]
    assert written == {"role": "assistant", "content": [fallback, {"type": "text", "text": "So."}]}


def claude_of(block: Any) -> Any:
    return {"role": "assistant", "content": [block, {"type": "text", "text": "So."}]}


async def _streamed() -> AsyncIterator[str]:
    yield "In Lyon."


async def _later() -> str:
    return "In Lyon."


@pytest.mark.anyio
async def test_what_is_no_answer_says_what_to_do() -> None:
    later = _later()
    wrong: list[tuple[Any, str]] = [
        (gemini(finish_reason="SAFETY"), "holds no message"),
        (completion(content="x").model_copy(update={"choices": []}), "choices[0].message: is missing"),
        (_streamed(), "turn.stream()"),
        (later, "await it first"),
        (["In ", "Lyon."], "join them"),
    ]
    async with open_memory("memory://") as memory, memory.turn("s", "Where is it?") as turn:
        for given, told in wrong:
            with pytest.raises(InvalidMessageError) as raised:
                turn.answer(given)
            assert told in str(raised.value)
    later.close()
