"""A pool of PostgreSQL connections that adds nothing to the cost of a query.

The pool of the driver asks the server to reset a connection after every use; here every operation leaves its
connection clean, and one that does not is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

import asyncpg

from reactor_memory.database.operations import T
from reactor_memory.errors import ReactorMemoryError, StoreClosedError

Connection: TypeAlias = Any
"""An `asyncpg.Connection`; the driver has no types."""

_FAREWELL_SECONDS = 1.0
"""How long a connection that is thrown away may take to cancel its statement. Cut off earlier, its backend would go on
waiting for a lock, and the server would hold more connections than the pool may have.
"""

_ARRIVAL_SECONDS = 1.0
"""How long a connection may go on to open when nobody waits for it any more."""


class PostgresPool:
    """At most `size` connections, made when needed; the one used last is used next. A connection that is thrown away
    counts until it is gone.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._connected: set[Connection] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do `work` with a connection that no one else uses. After a cancellation it is not used again."""
        await self._slots.acquire()
        connecting: asyncio.Task[Connection] | None = None
        connection: Connection | None = None
        is_usable = False
        try:
            if self._is_closed:
                raise StoreClosedError
            connection = self._take_idle()
            if connection is None:
                connecting = asyncio.create_task(self._connected_anew())
                connection = await asyncio.shield(connecting)
            try:
                result = await work(connection)
            except (ReactorMemoryError, asyncpg.PostgresError):
                is_usable = True
                raise
            is_usable = True
            return result
        finally:
            if connection is None and connecting is not None:
                self._go_on_with(self._arrive(connecting))
            else:
                self._give_back(connection, is_usable=is_usable)

    async def _connected_anew(self) -> Connection:
        connection = await self._connect()
        self._connected.add(connection)
        return connection

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._connected.discard(connection)
        return None

    def _give_back(self, connection: Connection | None, *, is_usable: bool) -> None:
        if connection is None or connection.is_closed():
            self._connected.discard(connection)
            self._slots.release()
        elif is_usable and not self._is_closed and not connection.is_in_transaction():
            self._idle.append(connection)
            self._slots.release()
        else:
            self._go_on_with(self._leave(connection))

    def _go_on_with(self, work: Coroutine[Any, Any, None]) -> None:
        """After whoever asked for it has left. The connection counts meanwhile."""
        going_on = asyncio.get_running_loop().create_task(work)
        self._leaving.add(going_on)
        going_on.add_done_callback(self._leaving.discard)

    async def _arrive(self, connecting: asyncio.Task[Connection]) -> None:
        """A connection of which nobody waits any more is for the next one: cut off while it opens, the driver leaves an
        error behind that nobody hears.
        """
        connection: Connection | None = None
        try:
            with suppress(Exception):
                async with asyncio.timeout(_ARRIVAL_SECONDS):
                    connection = await connecting
        finally:
            self._give_back(connection, is_usable=True)

    async def _leave(self, connection: Connection) -> None:
        try:
            await self._part_with(connection)
        finally:
            self._slots.release()

    async def _part_with(self, connection: Connection) -> None:
        """Its statement is cancelled on the server first; a server that does not answer is left alone."""
        try:
            await connection.close(timeout=_FAREWELL_SECONDS)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            pass
        finally:
            connection.terminate()
            self._connected.discard(connection)

    async def close(self) -> None:
        """Close what is idle, and wait for what is in use, which is closed when it comes back. When that is cut off,
        all of it is thrown away: who still waits for an answer learns that the connection broke.
        """
        self._is_closed = True
        idle, self._idle = self._idle, []
        try:
            await asyncio.gather(*map(self._part_with, idle))
            for _ in range(self._size):
                await self._slots.acquire()
        finally:
            for connection in self._connected:
                connection.terminate()
            self._connected.clear()
