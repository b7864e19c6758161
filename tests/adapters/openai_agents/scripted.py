"""A model that says what it was told to say, and remembers what it was given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Model, ModelResponse, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary


class ScriptedModel(Model):
    """Answers each call with the next list of output items; `seen` has the input of each call."""

    def __init__(self, *answers: list[ResponseOutputItem] | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[list[dict[str, Any]]] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        self.seen.append([dict(item) for item in input] if not isinstance(input, str) else [{"text": input}])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(output=answer, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError


class AnsweringModel(ScriptedModel):
    """Answers with what `answer` makes of the input."""

    def __init__(self, answer: Callable[[list[dict[str, Any]]], str]) -> None:
        super().__init__()
        self._answer = answer

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        self.answers.append([says(self._answer(list(input)))])
        return await super().get_response(system_instructions, input, *args, **kwargs)


def says(text: str, *, id: str = "msg_1") -> ResponseOutputMessage:  # noqa: A002
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(id=id, type="message", role="assistant", status="completed", content=[content])


def calls(name: str, arguments: str, call_id: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{call_id}",
        type="function_call",
        name=name,
        arguments=arguments,
        call_id=call_id,
        status="completed",
    )


def thinks(text: str) -> ResponseReasoningItem:
    summary = [Summary(type="summary_text", text=text)]
    return ResponseReasoningItem(id="rs_1", type="reasoning", summary=summary, encrypted_content="gAAAAB==")


def texts(items: list[dict[str, Any]]) -> str:
    """All that a model reads of these items, as one text."""
    return "\n".join(str(item) for item in items)
