"""The log and everything derived from it in one SQLite file.

One connection writes and one reads, each on its own thread; what may take long is read by a third. An operation is one
closure on a connection's thread: a cancelled caller abandons the wait, never a transaction. Commits are durable (WAL,
``synchronous=FULL``), but for those of leases, layouts and indexes, which a power cut may take back; appends that wait
together share one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import cast

import aiosqlite
import anyio

from reactor_memory.errors import ReactorMemoryError, StoreClosedError, StoreError, StoreUnavailableError
from reactor_memory.protocols import Appended, AppendRequest, ContextQuery, ContextRows, StoreHealth
from reactor_memory.storage import log, recall, search
from reactor_memory.storage.driver_errors import is_busy, translate, translated
from reactor_memory.storage.group_commit import GroupCommit, Outcome
from reactor_memory.storage.migrating import is_behind, read_revision, upgrade
from reactor_memory.storage.queries import sqlite_queries
from reactor_memory.storage.sql_store import SqlStore
from reactor_memory.storage.steps import Batch, P, Rows, Statement, Step, Steps, T

SAFE_WITH_SEVERAL_PROCESSES = (3, 51, 3)
"""Before this version of SQLite a checkpoint may, very rarely, race with the writer of another process."""

_FULL = 2
_BUSY_PAUSE_SECONDS = 0.01


class SqliteStore(SqlStore):
    """`path` is created when missing, and its schema brought up to date, by `open`.

    A writer that finds the file locked by another process waits up to `busy_timeout_seconds`, then raises
    `StoreUnavailableError`.

    With `inline_loads` a context is read on the thread of the event loop, by a connection of its own that waits for
    nobody. That saves the way to another thread and back, most of what such a read costs, and holds up the loop for as
    long as it takes: for files that the page cache of the system holds.
    """

    def __init__(self, path: str | Path, *, busy_timeout_seconds: float = 5.0, inline_loads: bool = False) -> None:
        self._path = Path(path)
        self._busy_timeout_seconds = busy_timeout_seconds
        self._inline_loads = inline_loads
        self._inline: sqlite3.Connection | None = None
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._scanner: aiosqlite.Connection | None = None
        self._scanner_lock = anyio.Lock()
        self._appends = GroupCommit(self._commit_appends)

    async def open(self) -> None:
        if self._writer is not None:
            return
        with translated():
            self._writer = await self._connect(_prepare_writer)
            try:
                self._reader = await self._connect(_prepare_reader)
                if self._inline_loads:
                    self._inline = sqlite3.connect(self._path, timeout=0, isolation_level=None)
                    _prepare_reader(self._inline)
            except BaseException:
                await self.close()
                raise

    async def _connect(self, prepare: Callable[[sqlite3.Connection], None]) -> aiosqlite.Connection:
        """A prepared connection; its thread is not left running when that fails or is cancelled."""
        opened: list[sqlite3.Connection] = []

        def open_file() -> sqlite3.Connection:
            # Not bound to its thread, so that it can be closed when its thread has ended
            opened.append(
                sqlite3.connect(
                    self._path, timeout=self._busy_timeout_seconds, isolation_level=None, check_same_thread=False
                )
            )
            return opened[0]

        connection = aiosqlite.Connection(open_file, iter_chunk_size=64)
        connection._thread.daemon = True  # pyright: ignore[reportPrivateUsage] (who forgets `close` can still exit)
        try:
            await connection
        except BaseException:
            # aiosqlite has told the thread to end, which it must have done before the event loop is closed, and has
            # forgotten what the thread opened
            connection._thread.join()  # pyright: ignore[reportPrivateUsage]
            for left in opened:
                left.close()
            raise
        try:
            await self._prepare(connection, prepare)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _prepare(self, connection: aiosqlite.Connection, prepare: Callable[[sqlite3.Connection], None]) -> None:
        """SQLite does not wait for its busy timeout when another process switches a new file to WAL, so we do."""
        deadline = anyio.current_time() + self._busy_timeout_seconds
        while True:
            try:
                return await run_on_thread(connection, prepare)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or anyio.current_time() > deadline:
                    raise
            await anyio.sleep(_BUSY_PAUSE_SECONDS)

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._appends.finish()
            finally:
                await self._close_connections()

    async def _close_connections(self) -> None:
        """Each of them, also when the task is cancelled while it waits for one."""
        async with AsyncExitStack() as closing:
            for connection in (self._writer, self._reader, self._scanner):
                if connection is not None:
                    closing.push_async_callback(connection.close)
            if self._inline is not None:
                closing.callback(self._inline.close)
            self._writer = self._reader = self._scanner = self._inline = None

    async def append(self, request: AppendRequest) -> Appended:
        if self._writer is None:
            raise StoreClosedError
        return await self._appends.append(request)

    async def read_context(self, query: ContextQuery) -> ContextRows:
        if self._inline is None:
            return await super().read_context(query)
        try:
            with translated():
                return _run_in(self._inline, "BEGIN", log.read_context(query))
        except StoreUnavailableError:  # locked, which is rare for a reader: wait for it elsewhere
            return await super().read_context(query)

    async def scrub(self, *, rewrite: bool = False) -> None:
        """The full-text index keeps deleted terms until its parts are merged, the WAL what it is not rid of yet."""
        with translated():
            for merge in (Step("merge_index", {}), Step("merge_search", {})):
                while await self._on_writer(partial(_merge, merge)):
                    pass
            if rewrite:
                await self._on_writer(lambda writer: _execute(writer, Step("rewrite", {})))
            await self._on_writer(lambda writer: _pragma(writer, "wal_checkpoint(TRUNCATE)"))

    async def check(self) -> StoreHealth:
        with translated():
            return await self._on_reader(partial(_check, self._path))

    async def _read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated():
            return await self._on_reader(lambda reader: _run_in(reader, "BEGIN", operation(*args, **kwargs)))

    async def _write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated():
            return await self._on_writer(lambda writer: _run_in(writer, "BEGIN IMMEDIATE", operation(*args, **kwargs)))

    async def _note(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated():
            return await self._on_writer(
                lambda writer: _without_waiting(
                    writer, lambda: _run_in(writer, "BEGIN IMMEDIATE", operation(*args, **kwargs))
                )
            )

    async def _scan(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated():
            scanner = await self._opened_scanner()
            return await run_on_thread(scanner, lambda scanner: _run_in(scanner, "BEGIN", operation(*args, **kwargs)))

    async def _opened_scanner(self) -> aiosqlite.Connection:
        """A connection of its own for what may take long, opened when it is first needed."""
        async with self._scanner_lock:
            if self._reader is None:
                raise StoreClosedError
            if self._scanner is None:
                self._scanner = await self._connect(_prepare_reader)
            return self._scanner

    async def _commit_appends(self, requests: Sequence[AppendRequest]) -> Sequence[Outcome]:
        return await self._on_writer(partial(_append_all, requests))

    async def _on_writer(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._writer is None:
            raise StoreClosedError
        return await run_on_thread(self._writer, work)

    async def _on_reader(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            raise StoreClosedError
        return await run_on_thread(self._reader, work)


async def run_on_thread(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` as a whole on the thread of the connection; only plain values may come back.

    aiosqlite offers one statement per call; its private `_execute` takes any function. It also writes what it is given
    into its debug log: a function without arguments says nothing of messages.
    """
    raw = connection._conn  # pyright: ignore[reportPrivateUsage]
    return cast(T, await connection._execute(lambda: work(raw)))  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]


