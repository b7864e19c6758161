"""A process of its own that adds to a chat memory, which summarises, until it is killed: ``URL CONVERSATION``.

It prints ``ack N`` for message N as soon as it was told that it is stored.
"""

from __future__ import annotations

import asyncio
import sys

from dependency_injector import providers

from reactor_memory import Container, Settings, open_container
from tests.acceptance.scenes import scripted, talk

EVERY = 3


def memory(url: str):
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(scripted()))

    chosen = {"strategy": "summarize", "summarize_every_n": EVERY, "retention": "archive"}
    return open_container(
        Settings(store={"url": url}, summary={"enabled": False}, tokens={"counter": "estimate"}, chat_memory=chosen),
        configure=configure,
    )


async def add(url: str, conversation_id: str) -> None:
    async with memory(url) as container:
        for number in range(1, 100_000):
            await container.chat_memory().add_messages(conversation_id, talk(1, start=number))
            print("ack", number, flush=True)


if __name__ == "__main__":
    asyncio.run(add(*sys.argv[1:]))
