"""The model that a chat asks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from reactor_memory.models import Message


class ChatModel(Protocol):
    """Answers a person in ``reactor-memory chat``. `name` and `notice` are shown before the first message: who answers,
    and what the person should know before saying anything.
    """

    @property
    def name(self) -> str: ...

    @property
    def notice(self) -> str: ...

    def stream(self, messages: Sequence[Message], *, system: str | None = None) -> AsyncGenerator[str]:
        """The answer to `messages`, the last of which is the person's, piece by piece.

        Raises `ChatModelError` and no other error, also after some pieces; never retries by itself. Closing the
        generator stops the answer and gives its connection back.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections. Called once, also when `stream` was never called."""
        ...
