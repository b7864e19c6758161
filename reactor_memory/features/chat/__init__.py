"""A conversation of a person with a model, free of terminal matters: the models, and the commands that begin with `/`.

`Chat` is what a host needs (``reactor-memory chat`` is one); names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.features.chat.conversation import Chat
    from reactor_memory.features.chat.replies import Progress, Reply

_HOME = {"Chat": "conversation", "Progress": "replies", "Reply": "replies"}

__all__ = ["Chat", "Progress", "Reply"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
