"""Writes that wait together share one commit, made on the thread of a SQLite connection.

The first write goes out at once; those that come before the thread begins go with it, and those that come while it
writes go out together as the next batch. Nobody waits for a batch to fill, and no task stands between the callers and
the thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from reactor_memory.database.deadlines import seconds_until
from reactor_memory.database.driver_errors import outcome_unknown, timed_out
from reactor_memory.database.grouped_writes import MAX_BATCH, Waiting
from reactor_memory.database.operations import GroupedWrite, R, T
from reactor_memory.database.sqlite_thread import GRACE_SECONDS, SqliteThread

WriteAll: TypeAlias = Callable[[Sequence[Waiting], float], Sequence[object]]
"""Writes a batch by a deadline, on the thread: the outcome of each, an exception if it failed."""


class SqliteWrites:
    """Passes writes to `write_all` in batches, on `thread`. On the event loop is done one future a write, and one timer
    for all of them. Used from one loop at a time.
    """

    def __init__(self, thread: SqliteThread, write_all: WriteAll) -> None:
        self._thread = thread
        self._write_all = write_all
        self._waiting: deque[Waiting] = deque()
        self._unsettled: set[Waiting] = set()
        self._told: asyncio.AbstractEventLoop | None = None
        """The loop that hears of the batch which the thread has been asked for."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self._looks_at = 0.0

    async def put(self, write: GroupedWrite[R, T], request: R, ends: float) -> T:
        """A cancelled call that still waits is left out; once it is being written, it is written. At its deadline it
        fails, `GRACE_SECONDS` later, with `OutcomeUnknownError`, if the thread has begun it.
        """
        waiting = Waiting(write, request, ends)
        loop = waiting.future.get_loop()
        self._unsettled.add(waiting)
        self._watch(loop, ends)
        if self._told is None or self._told.is_closed():
            self._told = loop
            # after the callers that are ready have put theirs: the thread takes the interpreter when it wakes
            loop.call_soon(self._ask, loop)
        self._waiting.append(waiting)  # after `_told`: the thread may be looking
        try:
            return await waiting.future
        finally:
            waiting.claim.take()
            self._unsettled.discard(waiting)

    async def finish(self) -> None:
        """Wait until everything that was passed in is settled."""
        while left := [waiting.future for waiting in self._unsettled if not waiting.future.done()]:
            await asyncio.wait(left)
        if self._timer is not None:
            self._timer.cancel()

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        self._thread.post(partial(self._write, loop))

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the thread: what waits when it begins, which is what came before the loop went to sleep."""
        batch: list[Waiting] = []
        outcomes: Sequence[object] = ()
        while self._waiting and len(batch) < MAX_BATCH:
            waiting = self._waiting.popleft()
            if waiting.future.done():
                continue
            if waiting.future.get_loop() is loop:
                batch.append(waiting)
            elif waiting.future.get_loop() is self._told:  # the next loop, which has asked, too: else nobody waits
                self._waiting.appendleft(waiting)
                break
        if batch:
            try:
                outcomes = self._write_all(batch, max([waiting.ends for waiting in batch]))
            except BaseException:  # nobody may be left waiting
                outcomes = [outcome_unknown()] * len(batch)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(self._settle, loop, batch, outcomes)

    def _settle(self, loop: asyncio.AbstractEventLoop, batch: Sequence[Waiting], outcomes: Sequence[object]) -> None:
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.settle(outcome)
        if self._waiting:
            self._ask(loop)
        else:
            self._told = None

    # Deadlines

    def _watch(self, loop: asyncio.AbstractEventLoop, ends: float) -> None:
        """One timer, of the deadline that comes first: nearly no write reaches its own."""
        if self._timer is None or self._timer_loop is not loop or ends < self._looks_at:
            if self._timer is not None:
                self._timer.cancel()
            self._looks_at, self._timer_loop = ends, loop
            self._timer = loop.call_later(seconds_until(ends), self._look)

    def _look(self) -> None:
        loop, self._timer = self._timer_loop, None
        for waiting in self._unsettled:
            if not seconds_until(waiting.ends + GRACE_SECONDS):
                waiting.leave()
            elif not seconds_until(waiting.ends) and waiting.claim.take():
                waiting.settle(timed_out())
        left = [waiting.ends for waiting in self._unsettled if not waiting.future.done()]
        if left and loop is not None:
            self._watch(loop, min([ends if seconds_until(ends) else ends + GRACE_SECONDS for ends in left]))