# What follows runs on the thread of a connection


def _in_transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _run(connection: sqlite3.Connection, steps: Steps[T]) -> T:
    try:
        step = next(steps)
        while True:
            step = steps.send(_execute(connection, step))
    except StopIteration as done:
        return done.value


def _run_in(connection: sqlite3.Connection, begin: str, steps: Steps[T]) -> T:
    return _in_transaction(connection, begin, lambda connection: _run(connection, steps))


def _without_waiting(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """A commit meanwhile goes to the file, where no end of a process can harm it, but does not wait for the disk. The
    next one that waits takes it along.
    """
    _pragma(connection, "synchronous = NORMAL")
    try:
        return work()
    finally:
        _pragma(connection, "synchronous = FULL")


def _execute(connection: sqlite3.Connection, step: Step | Batch | Statement) -> Rows:
    if isinstance(step, Statement):
        return connection.execute(step.text).fetchall()
    query = sqlite_queries()[step.name]
    if isinstance(step, Step):
        return connection.execute(query.text, query.arguments(step.values)).fetchall()
    connection.executemany(query.text, map(query.arguments, step.values))
    return ()


def _merge(merge: Step, connection: sqlite3.Connection) -> bool:
    """Merge a part of a full-text index, in a transaction of its own; whether there may be more to merge."""
    before = connection.total_changes
    _execute(connection, merge)
    return connection.total_changes - before > 1  # one, if nothing was left to merge


def _append_all(requests: Sequence[AppendRequest], connection: sqlite3.Connection) -> Sequence[Outcome]:
    """All in one commit. If the database fails one of them, each again on its own, so that it fails alone."""
    try:
        return _in_transaction(
            connection, "BEGIN IMMEDIATE", lambda writer: [_append(writer, request) for request in requests]
        )
    except Exception as error:
        if len(requests) == 1:
            return [_as_outcome(error)]
        return [_append_all([request], connection)[0] for request in requests]


def _append(connection: sqlite3.Connection, request: AppendRequest) -> Outcome:
    """What refuses an append (the owner, the key, a deletion) comes before its first write, so it undoes nothing."""
    try:
        return _run(connection, log.append(request))
    except ReactorMemoryError as refusal:
        return refusal


def _as_outcome(error: Exception) -> StoreError:
    outcome = translate(error)
    outcome.__cause__ = error if isinstance(error, sqlite3.Error) else None
    return outcome


def _prepare_writer(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone():
        raise StoreError("store: this SQLite was built without FTS5; use another build of Python, or postgresql://")
    _pragma(connection, "journal_mode = WAL")
    _pragma(connection, "secure_delete = ON")
    _pragma(connection, "synchronous = FULL")
    if _pragma(connection, "journal_mode") != "wal" or _pragma(connection, "synchronous") != _FULL:
        raise StoreError("store: the database file does not support durable commits (WAL); use a local disk")
    if is_behind(_run(connection, read_revision())):
        _run_in(connection, "BEGIN IMMEDIATE", upgrade("sqlite"))


def _prepare_reader(connection: sqlite3.Connection) -> None:
    _pragma(connection, "query_only = ON")


def _pragma(connection: sqlite3.Connection, pragma: str) -> object:
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return row[0] if row else None


def _check(path: Path, connection: sqlite3.Connection) -> StoreHealth:
    revision = _run(connection, read_revision())
    sessions, messages = _execute(connection, Step("totals", {}))[0]
    indexed = _execute(connection, Step("recall_state", {}))[0]
    gaps = _execute(connection, Step("gaps", {"limit": 20}))
    size = cast(int, _pragma(connection, "page_count")) * cast(int, _pragma(connection, "page_size"))
    return StoreHealth(
        details=(
            ("store", f"SQLite {sqlite3.sqlite_version}"),
            ("file", str(path)),
            ("schema", revision or "none"),
            ("sessions", str(sessions)),
            ("messages", str(messages)),
            recall.state_detail(indexed),
            search.state_detail(_run(connection, search.search_backlog(None))),
            ("size", f"{size} bytes"),
            ("several processes", _several_processes()),
        ),
        problems=(*_damages(connection), *log.gap_problems(gaps)),
    )


def _damages(connection: sqlite3.Connection) -> tuple[str, ...]:
    found = (row[0] for row in connection.execute("PRAGMA quick_check(20)").fetchall())
    return tuple(f"damaged: {text}" for text in found if text != "ok")


def _several_processes() -> str:
    if sqlite3.sqlite_version_info >= SAFE_WITH_SEVERAL_PROCESSES:
        return "may write to the file"
    safe = ".".join(map(str, SAFE_WITH_SEVERAL_PROCESSES))
    return f"better not write to the file at once: SQLite is older than {safe}"
