"""Appends that wait together share one commit.

The first append goes out at once; those that arrive while it is written wait, and go out together as the next
batch. Nobody waits for a batch to fill.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from reactor_memory.protocols import Appended, AppendRequest

Outcome: TypeAlias = Appended | Exception
Commit: TypeAlias = Callable[[Sequence[AppendRequest]], Awaitable[Sequence[Outcome]]]
_Item: TypeAlias = tuple[AppendRequest, "asyncio.Future[Appended]"]

MAX_BATCH = 64
"""Appends in one commit. More would make the first of them wait for the last."""


def together(_: AppendRequest) -> None:
    """Any appends may be in one batch."""


class GroupCommit:
    """Passes appends to `commit` in batches; an outcome that is an exception fails its own append only.

    Up to `writers` batches are written at once. Of appends for which `apart` gives the same value (not None), only one
    is written at a time, in the order in which they came.
    """

    def __init__(
        self, commit: Commit, *, writers: int = 1, apart: Callable[[AppendRequest], Hashable | None] = together
    ) -> None:
        self._commit = commit
        self._writers = writers
        self._apart = apart
        self._waiting: deque[_Item] = deque()
        self._written: set[Hashable] = set()
        self._drains: set[asyncio.Task[None]] = set()

    async def append(self, request: AppendRequest) -> Appended:
        """A cancelled call that still waits is left out; once it is being written, it is written."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended] = loop.create_future()
        self._waiting.append((request, future))
        if len(self._drains) < self._writers:
            self._drains.add(loop.create_task(self._write_all()))
        return await future

    async def finish(self) -> None:
        """Wait until everything that was passed in is written."""
        while self._drains:
            await asyncio.wait(self._drains)

    async def _write_all(self) -> None:
        """What is left waiting in the end is kept apart from a batch of another writer, which takes it next."""
        try:
            while batch := self._next_batch():
                await self._write_batch(batch)
        except BaseException:
            _give_up(self._waiting)
            self._waiting.clear()
            raise
        finally:
            self._drains.discard(asyncio.current_task())  # pyright: ignore[reportArgumentType] (a drain is a task)

    def _next_batch(self) -> list[_Item]:
        batch: list[_Item] = []
        passed_over: list[_Item] = []
        while self._waiting and len(batch) < MAX_BATCH:
            item = self._waiting.popleft()
            if not item[1].done():
                (batch if self._take(item[0]) else passed_over).append(item)
        self._waiting.extendleft(reversed(passed_over))
        return batch

    def _take(self, request: AppendRequest) -> bool:
        key = self._apart(request)
        if key is None:
            return True
        is_free = key not in self._written
        self._written.add(key)
        return is_free

    async def _write_batch(self, batch: Sequence[_Item]) -> None:
        try:
            outcomes = await self._commit([request for request, _ in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        except BaseException:
            _give_up(batch)
            raise
        finally:
            self._written.difference_update(self._apart(request) for request, _ in batch)
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            _settle(future, outcome)


def _give_up(items: Iterable[_Item]) -> None:
    for _, future in items:
        future.cancel()


def _settle(future: asyncio.Future[Appended], outcome: Outcome) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
