"""A conversation of a person with a model, free of terminal matters: the models, and the commands that begin with `/`.

`Chat` is what a host needs (``reactor-memory chat`` is one); names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import names_of

if TYPE_CHECKING:
    from reactor_memory.features.chat.conversation import Chat
    from reactor_memory.features.chat.replies import Progress, Reply

_HOME = {"Chat": "conversation", "Progress": "replies", "Reply": "replies"}

__all__ = ["Chat", "Progress", "Reply"]

__getattr__ = names_of(__name__, _HOME)
