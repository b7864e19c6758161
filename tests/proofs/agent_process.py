"""A process of its own that uses the library, for proofs that kill it or let two of them meet.

``append URL RUN`` saves batches to three sessions until it is killed. ``share URL NAME CALLS`` saves its batches to one
session that others use too. ``work URL CALLS`` does the background work of others until it is killed. ``hold URL
SESSION`` saves a session, and never ends the work that the save began. Each prints what it did, line by line; `CALLS`
is a file that gets a line for every call of the summarizer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, Message, ToolCall, open_container
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known
from tests.acceptance.scenes import extract, settings, talk
from tests.proofs.dying_processes import say

USER = "alice"
SHARED = "shared"
SHARED_BATCHES = 100
BACKGROUND = {"lease_seconds": 0.5, "poll_seconds": 0.02}
NOBODY_DIES = {"lease_seconds": 10, "poll_seconds": 0.02}
"""A lease outlasts the first reading of a process on a busy machine, else another reads the same once more."""


def batch(session_id: str, number: int) -> list[Message]:
    """Batch `number` of a session: from one message to five, told apart by their text."""
    size = number % 5 + 1
    texts = [f"{session_id} batch {number} message {index} of {size}" for index in range(size)]
    if size < 4:
        return [Message.user(text) for text in texts]
    call = ToolCall(id=f"call {number}", name="look_up", arguments={"number": number})
    question, asked, result, *answers = texts
    return [
        Message.user(question),
        Message.assistant(asked, tool_calls=[call]),
        Message.tool(result, tool_call_id=call.id),
        *map(Message.assistant, answers),
    ]


class CountingSummarizer:
    """Finds what the last words of user messages are, and writes each call down."""

    name = "counting"
    prompt_version = "1"
    condenser = None

    def __init__(self, calls: Path | None) -> None:
        self._calls = calls

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        if self._calls is not None:
            line = f"{os.getpid()} {messages[0].seq} {messages[-1].seq}\n"
            with self._calls.open("a", encoding="utf-8") as file:
                file.write(line)
        return extract(messages)

    async def aclose(self) -> None:
        pass


def memory(url: str, calls: Path | None = None, *, background: bool = True, work: Mapping[str, float] = BACKGROUND):
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(CountingSummarizer(calls)))

    return open_container(settings(url, background={**work, "enabled": background}), configure=configure)


async def save(manager: ConversationManager, session_id: str, number: int, key: str) -> None:
    """Save a batch; a database that is away is asked again."""
    say("try", session_id, number)
    while True:
        try:
            saved = await manager.save_history(session_id, batch(session_id, number), user_id=USER, idempotency_key=key)
        except StoreUnavailableError:
            say("away", session_id, number)
            await anyio.sleep(0.05)
        else:
            say("ack", session_id, number, saved.first_seq, saved.last_seq)
            return


async def append(url: str, run: str) -> None:
    async def fill(manager: ConversationManager, session_id: str) -> None:
        for number in range(100_000):
            await save(manager, session_id, number, f"key {number}")

    async with memory(url) as container, anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(fill, container.conversation_manager(), f"{run}-{number}")


async def share(url: str, name: str, calls: str) -> None:
    async with memory(url, Path(calls), work=NOBODY_DIES) as container:
        manager = container.conversation_manager()
        for number in range(SHARED_BATCHES):
            saved = await manager.save_history(
                SHARED, batch(name, number), user_id=USER, idempotency_key=f"{name} {number}"
            )
            say("ack", name, number, saved.first_seq, saved.last_seq)
            await manager.load_history(SHARED, user_id=USER)
        await manager.drain()


async def work(url: str, calls: str) -> None:
    async with memory(url, Path(calls)):
        say("ready")
        await anyio.sleep_forever()


class EndlessSummarizer(CountingSummarizer):
    """Begins, and does not end."""

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        say("held")
        await anyio.sleep_forever()
        raise AssertionError


async def hold(url: str, session_id: str) -> None:
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(EndlessSummarizer(None)))

    async with open_container(settings(url, background=BACKGROUND), configure=configure) as container:
        await container.conversation_manager().save_history(session_id, talk(30), user_id=USER)
        say("saved")
        await anyio.sleep_forever()


if __name__ == "__main__":
    task = {"append": append, "share": share, "work": work, "hold": hold}[sys.argv[1]]
    asyncio.run(task(*sys.argv[2:]))
