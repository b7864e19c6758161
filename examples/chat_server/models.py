"""The chat model: Gemini with a key, else one that needs neither key nor network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

GEMINI = "gemini-3.5-flash-lite"


def chosen_model() -> BaseChatModel:
    """Gemini if there is a key (it needs the package langchain-google-genai), else `OfflineModel`."""
    key = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
    if not key:
        return OfflineModel()
    from langchain.chat_models import init_chat_model

    return init_chat_model(GEMINI, model_provider="google_genai", api_key=key)


class OfflineModel(BaseChatModel):
    """Shows what it was given, so that one can see the memory at work.

    ``remember ...`` writes into the notes, ``what do you know?`` tells them, ``what did I say first?`` tells the oldest
    user message in the context; everything else is echoed.
    """

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> OfflineModel:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    last = messages[-1]
    text = str(last.content)
    if isinstance(last, ToolMessage):
        return AIMessage(text if text.startswith("Error") else "I have written that down.")
    if text.lower().startswith("remember "):
        arguments = {"operation": "append", "content": f"- {text[len('remember ') :]}"}
        call = {"id": f"call-{len(messages)}", "name": "manage_long_term_memory", "args": arguments}
        return AIMessage("", tool_calls=[call])
    if text.lower().startswith("what do you know"):
        return AIMessage(_notes_in(messages) or "Nothing yet.")
    if text.lower().startswith("what did i say first"):
        return AIMessage(next(str(message.content) for message in messages if isinstance(message, HumanMessage)))
    return AIMessage(f"You said: {text}")


def _notes_in(messages: Sequence[BaseMessage]) -> str:
    blocks = (str(message.content) for message in messages if isinstance(message, SystemMessage))
    notes = next((block for block in blocks if block.startswith("Agent Notes:")), "")
    return "\n".join(notes.splitlines()[2:])
