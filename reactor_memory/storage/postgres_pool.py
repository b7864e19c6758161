"""A pool of PostgreSQL connections that adds nothing to the cost of a query.

The pool of the driver asks the server to reset a connection after every use; here every operation leaves its
connection clean, and one that does not is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg

from reactor_memory.errors import ReactorMemoryError, StoreClosedError
from reactor_memory.storage.steps import T

Connection: TypeAlias = Any
"""An `asyncpg.Connection`; the driver has no types."""


class PostgresPool:
    """At most `size` connections, made when needed; the one used last is used next."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._is_closed = False

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do `work` with a connection that no one else uses. After a cancellation it is not used again."""
        async with self._slots:
            if self._is_closed:
                raise StoreClosedError
            connection = self._take_idle() or await self._connect()
            try:
                return await work(connection)
            except (ReactorMemoryError, asyncpg.PostgresError):
                raise
            except BaseException:
                connection.terminate()
                raise
            finally:
                self._give_back(connection)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    def _give_back(self, connection: Connection) -> None:
        if connection.is_closed():
            return
        if connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        """Wait for the connections in use, then close all."""
        self._is_closed = True
        for _ in range(self._size):
            await self._slots.acquire()
        while self._idle:
            await self._idle.pop().close()
        for _ in range(self._size):
            self._slots.release()
