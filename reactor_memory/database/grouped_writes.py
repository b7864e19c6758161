"""Writes that wait together share one commit.

The first write goes out at once; those that arrive while it is written wait, and go out together as the next batch.
Nobody waits for a batch to fill.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from reactor_memory.database.deadlines import seconds_until
from reactor_memory.database.driver_errors import outcome_unknown, timed_out
from reactor_memory.database.operations import GroupedWrite, R, T
from reactor_memory.database.sqlite_thread import Claim

MAX_BATCH = 64
"""Writes in one commit. More would make the first of them wait for the last."""


class Waiting:
    """A write and its claim: whoever takes it first decides, the writer (it is written) or the caller (it gives up)."""

    __slots__ = ("claim", "ends", "future", "has_begun", "is_in_doubt", "request", "write")

    def __init__(self, write: GroupedWrite[Any, Any], request: Any, ends: float) -> None:
        self.write = write
        self.request = request
        self.ends = ends
        self.claim = Claim()
        self.has_begun = False
        self.is_in_doubt = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def group(self) -> Hashable:
        return self.write.group(self.request)

    def begin(self) -> bool:
        """Called by the writer: False if the caller has given up. A second call gives the same answer."""
        self.has_begun = self.has_begun or self.claim.take()
        return self.has_begun

    def settle(self, outcome: object) -> None:
        try:
            if isinstance(outcome, Exception):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(outcome)
        except asyncio.InvalidStateError:  # as `unless_settled`, without its two calls
            pass

    def leave(self) -> None:
        """Called at the deadline: the write fails, with `OutcomeUnknownError` if the writer has begun it."""
        self.settle(timed_out() if self.claim.take() else outcome_unknown())


Commit: TypeAlias = Callable[[Sequence[Waiting]], Awaitable[Sequence[object]]]
"""Writes a batch: the outcome of each, an exception if it failed."""


class GroupedWrites:
    """Passes writes to `commit` in batches. Up to `writers` batches are written at once.

    With `apart`, requests of one group are never in one batch, nor in two at once; they follow in the order in which
    they came.
    """

    def __init__(self, commit: Commit, *, writers: int = 1, apart: bool = False) -> None:
        self._commit = commit
        self._writers = writers
        self._apart = apart
        self._waiting: deque[Waiting] = deque()
        self._written: set[Hashable] = set()
        self._drains: set[asyncio.Task[None]] = set()

    async def put(self, write: GroupedWrite[R, T], request: R, ends: float) -> T:
        """A cancelled call that still waits is left out; once it is being written, it is written."""
        waiting = Waiting(write, request, ends)
        self._waiting.append(waiting)
        loop = waiting.future.get_loop()
        if len(self._drains) < self._writers:
            drain = loop.create_task(self._write_all())
            self._drains.add(drain)
            drain.add_done_callback(self._ended)
        timer = loop.call_later(seconds_until(ends), waiting.leave)
        try:
            return await waiting.future
        finally:
            timer.cancel()

    async def finish(self) -> None:
        """Wait until everything that was passed in is written."""
        while self._drains:
            await asyncio.wait(self._drains)

    async def _write_all(self) -> None:
        """Write batches until none is left. A write whose group another writer has is left to that writer."""
        try:
            while batch := self._next_batch():
                await self._write_batch(batch)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._drains.discard(asyncio.current_task())  # pyright: ignore[reportArgumentType] (a drain is a task)

    def _ended(self, drain: asyncio.Task[None]) -> None:
        """Called when a drain ends. One that was cancelled before it began has run none of its own code."""
        if drain in self._drains:
            self._drains.discard(drain)
            self._abandon()

    def _abandon(self) -> None:
        """The writer is gone: whoever waits for it is cancelled."""
        _give_up(self._waiting)
        self._waiting.clear()

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        passed_over: list[Waiting] = []
        while self._waiting and len(batch) < MAX_BATCH:
            waiting = self._waiting.popleft()
            if not waiting.future.done():
                (batch if self._is_free(waiting) else passed_over).append(waiting)
        self._waiting.extendleft(reversed(passed_over))
        return batch

    def _is_free(self, waiting: Waiting) -> bool:
        if not self._apart:
            return True
        group = waiting.group
        is_free = group not in self._written
        self._written.add(group)
        return is_free

    async def _write_batch(self, batch: Sequence[Waiting]) -> None:
        try:
            outcomes = await self._commit(batch)
        except Exception as error:
            outcomes = [error] * len(batch)
        except BaseException:
            _give_up(batch)
            raise
        finally:
            if self._apart:
                self._written.difference_update(waiting.group for waiting in batch)
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.settle(outcome)


def _give_up(writes: Iterable[Waiting]) -> None:
    for waiting in writes:
        waiting.future.cancel()
