"""Opening a file: many at once, and nobody waits for what another one imports."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from reactor_memory.database import sqlite
from reactor_memory.database.inline_reads import BURST_SECONDS, SLOW_SECONDS
from reactor_memory.database.schema import newest_revision
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.models.requests import ContextQuery
from reactor_memory.testing import append_messages, numbered
from tests.scenes.stores import SqlStore, sqlite_store
from tests.scenes.troubled_databases import rows

pytestmark = pytest.mark.anyio

PROCESSES = 8

_OPENER = """
import sys, anyio
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.wiring.queries import QUERIES

async def main(path):
    database = SqliteDatabase(path, QUERIES, timeout_seconds=60)
    print("ready", flush=True)
    sys.stdin.readline()
    await database.open()
    await database.close()

anyio.run(main, sys.argv[1])
"""


@pytest.mark.slow
def test_8_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OPENER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert errors == [""] * PROCESSES
    assert rows(path, "SELECT version_num FROM reactor_memory_revision") == [(newest_revision(),)]


async def test_others_write_while_migrations_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    store = sqlite_store(path)
    await store.open()
    await store.close()
    make_older(path)
    imports, may_go_on = threading.Event(), threading.Event()

    def statements(*_: object) -> tuple[str, ...]:
        imports.set()
        assert may_go_on.wait(60)
        return (f"UPDATE reactor_memory_revision SET version_num = '{newest_revision()}'",)

    monkeypatch.setattr(sqlite, "missing_statements", statements)
    opening = asyncio.create_task(store.open())
    try:
        assert await asyncio.to_thread(imports.wait, 60)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("COMMIT")
    finally:
        may_go_on.set()
    await opening
    await append_messages(store, "s", numbered(1))
    await store.close()


def make_older(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE reactor_memory_revision SET version_num = '0000'")


# -- reads on the thread of the event loop ----------------------------------------------------------------------------


@pytest.fixture
async def reads(tmp_path: Path) -> AsyncIterator[Reads]:
    reads = Reads(sqlite_store(tmp_path / "memory.db", inline_reads="auto"))
    await reads.store.open()
    await append_messages(reads.store, "s", numbered(3))
    yield reads
    await reads.store.close()


class Reads:
    """A store whose inline reads are noticed."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store

    async def is_inline(self, *, while_it_reads: Callable[[], object] = lambda: None) -> bool:
        threads: list[int] = []

        def note(_: str) -> None:
            threads.append(threading.get_ident())
            while_it_reads()

        for connection in self._connections():
            connection.set_trace_callback(note)
        context = await self.store.read_context(ContextQuery(session_id="s", user_id="u1", last_count=2))
        assert [message.seq for message in context.messages] == [2, 3]
        assert len(set(threads)) == 1
        return threads[0] == threading.get_ident()

    def _connections(self) -> list[Any]:
        database = self.store.database
        assert isinstance(database, SqliteDatabase)
        assert database._inline is not None
        assert database._reader is not None
        return [database._inline.connection, database._reader.session.connection]


def compute(seconds: float) -> None:
    ends = thread_time() + seconds
    while thread_time() < ends:
        pass


async def test_reads_that_take_the_loops_time_go_to_the_thread(reads: Reads) -> None:
    assert await reads.is_inline()
    await reads.is_inline(while_it_reads=lambda: compute(BURST_SECONDS))
    assert not await reads.is_inline()


async def test_reads_that_wait_for_their_processor_stay_inline(reads: Reads) -> None:
    for _ in range(3):
        await reads.is_inline(while_it_reads=lambda: threading.Event().wait(2 * SLOW_SECONDS))
    assert await reads.is_inline()


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


@pytest.mark.parametrize(("options", "mode"), [({}, 0o600), ({"file_mode": 0o660}, 0o660)])
@pytest.mark.parametrize("umask", [0, 0o077])
async def test_new_files_have_the_mode_that_was_asked_for(
    tmp_path: Path, options: dict[str, Any], mode: int, umask: int
) -> None:
    store = sqlite_store(tmp_path / "memory.db", **options)
    before = os.umask(umask)
    try:
        await store.open()
        await append_messages(store, "s1", numbered(2))
        found = modes_in(tmp_path)
    finally:
        os.umask(before)
        await store.close()
    assert found == {"memory.db": mode, "memory.db-wal": mode, "memory.db-shm": mode}


async def test_a_file_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch(mode=0o640)
    store = sqlite_store(path)
    await store.open()
    await store.close()
    assert modes_in(tmp_path)["memory.db"] == 0o640
