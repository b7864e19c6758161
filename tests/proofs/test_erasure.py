"""What was erased is nowhere: not in the bytes of the database, not after a kill, not through a late writer."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, Message, ToolCall, open_memory
from reactor_memory.models import Extraction, Fact, Notes
from tests.acceptance.scenes import settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

USER = "alice"
MARKER = "zyxmarker"
"""Written by nobody else. Lower case, as the index writes its terms."""


class Teller:
    """Puts what a message says into facts and narrative, and its marker into the headline."""

    name = "teller"
    prompt_version = "1"

    async def summarize(self, messages: Sequence[Message], *, existing_facts: Sequence[Fact] = ()) -> Extraction:
        facts = tuple(
            Fact(anchor=f"thing {each.seq} {mark}", key="said", value=each.content, source_seq=each.seq or 0)
            for each in messages
            if each.role == "user"
            for mark in [MARKER if MARKER in each.content else "plain"]
        )
        told = " ".join(each.content for each in messages if each.role == "user")
        return Extraction(facts=facts, narrative=f"It was said {told}.", headline=told[:80])

    async def aclose(self) -> None:
        pass


@asynccontextmanager
async def memory(url: str, **sections: Any) -> AsyncIterator[Container]:
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(Teller()))

    async with open_memory(settings(url, **sections), configure=configure) as container:
        yield container


def talk(start: int, *, mark: str = "") -> list[Message]:
    """A turn of four messages with a tool call; each of them holds `mark` in every place that it has."""
    call = ToolCall(id=f"c{start}{mark}", name="look_up", arguments={"what": f"{mark} {start}"})
    return [
        Message.user(f"number {start} {mark}", name=mark or None, metadata={"note": mark}, author_id=mark or None),
        Message.assistant(f"asking {mark}", tool_calls=[call]),
        Message.tool(f"{mark} found {start}", tool_call_id=call.id, parts=({"type": "text", "text": mark},)),
        Message.assistant(f"it is {start} {mark}"),
    ]


async def fill(manager: ConversationManager, session_id: str, marked: range) -> None:
    """Eighty turns, those of `marked` with the marker; loads and pins along the way, so that everything is written."""
    for turn in range(80):
        mark = f"{MARKER}{turn}" if turn in marked else ""
        await manager.save_history(session_id, talk(4 * turn + 1, mark=mark), user_id=USER, idempotency_key=f"k{turn}")
        if turn % 5 == 4:
            await manager.drain()
            for budget in (None, 1500):
                await manager.load_history(session_id, user_id=USER, budget=budget, message=Message.user("and now?"))
    await manager.drain()


def seqs_of(marked: range) -> range:
    return range(4 * marked.start + 1, 4 * marked.stop + 1)


async def pin_and_fork(manager: ConversationManager, session_id: str, marked: range) -> str:
    first = seqs_of(marked)[0]
    await manager.pin(session_id, seq=first, user_id=USER)
    facts = await manager.read_facts(session_id, user_id=USER)
    said = next(each for each in facts if each.source_seq == first + 4)
    await manager.pin(session_id, fact=(said.anchor, said.key), user_id=USER)
    fork = await manager.fork(session_id, at_seq=250, user_id=USER)
    await manager.save_history(fork.session_id, talk(250), user_id=USER)
    await manager.summarize(fork.session_id, user_id=USER)
    await manager.load_history(fork.session_id, user_id=USER, budget=1500)
    await manager.drain()
    return fork.session_id


def traces_in(files: Iterator[Path]) -> dict[str, int]:
    return {path.name: count for path in files if (count := path.read_bytes().count(MARKER.encode()))}


async def test_no_byte_of_sqlite_holds_what_was_erased(tmp_path: Path) -> None:
    marked = range(10, 30)
    async with memory(f"sqlite:///{tmp_path}/memory.db") as container:
        manager = container.conversation_manager()
        await fill(manager, "s", marked)
        await pin_and_fork(manager, "s", marked)
        assert traces_in(tmp_path.iterdir())
        erased = await manager.erase("s", seq=seqs_of(marked), user_id=USER)
        assert erased.message_count == len(seqs_of(marked))
        assert traces_in(tmp_path.iterdir()) == {}
        await manager.drain()
        assert traces_in(tmp_path.iterdir()) == {}
        context = await manager.load_history("s", user_id=USER, query=f"{MARKER}12")
        assert MARKER not in repr(context)
        assert context.report.unread == ()
    assert traces_in(tmp_path.iterdir()) == {}
