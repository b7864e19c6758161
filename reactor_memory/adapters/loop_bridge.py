"""Reaching a memory from other threads and event loops: drivers answer on the loop on which they were opened only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from time import monotonic
from typing import Any, Generic, TypeVar

from reactor_memory.database.forks import process_of
from reactor_memory.errors import InvalidInputError, StoreClosedError, StoreUnavailableError

T = TypeVar("T")

BLOCKED_AFTER = 10.0
"""So many seconds a call waits to be begun over there."""

LOOK_EVERY = 0.5
"""So often a call that waits looks whether it may still be answered, in seconds."""


class Crossing:
    """The way to the event loop on which a memory was opened (`Memory.loop`), from every thread and every loop.

    No call waits for ever: it raises `StoreClosedError` when that loop has ended, `InvalidInputError` while it does not
    run, `StoreUnavailableError` when it is blocked, as by a thread that waits for this one, and `OtherProcessError`
    in a process that was forked after the memory was opened.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = process_of(loop)

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work over there and wait for it, blocking this thread. A wait that is broken off cancels it.

        Raises `InvalidInputError` on the thread of that loop itself, which would wait for ever.
        """
        self._process.check()
        if _running_loop() is self._loop:
            raise InvalidInputError(
                "loop", "the memory lives on the event loop that this call would block: use the async methods here"
            )
        crossed = _Crossed(work, self._loop)
        with crossed:
            while not wait((crossed.future,), LOOK_EVERY).done:
                crossed.look()
            if crossed.future.cancelled():
                raise StoreClosedError
            return crossed.future.result()

    def acall(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """Do the work over there; here, if that is here. It is cancelled with the caller."""
        self._process.check()
        return work() if _running_loop() is self._loop else self._over_there(work)

    async def _over_there(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        crossed = _Crossed(work, self._loop)
        with crossed:
            told = asyncio.wrap_future(crossed.future)
            while not (await asyncio.wait({told}, timeout=LOOK_EVERY))[0]:
                crossed.look()
            if told.cancelled():  # by the end of that loop, not by the caller
                raise StoreClosedError
            return told.result()


class _Crossed(Generic[T]):
    """Work that was handed over. When its block is left before it is done, it is cancelled, or never begins."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handed_over_at = monotonic()
        self._claim = threading.Lock()  # of the work as it begins, or of whoever gives it up before
        self._check_loop()
        self.future: Future[T] = asyncio.run_coroutine_threadsafe(self._begun(work), loop)

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._claim.acquire(blocking=False)
        self.future.cancel()

    def look(self) -> None:
        """Raises if nothing will be answered."""
        if self.future.done():
            return
        self._check_loop()
        if monotonic() - self._handed_over_at > BLOCKED_AFTER and self._claim.acquire(blocking=False):
            raise StoreUnavailableError(
                "store: the event loop of the memory is blocked; do not wait on its thread for other threads, "
                "or open the memory with reactor_memory.sync.open_memory, which has a thread of its own"
            )

    async def _begun(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._claim.acquire(blocking=False):
            raise asyncio.CancelledError
        return await work()

    def _check_loop(self) -> None:
        if self._loop.is_closed():
            raise StoreClosedError
        if not self._loop.is_running():
            raise InvalidInputError(
                "loop", "the event loop of the memory does not run: open it with reactor_memory.sync.open_memory"
            )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
