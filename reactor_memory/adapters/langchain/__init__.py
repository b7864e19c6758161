"""LangChain 1.x: memory for agents as a middleware, a chat history, a tool for notes (extra ``langchain``)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.adapters.langchain.history import ReactorMemoryChatHistory
    from reactor_memory.adapters.langchain.messages import from_message, from_messages, to_message
    from reactor_memory.adapters.langchain.middleware import ReactorMemoryMiddleware
    from reactor_memory.adapters.langchain.tool import LongTermMemoryTool

_MODULES = {
    "LongTermMemoryTool": "tool",
    "ReactorMemoryChatHistory": "history",
    "ReactorMemoryMiddleware": "middleware",
    "from_message": "messages",
    "from_messages": "messages",
    "to_message": "messages",
}

__all__ = [
    "LongTermMemoryTool",
    "ReactorMemoryChatHistory",
    "ReactorMemoryMiddleware",
    "from_message",
    "from_messages",
    "to_message",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
