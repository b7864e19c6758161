"""A connection that is opened at its first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from reactor_memory.errors import SummarizationError


class Closable(Protocol):
    async def aclose(self) -> None: ...


C = TypeVar("C", bound=Closable)


class OnDemand(Generic[C]):
    """What `connect` makes, made once and in a thread: importing a client library may take a second."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._lock = anyio.Lock()
        self._connection: C | None = None
        self._closed = False

    async def get(self) -> C:
        """The connection. Raises `SummarizationError` after `aclose`."""
        async with self._lock:
            if self._closed:
                raise SummarizationError("unavailable", "is closed", retryable=False)
            if self._connection is None:
                self._connection = await anyio.to_thread.run_sync(self._connect)
            return self._connection

    async def aclose(self) -> None:
        """Close the connection, if there is one, for good."""
        self._closed = True
        async with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()
