"""Appends that wait together share one commit.

The first append goes out at once; those that arrive while it is written wait, and go out together as the next
batch. Nobody waits for a batch to fill.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from reactor_memory.protocols import Appended, AppendRequest

Outcome: TypeAlias = Appended | Exception
Commit: TypeAlias = Callable[[Sequence[AppendRequest]], Awaitable[Sequence[Outcome]]]

MAX_BATCH = 64
"""Appends in one commit. More would make the first of them wait for the last."""


class GroupCommit:
    """Passes appends to `commit` in batches; an outcome that is an exception fails its own append only."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._waiting: deque[tuple[AppendRequest, asyncio.Future[Appended]]] = deque()
        self._drain: asyncio.Task[None] | None = None

    async def append(self, request: AppendRequest) -> Appended:
        """A cancelled call that still waits is left out; once it is being written, it is written."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended] = loop.create_future()
        self._waiting.append((request, future))
        if self._drain is None:
            self._drain = loop.create_task(self._write_all())
        return await future

    async def finish(self) -> None:
        """Wait until everything that was passed in is written."""
        if self._drain is not None:
            await asyncio.wait([self._drain])

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write_batch(self._next_batch())
        finally:
            self._drain = None
            for _, future in self._waiting:
                future.cancel()
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[AppendRequest, asyncio.Future[Appended]]]:
        batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
        return [item for item in batch if not item[1].done()]

    async def _write_batch(self, batch: Sequence[tuple[AppendRequest, asyncio.Future[Appended]]]) -> None:
        if not batch:
            return
        try:
            outcomes = await self._commit([request for request, _ in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            _settle(future, outcome)


def _settle(future: asyncio.Future[Appended], outcome: Outcome) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
