"""A chat model that answers as it was told, and shows what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Answer = AIMessage | str | Exception


class ScriptedModel(BaseChatModel):
    """Gives the answers in their order; one that is an exception is raised."""

    answers: list[Any]
    seen: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append(list(messages))
        answer: Any = self.answers.pop(0)
        if isinstance(answer, Callable) and not isinstance(answer, AIMessage):
            answer = answer()
        if isinstance(answer, BaseException):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])


def calling(*calls: tuple[str, str, dict[str, Any]], text: str = "") -> AIMessage:
    """An answer that calls tools: (id, name, arguments) each."""
    return AIMessage(
        text, tool_calls=[{"id": id_, "name": name, "args": args, "type": "tool_call"} for id_, name, args in calls]
    )
