"""What a command of a chat answers, and how it says what it is doing."""

from __future__ import annotations

from typing import Any, Protocol

from reactor_memory.models import Value


class Reply(Value, frozen=True, kw_only=True):
    """`text` is for a person; `report` is the value behind it, for programs and for hosts that show more of it.

    `failed`: nothing was changed, and `text` says why. `asks`: the next line is the answer to a question. `ends`: the
    chat is over.
    """

    text: str
    report: Any = None
    failed: bool = False
    asks: bool = False
    ends: bool = False


class Progress(Protocol):
    """Where a command that takes long says what it is about to do, and how far it is."""

    def announce(self, text: str) -> None:
        """What it is about to do; said once."""
        ...

    def update(self, text: str) -> None:
        """How far it is; each text takes the place of the one before."""
        ...


class Unseen:
    """`Progress` that nobody watches."""

    def announce(self, text: str) -> None:
        """Nobody is told."""

    def update(self, text: str) -> None:
        """Nobody is told."""
