"""A database in memory: SQLite without a file, for tests, trials and what need not outlive the process.

One connection behind a lock. A short operation runs on the thread of its caller; what may take long runs on another
one, and while it holds the lock, short ones wait on threads of their own, so the event loop never does. Beside a
detector of blocking calls all of them run there.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from time import monotonic
from typing import ClassVar

import anyio.to_thread

from reactor_memory.database.blocking_calls import aside, may_block
from reactor_memory.database.database import Database, Engine
from reactor_memory.database.deadlines import end_of_call, seconds_until
from reactor_memory.database.driver_errors import timed_out, translated
from reactor_memory.database.forks import Process
from reactor_memory.database.operations import GroupedWrite, P, Query, R, Rows, Steps, T, Values
from reactor_memory.database.schema import prepared_schema
from reactor_memory.database.sqlite_thread import GRACE_SECONDS
from reactor_memory.database.sqlite_transactions import READ, WRITE, SqliteSession
from reactor_memory.database.statements import Statements
from reactor_memory.errors import StoreClosedError, StoreUnavailableError


@cache
def _empty_image() -> bytes:
    """A database with the newest schema and no rows, made once a process."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(prepared_schema())
        return connection.serialize()


def _copy_of_image() -> sqlite3.Connection:
    """By way of a backup: what is deserialized itself cannot grow beyond a gigabyte."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with closing(sqlite3.connect(":memory:")) as image:
        image.deserialize(_empty_image())
        image.backup(connection)
    return connection


class MemoryDatabase(Database):
    """Empty when it is opened; closing it throws away what was written."""

    engine: ClassVar[Engine] = "sqlite"

    def __init__(self, statements: Statements, *, timeout_seconds: float = 10.0) -> None:
        self._statements = statements
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._session: SqliteSession | None = None
        self._process = Process()

    async def open(self) -> None:
        if self._session is None:
            self._process = Process()
            self._session = await aside(self._made)

    def _made(self) -> SqliteSession:
        return SqliteSession(_copy_of_image(), self._statements.sqlite, self._lost)

    def _lost(self, group_ids: Sequence[str] | None) -> None:
        if self.on_loss is not None:
            self.on_loss(group_ids)

    async def close(self) -> None:
        session = self._session
        if session is None or not self._process.is_this:
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._do(self._end, end_of_call(self._timeout_seconds))
            except StoreUnavailableError:
                session.interrupt()
                await self._do(self._end, monotonic() + GRACE_SECONDS)

    def _end(self, session: SqliteSession) -> None:
        self._session = None
        session.connection.close()

    async def read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(READ, lambda: operation(*args, **kwargs))

    async def read_long(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._process.check()
        ends = end_of_call(self._timeout_seconds)

        def work(session: SqliteSession) -> T:
            return session.run(READ, lambda: operation(*args, **kwargs), ends)

        with translated():
            return await anyio.to_thread.run_sync(self._locked, work, ends)

    async def write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(WRITE, lambda: operation(*args, **kwargs))

    async def write_relaxed(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(WRITE, lambda: operation(*args, **kwargs))

    async def one(self, statement: str, values: Values, *, is_repeatable: bool = False) -> Rows:
        ends = end_of_call(self._timeout_seconds)
        return await self._do(lambda session: session.execute_alone(Query(statement, values), ends), ends)

    async def write_grouped(self, write: GroupedWrite[R, T], request: R) -> T:
        return await self._run(WRITE, lambda: write.alone(request))

    async def _run(self, begin: str, steps: Callable[[], Steps[T]]) -> T:
        ends = end_of_call(self._timeout_seconds)
        return await self._do(lambda session: session.run(begin, steps, ends), ends)

    async def _do(self, work: Callable[[SqliteSession], T], ends: float) -> T:
        self._process.check()
        with translated():
            if not may_block() or not self._lock.acquire(blocking=False):
                return await anyio.to_thread.run_sync(self._locked, work, ends)
            try:
                return work(self._opened())
            finally:
                self._lock.release()

    def _locked(self, work: Callable[[SqliteSession], T], ends: float) -> T:
        if not self._lock.acquire(timeout=seconds_until(ends)):
            raise timed_out()
        try:
            return work(self._opened())
        finally:
            self._lock.release()

    def _opened(self) -> SqliteSession:
        if self._session is None:
            raise StoreClosedError
        return self._session
