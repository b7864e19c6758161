"""What was erased is nowhere: not in the bytes of the database, not through a late writer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, Message, ToolCall, open_container
from reactor_memory.core.log.scrubbing import scrub
from reactor_memory.core.ports import Summarizer
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known, RangeSummary
from tests.acceptance.scenes import settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

USER = "alice"
MARKER = "zyxmarker"
"""Written by nobody else. Lower case, as the index writes its terms."""


class Teller:
    """Puts what a message says into facts and narrative, and its marker into the headline."""

    name = "teller"
    prompt_version = "1"
    condenser = None

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
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
async def memory(url: str, *, summarizer: Summarizer | None = None, **sections: Any) -> AsyncGenerator[Container]:
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(summarizer or Teller()))

    async with open_container(settings(url, **sections), configure=configure) as container:
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


async def pin_and_fork(container: Container, session_id: str, marked: range) -> str:
    manager = container.conversation_manager()
    first = seqs_of(marked)[0]
    await container.pins().add(session_id, seq=first, user_id=USER)
    facts = await container.facts().list(session_id, user_id=USER)
    said = next(each for each in facts if each.source_seq == first + 4)
    await container.pins().add(session_id, fact=(said.anchor, said.key), user_id=USER)
    fork = await manager.fork(session_id, at_seq=250, user_id=USER)
    await manager.save_history(fork.session_id, talk(250), user_id=USER)
    await manager.summarize(fork.session_id, user_id=USER)
    for each in (session_id, fork.session_id):
        told = f"{MARKER}12 was said."
        await container.summary_poster().post(
            each, text=told, until_seq=first + 1, title=told, user_id=USER, metadata={"m": told}
        )
    await manager.load_history(fork.session_id, user_id=USER, budget=1500)
    await manager.drain()
    return fork.session_id


def traces_in(folder: Path) -> dict[str, int]:
    """The files that hold the marker."""
    return {path.name: traces for path in folder.iterdir() if (traces := traces_of(path))}


async def test_no_byte_of_sqlite_holds_what_was_erased(tmp_path: Path) -> None:
    marked = range(10, 30)
    async with memory(f"sqlite:///{tmp_path}/memory.db") as container:
        manager = container.conversation_manager()
        await fill(manager, "s", marked)
        await pin_and_fork(container, "s", marked)
        assert traces_in(tmp_path)
        erased = await container.erasure().erase("s", seq=seqs_of(marked), user_id=USER)
        assert erased.message_count == len(seqs_of(marked)) + 2
        assert traces_in(tmp_path) == {}
        await manager.drain()
        context = await manager.load_history("s", user_id=USER, query=f"{MARKER}12")
        assert MARKER not in repr(context)
        assert context.report.unread == ()
        assert traces_in(tmp_path) == {}
    assert traces_in(tmp_path) == {}


@pytest.mark.postgres
async def test_no_byte_of_rewritten_postgres_database_holds_what_was_erased(postgres_dsn: str) -> None:
    marked = range(10, 30)
    async with memory(postgres_dsn) as container:
        manager = container.conversation_manager()
        await fill(manager, "s", marked)
        await pin_and_fork(container, "s", marked)
        assert await tables_with_traces(postgres_dsn)
        await container.erasure().erase("s", seq=seqs_of(marked), user_id=USER)
        await manager.drain()
        await scrub(container.database(), rewrite=True)
        assert await tables_with_traces(postgres_dsn) == {}


async def test_no_byte_of_sqlite_holds_what_an_erased_user_left(tmp_path: Path) -> None:
    async with memory(f"sqlite:///{tmp_path}/memory.db", store={"delete_grace_days": 30}) as container:
        await leave_everything(container)
        assert traces_in(tmp_path)
        erased = await container.erasure().erase_user(USER)
        assert (erased.session_count, erased.row_count) == (4, 3)
        assert traces_in(tmp_path) == {}
        assert await texts_of_bob(container) == ["what bob says"]
    assert traces_in(tmp_path) == {}


@pytest.mark.postgres
async def test_a_rewritten_postgres_database_holds_no_byte_of_erased_users(postgres_dsn: str) -> None:
    async with memory(postgres_dsn, store={"delete_grace_days": 30}) as container:
        await leave_everything(container)
        await container.erasure().erase_user(USER)
        await scrub(container.database(), rewrite=True)
        assert await tables_with_traces(postgres_dsn) == {}
        assert await texts_of_bob(container) == ["what bob says"]


async def leave_everything(container: Container) -> None:
    """Three sessions and a fork, one deleted within its grace time; a text for a range, notes, an active session."""
    manager, database = container.conversation_manager(), container.database()
    marked = range(10, 20)
    await fill(manager, "s", marked)
    await pin_and_fork(container, "s", marked)
    await manager.save_history("ranged", talk(1, mark=MARKER), user_id=USER)
    ranged = RangeSummary(
        summary_id="r",
        kind="summary",
        start_seq=1,
        end_seq=4,
        message_count=4,
        message_ids=tuple(each.message_id or "" for each in await manager.read_messages("ranged", user_id=USER)),
        text=MARKER,
        token_count=1,
        tokenizer="estimate",
        started_at=1,
        ended_at=2,
        created_at=3,
    )
    assert await database.write(range_summaries.put_range_summaries, "ranged", USER, [ranged], expected=(), now=4)
    await manager.save_history("deleted", talk(1, mark=MARKER), user_id=USER)
    await manager.delete("deleted", user_id=USER)
    for version in (1, 2):
        assert await database.write(
            note_rows.put_notes, Notes(user_id=USER, agent_name="a", version=version, text=f"{MARKER} {version}")
        )
    await database.write(active_rows.get_or_create_active, USER, "a", f"s{MARKER}", now=1)
    await manager.save_history("bob's", [Message.user("what bob says")], user_id="bob")


async def texts_of_bob(container: Container) -> list[str]:
    return [each.content for each in await container.conversation_manager().read_messages("bob's", user_id="bob")]


async def tables_with_traces(dsn: str) -> dict[str, int]:
    """The tables and indexes, system tables included, whose files hold the marker."""
    connection: Any = await asyncpg.connect(dsn)
    try:
        await connection.execute("ANALYZE")
        await connection.execute("CHECKPOINT")
        rows = await connection.fetch(
            "SELECT relname, current_setting('data_directory') || '/' || pg_relation_filepath(oid) AS path "
            "FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL"
        )
    finally:
        await connection.close()
    return {row["relname"]: traces for row in rows if (traces := traces_of(Path(row["path"])))}


def traces_of(path: Path) -> int:
    return path.read_bytes().count(MARKER.encode()) if path.exists() else 0


async def test_a_worker_that_is_extracting_brings_nothing_back(tmp_path: Path) -> None:
    """Two processes may share the database, so the one that erases cannot stop the other: it is refused."""
    url = f"sqlite:///{tmp_path}/memory.db"
    reading, may_go_on = anyio.Event(), anyio.Event()

    class Paused(Teller):
        async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
            found = await super().summarize(messages)
            if MARKER in repr(found) and not may_go_on.is_set():
                reading.set()
                await may_go_on.wait()
            return found

    async with memory(url, summarizer=Paused()) as worker, memory(url, background={"enabled": False}) as other:
        for turn in range(10):
            mark = f"{MARKER}{turn}" if turn == 1 else ""
            await worker.conversation_manager().save_history("s", talk(4 * turn + 1, mark=mark), user_id=USER)
        await reading.wait()
        await other.erasure().erase("s", seq=range(5, 9), user_id=USER)
        may_go_on.set()
        await worker.conversation_manager().drain()
        summary = await worker.conversation_manager().get_summary("s", user_id=USER)
        assert summary is not None
        assert summary.covered_seq > 8
        assert traces_in(tmp_path) == {}
