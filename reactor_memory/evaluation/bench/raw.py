"""The reference, opened: its held connections, and rows to append that are those of the library, byte for byte."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from uuid import uuid4

import aiosqlite
import asyncpg

from reactor_memory.evaluation.bench import reference_postgres, reference_sqlite
from reactor_memory.evaluation.bench.bench_sessions import SAMPLE
from reactor_memory.evaluation.bench.reference_commits import Commits
from reactor_memory.models import Value

Call: TypeAlias = Callable[..., Awaitable[object]]

READERS = 8
"""Held connections to PostgreSQL that read; as many as the library has by default."""


class Raw(Value, frozen=True, kw_only=True):
    """The bare driver on a copy of the database. `last` takes a session and a number of messages, `memory` a session
    and a budget, `append` and `commit` (many of them in one transaction) rows. `sync_...` are the same on this thread.
    """

    last: Call
    memory: Call
    cold: Call
    append: Call
    commit: Call
    hop: Call
    turns: Turns
    sync_turns: Turns | None = None
    sync_last: Callable[..., object] | None = None
    sync_memory: Callable[..., object] | None = None
    sync_append: Callable[..., object] | None = None


def new_keys() -> Iterator[str]:
    """Idempotency keys that were never used."""
    run = uuid4().hex[:12]
    return (f"bench:{run}:{number}" for number in count())


class Turns:
    """Makes the rows of a turn for the end of any session."""

    def __init__(self, sample: Sequence[Sequence[Any]], last_seqs: Mapping[str, int]) -> None:
        self._sample = sample
        self._next_seqs = {session: last + 1 for session, last in last_seqs.items()}
        self._keys = new_keys()

    def rows(self, session: str) -> list[tuple[Any, ...]]:
        seq = self._next_seqs[session]
        self._next_seqs[session] += len(self._sample)
        first, *others = self._sample
        key = next(self._keys)
        return [
            (session, session, key, *first[3:5], seq, *first[6:]),
            *((session, session, None, *row[3:5], seq + 1 + at, *row[6:]) for at, row in enumerate(others)),
        ]


_SAMPLE = (
    "SELECT group_id, conversation_id, batch_key, batch_fingerprint, batch_size, {columns} FROM messages "
    "WHERE conversation_id = '{session}' ORDER BY seq"
)
_LAST_SEQS = "SELECT conversation_id, max(seq) FROM messages GROUP BY conversation_id"


@asynccontextmanager
async def sqlite_raw(path: str, sync_path: str) -> AsyncGenerator[Raw]:
    """The synchronous driver has a copy of its own: what it wrote would empty the caches of the other connections."""
    async with AsyncExitStack() as opened:
        reader = await opened.enter_async_context(_connection(path))
        writer = await opened.enter_async_context(_connection(path))
        sync = sqlite3.connect(sync_path, isolation_level=None)
        opened.callback(sync.close)
        _prepare(sync)
        on_reader = partial(reference_sqlite.run, reader)
        on_writer = partial(reference_sqlite.run, writer)
        yield Raw(
            last=partial(on_reader, reference_sqlite.last),
            memory=partial(on_reader, reference_sqlite.memory),
            cold=partial(reference_sqlite.cold, path),
            append=partial(on_writer, reference_sqlite.append),
            commit=Commits(partial(on_writer, reference_sqlite.insert)).append,
            hop=partial(on_reader, _nothing),
            turns=await on_reader(_turns),
            sync_turns=_turns(sync),
            sync_last=partial(reference_sqlite.last, sync),
            sync_memory=partial(reference_sqlite.memory, sync),
            sync_append=partial(reference_sqlite.append, sync),
        )


@asynccontextmanager
async def _connection(path: str) -> AsyncGenerator[aiosqlite.Connection]:
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await reference_sqlite.run(connection, _prepare)
        yield connection


def _prepare(connection: sqlite3.Connection) -> None:
    """The same durability as the library's."""
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")


def _turns(connection: sqlite3.Connection) -> Turns:
    """Reads where the sessions of this file end."""
    sample = connection.execute(_SAMPLE.format(session=SAMPLE, columns=reference_sqlite.COLUMNS)).fetchall()
    return Turns(sample, dict(connection.execute(_LAST_SEQS).fetchall()))


def _nothing(connection: sqlite3.Connection) -> None:
    """What an empty hop does on the thread."""


@asynccontextmanager
async def postgres_raw(url: str) -> AsyncGenerator[Raw]:
    async with AsyncExitStack() as opened:
        readers = [await _held(opened, url) for _ in range(READERS)]
        writer = await _held(opened, url)
        insert = await writer.prepare(reference_postgres.INSERT)
        append = partial(reference_postgres.append, insert)
        sample = await writer.fetch(_SAMPLE.format(session=SAMPLE, columns=reference_postgres.COLUMNS))
        yield Raw(
            last=await _prepared(readers, reference_postgres.LAST),
            memory=await _prepared(readers, reference_postgres.MEMORY),
            cold=partial(reference_postgres.cold, url),
            append=append,
            commit=Commits(append).append,
            hop=await _prepared(readers, "SELECT 1"),
            turns=Turns(sample, dict(await writer.fetch(_LAST_SEQS))),
        )


async def _held(opened: AsyncExitStack, url: str) -> Any:
    driver: Any = asyncpg
    connection = await driver.connect(url)
    opened.push_async_callback(connection.close)
    return connection


async def _prepared(connections: Sequence[Any], text: str) -> Call:
    """A statement on whichever of the connections is free, the one used last first."""
    free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
    for connection in connections:
        free.put_nowait(await connection.prepare(text))

    async def fetch(*values: object) -> object:
        statement = await free.get()
        try:
            return await statement.fetch(*values)
        finally:
            free.put_nowait(statement)

    return fetch
