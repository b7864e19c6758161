"""The chat model that needs no key, no server and no network."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from reactor_memory.models import Message

_WORDS = re.compile(r"\s*\S+|\s+")


class EchoModel:
    """Repeats what the person said, and says of itself that it is no model."""

    name = "offline echo"
    notice = "No model is asked and nothing leaves this machine; chat.provider and a key name a model."

    async def stream(self, messages: Sequence[Message], *, system: str | None = None) -> AsyncGenerator[str]:
        given = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
        for word in _WORDS.findall(f"You said: {messages[-1].content}\n(offline echo, it was given {given})"):
            yield word

    async def aclose(self) -> None:
        """Nothing is open."""
