"""Reaching a memory from other threads and event loops: drivers answer on the loop on which they were opened only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from reactor_memory.errors import InvalidInputError

T = TypeVar("T")


class Crossing:
    """The way to the event loop on which a memory was opened (by default the one that runs now)."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        loop = loop or _running_loop()
        if loop is None:
            raise InvalidInputError("loop", "no event loop runs here: give the one on which the memory was opened")
        self._loop = loop

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work over there and wait for it, blocking this thread.

        Raises `InvalidInputError` on the thread of that loop itself, which would wait for ever.
        """
        if _running_loop() is self._loop:
            raise InvalidInputError(
                "loop", "the memory lives on the event loop that this call would block: use the async methods here"
            )
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    async def acall(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work over there; here, if that is here. It is cancelled with the caller."""
        if _running_loop() is self._loop:
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
