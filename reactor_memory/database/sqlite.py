"""A SQLite file as a database.

One connection writes and one reads, each on its own thread; what may take long is read by a third. An operation is one
closure on a connection's thread: a cancelled caller abandons the wait, never a transaction. Commits are durable (WAL,
``synchronous=FULL``), but for those of `write_relaxed`, which a power cut may take back; grouped writes share one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal, TypeAlias
from urllib.parse import quote

import anyio

from reactor_memory.database.blocking_calls import aside, may_block
from reactor_memory.database.database import Database, Engine
from reactor_memory.database.deadlines import end_of_call, seconds_until
from reactor_memory.database.driver_errors import is_busy, read_only, translate, translated
from reactor_memory.database.forks import Process
from reactor_memory.database.grouped_writes import Waiting
from reactor_memory.database.inline_reads import InlineReads
from reactor_memory.database.operations import GroupedWrite, P, Query, R, Rows, Steps, T, Values
from reactor_memory.database.schema import (
    is_behind,
    prepared_schema,
    read_revision,
    require_newest,
    statements_of,
    upgrade,
)
from reactor_memory.database.sqlite_thread import GRACE_SECONDS, SqliteThread
from reactor_memory.database.sqlite_transactions import READ, SINGLE, WRITE, SqliteSession
from reactor_memory.database.sqlite_writes import SqliteWrites
from reactor_memory.database.statements import Statements
from reactor_memory.errors import (
    ReactorMemoryError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

InlineLoads: TypeAlias = Literal["auto", "always", "never"]

_FULL = 2


class SqliteDatabase(Database):
    """`path` is created when missing, and its schema brought up to date, by `open`. A new file gets the permissions
    `file_mode`, which those beside it (``-wal``, ``-shm``) take over from it. A file that cannot be written, or lies
    where nothing can be, is opened for reading; a write then raises `StoreReadOnlyError`.

    A call that finds the file locked by another process waits until its deadline: `timeout_seconds` from when it came,
    unless the caller set one.

    `inline_reads`: operations that are `bounded` run on the thread of the event loop, by a connection of their own that
    waits for nobody. That saves the way to another thread and back, most of what such a read costs, and holds up the
    loop for as long as it takes. ``auto`` goes to the thread for a while when they take much of the loop's time (more
    than a hundredth, in processor time or waiting for a disk). None does beside a detector of blocking calls.
    """

    engine: ClassVar[Engine] = "sqlite"

    def __init__(
        self,
        path: str | Path,
        statements: Statements,
        *,
        timeout_seconds: float = 10.0,
        inline_reads: InlineLoads = "never",
        file_mode: int = 0o600,
    ) -> None:
        self._path = Path(path)
        self._file_mode = file_mode
        self._statements = statements
        self._timeout_seconds = timeout_seconds
        self._inline_reads = inline_reads
        self._inline: SqliteSession | None = None
        self._inline_thread = 0
        self._inline_time = InlineReads()
        self._writer: SqliteThread | None = None
        self._reader: SqliteThread | None = None
        self._scanner: SqliteThread | None = None
        self._scanner_lock = anyio.Lock()
        self._address = ""
        self._copy: TemporaryDirectory[str] | None = None
        self._writes: SqliteWrites | None = None
        self._process = Process()

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        if self._reader is not None:
            return
        self._process = Process()
        ends = end_of_call(self._timeout_seconds)
        with translated():
            try:
                self._writer = await self._opened_writer(ends)
                self.is_read_only = self._writer is None
                self._reader = await (self._opened_for_reading(ends) if self.is_read_only else self._started_reader())
                if self._inline_reads != "never":
                    self._inline, self._inline_thread = await aside(self._connect_reader), threading.get_ident()
            except BaseException:
                await self.close()
                raise

    async def _opened_writer(self, ends: float) -> SqliteThread | None:
        """None if the file can only be read."""
        self._address = await anyio.to_thread.run_sync(_created, self._path, self._file_mode)
        thread = await SqliteThread.started(self._connect)
        try:
            await thread.run(lambda: _prepare_writer(thread.session, ends), ends, writes=False)
        except sqlite3.OperationalError as error:
            await thread.close()
            if not _cannot_write(error) or not await aside(self._path.exists):
                raise
            return None
        except BaseException:
            await thread.close()
            raise
        self._writes = SqliteWrites(thread, lambda batch, ends: _write_all(thread.session, batch, ends))
        return thread

    async def _opened_for_reading(self, ends: float) -> SqliteThread:
        """Open the file beside processes that may write to it. Where the file that coordinates readers and writers
        cannot be made, nobody writes: then without it, or from a copy if a writer left something in the log beside it.
        """
        self._address += "?mode=ro"
        try:
            return await self._checked_reader(ends)
        except sqlite3.OperationalError as error:
            if not _cannot_write(error):
                raise
        if await aside(_has_rows, _log_of(self._path)):
            self._copy = await anyio.to_thread.run_sync(_copied, self._path)
            self._address = await aside(_address_of, Path(self._copy.name, self._path.name))
        else:
            self._address += "&immutable=1"
        return await self._checked_reader(ends)

    async def _checked_reader(self, ends: float) -> SqliteThread:
        reader = await self._started_reader()
        try:
            await reader.run(lambda: reader.session.run(READ, require_newest, ends), ends, writes=False)
        except BaseException:
            await reader.close()
            raise
        return reader

    async def _started_reader(self) -> SqliteThread:
        return await SqliteThread.started(self._connect_reader)

    def _connect(self) -> SqliteSession:
        # Not bound to its thread, so that it can be closed when its thread has ended
        connection = sqlite3.connect(
            self._address, uri=True, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        return SqliteSession(connection, self._statements.sqlite, self._lost)

    def _lost(self, group_ids: Sequence[str] | None) -> None:
        if self.on_loss is not None:
            self.on_loss(group_ids)

    def _connect_reader(self) -> SqliteSession:
        session = self._connect()
        session.pragma("query_only = ON")
        return session

    async def close(self) -> None:
        if not self._process.is_this:
            return
        ends = end_of_call(self._timeout_seconds)
        with anyio.CancelScope(shield=True):
            try:
                with anyio.move_on_after(seconds_until(ends)):
                    if self._writes is not None:
                        await self._writes.finish()
            finally:
                with anyio.move_on_after(seconds_until(ends) + GRACE_SECONDS):
                    await self._close_connections()

    async def _close_connections(self) -> None:
        """Each of them, also when the task is cancelled while it waits for one."""
        async with AsyncExitStack() as closing:
            if self._copy is not None:
                closing.push_async_callback(anyio.to_thread.run_sync, self._copy.cleanup)
            for thread in (self._writer, self._reader, self._scanner):
                if thread is not None:
                    closing.push_async_callback(thread.close)
            if self._inline is not None:
                closing.callback(self._inline.connection.close)
            self._writer = self._writes = self._reader = self._scanner = self._inline = self._copy = None

    # -- the verbs ----------------------------------------------------------------------------------------------

    async def read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._process.check()
        begin = SINGLE if getattr(operation, "is_single", False) else READ
        if (session := self._inline) is not None and self._may_read_inline(operation):
            ends = self._inline_time.began()
            try:
                return session.read_now(begin, operation(*args, **kwargs), ends)
            except StoreUnavailableError:  # locked, which is rare for a reader: wait for it elsewhere
                pass
            finally:
                self._inline_time.ended()
        ends = end_of_call(self._timeout_seconds)
        with translated():
            return await self._on(self._reader, begin, partial(operation, *args, **kwargs), ends)

    async def read_long(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        ends = end_of_call(self._timeout_seconds)
        with translated():
            return await self._on(await self._opened_scanner(), READ, lambda: operation(*args, **kwargs), ends)

    async def write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        ends = end_of_call(self._timeout_seconds)
        with translated():
            return await self._on(self._for_writing(), WRITE, lambda: operation(*args, **kwargs), ends)

    async def write_relaxed(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        ends = end_of_call(self._timeout_seconds)
        writer = self._for_writing()
        session = writer.session
        with translated():
            return await writer.run(
                lambda: session.relaxed(lambda: session.run(WRITE, lambda: operation(*args, **kwargs), ends)),
                ends,
                writes=True,
            )

    async def one(self, statement: str, values: Values, *, is_repeatable: bool = False) -> Rows:
        ends = end_of_call(self._timeout_seconds)
        writer = self._for_writing()
        with translated():
            return await writer.run(
                lambda: writer.session.execute_alone(Query(statement, values), ends), ends, writes=True
            )

    async def write_grouped(self, write: GroupedWrite[R, T], request: R) -> T:
        ends = end_of_call(self._timeout_seconds)
        self._for_writing()
        if self._writes is None:
            raise StoreClosedError
        return await self._writes.put(write, request, ends)

    async def checkpoint(self) -> bool:
        ends = end_of_call(self._timeout_seconds)
        writer = self._for_writing()
        with translated():
            return await writer.run(lambda: writer.session.checkpoint(ends), ends, writes=True)

    # -- how they run -------------------------------------------------------------------------------------------

    async def _on(self, thread: SqliteThread | None, begin: str, steps: Callable[[], Steps[T]], ends: float) -> T:
        if thread is None:
            raise StoreClosedError
        session = thread.session
        return await thread.run(lambda: session.run(begin, steps, ends), ends, writes=begin is WRITE)

    def _for_writing(self) -> SqliteThread:
        self._process.check()
        if self._writer is not None:
            return self._writer
        if self.is_read_only and self._reader is not None:
            raise read_only()
        raise StoreClosedError

    def _may_read_inline(self, operation: Callable[..., object]) -> bool:
        return (
            getattr(operation, "is_bounded", False)
            and threading.get_ident() == self._inline_thread
            and (self._inline_reads == "always" or self._inline_time.may_run())
            and may_block()
        )

    async def _opened_scanner(self) -> SqliteThread:
        """A connection of its own for what may take long, opened when it is first needed."""
        self._process.check()
        async with self._scanner_lock:
            if self._reader is None:
                raise StoreClosedError
            if self._scanner is None:
                self._scanner = await SqliteThread.started(self._connect_reader)
            return self._scanner


# What follows runs on the thread of a connection


def _write_all(session: SqliteSession, batch: Sequence[Waiting], ends: float) -> Sequence[object]:
    """Write all in one commit. If the database refuses a value of one of them, each is written again on its own, so
    that only that one fails; a lock, a full disk or a deadline fails them all.
    """
    try:
        return session.transact(WRITE, lambda: [_write(session, waiting) for waiting in batch], ends)
    except Exception as error:
        outcome = _as_outcome(error)
        if len(batch) == 1 or isinstance(outcome, StoreUnavailableError | StoreFullError):
            return [outcome] * len(batch)
        return [_write_all(session, [waiting], ends)[0] for waiting in batch]


def _write(session: SqliteSession, waiting: Waiting) -> object:
    """A write is refused before its first statement that writes, so there is nothing to undo."""
    if not waiting.begin():
        return None
    try:
        return session.run_steps(partial(waiting.write.alone, waiting.request))
    except ReactorMemoryError as refusal:
        return refusal


def _as_outcome(error: Exception) -> ReactorMemoryError:
    if isinstance(error, ReactorMemoryError):
        return error
    outcome = translate(error)
    outcome.__cause__ = error if isinstance(error, sqlite3.Error) else None
    return outcome


def check_place(path: Path) -> None:
    """Raises `StoreUnavailableError` where no file can be made."""
    if path.is_dir():
        raise StoreUnavailableError(f"store: {path} is a folder; name a file in it")
    if path.parent.exists() and not path.parent.is_dir():
        raise StoreUnavailableError(f"store: {path.parent} is a file, no folder; name another file")
    if not path.parent.is_dir():
        raise StoreUnavailableError(f"store: the folder {path.parent} does not exist; make it, or name another file")
    if not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreUnavailableError(f"store: the folder {path.parent} cannot be written; allow it, or name another")


def _created(path: Path, mode: int) -> str:
    """The address of the file, which is made empty: SQLite takes that for a new database. If it cannot be made although
    its folder exists, SQLite reports why.
    """
    check_place(path)
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        path.chmod(mode)  # past the umask, which may take bits away
    return _address_of(path)


def _address_of(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _has_rows(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def _copied(path: Path) -> TemporaryDirectory[str]:
    copy = TemporaryDirectory(prefix="reactor-memory-", ignore_cleanup_errors=True)
    try:
        for file in (path, _log_of(path)):
            copyfile(file, Path(copy.name, file.name))
    except BaseException:
        copy.cleanup()
        raise
    return copy


def _cannot_write(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _prepare_writer(session: SqliteSession, ends: float) -> None:
    """Another process may be switching the same new file to WAL, which locks it for every statement."""
    session.repeat(lambda: _make_durable(session), ends)
    _bring_up_to_date(session, ends)
    _check_writable(session)


def _check_writable(session: SqliteSession) -> None:
    """A connection to a file that cannot be written raises nothing before its first write."""
    try:
        session.execute(Query("touch", {}))
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise


def _make_durable(session: SqliteSession) -> None:
    if not session.connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone():
        raise StoreError("store: this SQLite was built without FTS5; use another build of Python, or postgresql://")
    session.pragma("journal_mode = WAL")
    session.pragma("secure_delete = ON")
    session.pragma("synchronous = FULL")
    if session.pragma("journal_mode") != "wal" or session.pragma("synchronous") != _FULL:
        raise StoreError("store: the database file does not support durable commits (WAL); use a local disk")


def _bring_up_to_date(session: SqliteSession, ends: float) -> None:
    revision = session.run(READ, read_revision, ends)
    while is_behind(revision):
        known, statements = revision, missing_statements(revision)
        found = session.run(WRITE, lambda known=known, statements=statements: upgrade(known, statements), ends)
        revision = session.run(READ, read_revision, ends) if found == known else found


def missing_statements(revision: str | None) -> Sequence[str]:
    """What brings a file from `revision` to the newest schema: Alembic is asked for an older one only."""
    if revision is None:
        return tuple(statements_of(prepared_schema()))
    from reactor_memory.database.migrations import migration_statements

    return migration_statements("sqlite", revision)
