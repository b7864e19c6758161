"""A SQLite connection on a thread of its own. Callers await it, have deadlines, and may give up."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, cast

import aiosqlite
import anyio

from reactor_memory.database.blocking_calls import aside
from reactor_memory.database.deadlines import seconds_until
from reactor_memory.database.driver_errors import outcome_unknown, timed_out
from reactor_memory.database.operations import T
from reactor_memory.database.sqlite_transactions import SqliteSession
from reactor_memory.errors import StoreClosedError

GRACE_SECONDS = 0.25
"""How long past the deadline a function that has begun may still settle its call."""

Connect: TypeAlias = Callable[[], SqliteSession]


class Claim:
    """Either the thread begins a call, or its caller takes it back: the first one wins. Thread-safe."""

    __slots__ = ("_free",)

    def __init__(self) -> None:
        self._free = [None]

    def take(self) -> bool:
        """Whether this was the first to ask."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True


class _Closure(Generic[T]):
    """A function in the queue of the thread. It settles the future of its caller by itself: aiosqlite would end the
    thread and leave the connection open if the caller's event loop is closed by then.

    Its repr, which aiosqlite writes into its debug log, holds no message.
    """

    __slots__ = ("claim", "future", "work")

    def __init__(self, work: Callable[[], T], future: asyncio.Future[T]) -> None:
        self.work = work
        self.future = future
        self.claim = Claim()

    def __call__(self) -> None:
        if not self.claim.take():
            return
        try:
            answer = self.work()
        except BaseException as error:
            self._tell(_fail, error)
        else:
            self._tell(_succeed, answer)

    def _tell(self, how: Callable[[asyncio.Future[T], Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self.future.get_loop().call_soon_threadsafe(how, self.future, outcome)


class SqliteThread:
    """Runs whole closures, one after the other, on the thread of an aiosqlite connection.

    aiosqlite offers one statement per call; its queue takes any function. Only plain values may come back.
    """

    def __init__(self, connection: aiosqlite.Connection, session: SqliteSession) -> None:
        self._connection: aiosqlite.Connection | None = connection
        self._queue: SimpleQueue[Any] = cast(Any, connection)._tx
        self.session = session

    @classmethod
    async def started(cls, connect: Connect) -> SqliteThread:
        """Connected by `connect` on the new thread, which is not left running when that fails or is cancelled."""
        sessions: list[SqliteSession] = []

        def open_connection() -> sqlite3.Connection:
            sessions.append(connect())
            return sessions[0].connection

        connection = aiosqlite.Connection(open_connection, iter_chunk_size=64)
        thread = getattr(connection, "_thread", cast(Any, connection))  # before 0.22 the connection is the thread
        thread.daemon = True  # who forgets `close` can still exit
        try:
            await connection
        except BaseException:
            # The thread must have ended before the event loop is closed, which not each aiosqlite has told it; and what
            # the thread opened is forgotten.
            _stop(connection)
            with anyio.CancelScope(shield=True):
                await aside(thread.join)
            for left in sessions:
                left.connection.close()
            raise
        return cls(connection, sessions[0])

    async def run(self, work: Callable[[], T], ends: float, *, writes: bool) -> T:
        """The answer of `work`, or an error by `ends`: of a write that has begun `OutcomeUnknownError`."""
        if self._connection is None:
            raise StoreClosedError
        closure = self._put(work)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds_until(ends), _leave, closure.future, closure.claim, writes)
        try:
            return await closure.future
        except asyncio.CancelledError:
            closure.claim.take()
            raise
        finally:
            timer.cancel()

    async def close(self) -> None:
        """After what was asked for before. Cancelled, it interrupts what runs, and the thread ends by itself."""
        connection, self._connection = self._connection, None
        if connection is not None:

            def close() -> None:
                self.session.connection.close()
                _stop(connection)  # from its own thread, where it finds no event loop to tell

            try:
                await self._put(close).future
            except asyncio.CancelledError:
                self.session.interrupt()
                raise

    def post(self, work: Callable[[], None]) -> None:
        """Have `work` run, which raises nothing and tells whoever waits for it by itself."""
        self._queue.put_nowait((_NOBODY, work))

    def _put(self, work: Callable[[], T]) -> _Closure[T]:
        closure = _Closure(work, asyncio.get_running_loop().create_future())
        self.post(closure)
        return closure


class _Nobody:
    """In the place of the future that aiosqlite would settle, on the loop that it would tell."""

    def get_loop(self) -> _Nobody:
        return self

    def call_soon_threadsafe(self, *_: object) -> None: ...


_NOBODY = _Nobody()


def _stop(connection: aiosqlite.Connection) -> None:
    """Let the thread of the connection end after what it was asked for before."""
    stop = "stop" if hasattr(connection, "stop") else "_stop_running"  # the name before 0.22.1
    getattr(connection, stop)()


def _leave(future: asyncio.Future[Any], claim: Claim, writes: bool) -> None:
    """At the deadline: take the call back if it has not begun, else give the thread a moment to settle it."""
    if claim.take():
        _fail(future, timed_out())
    else:
        error = outcome_unknown() if writes else timed_out()
        future.get_loop().call_later(GRACE_SECONDS, _fail, future, error)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    with unless_settled():
        future.set_exception(error)


def _succeed(future: asyncio.Future[T], answer: T) -> None:
    with unless_settled():
        future.set_result(answer)


def unless_settled() -> suppress:
    """To settle a future that may be settled already. Asking first is not enough: Ctrl-C cancels from the handler of a
    signal, between any two lines.
    """
    return suppress(asyncio.InvalidStateError)
