"""Summarising by itself: behind a save, never in its way, one step at a time for a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from traceback import format_tb

import anyio

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import ReactorMemoryError
from reactor_memory.protocols import SUMMARIZE, Clock, SummaryScheduler, SummaryStore
from reactor_memory.tiers.service import ProgressiveTiers

log = logging.getLogger(__name__)

MOST_SESSIONS = 10_000
"""Of so many sessions it is known when to look at them again. Forgetting it costs a look."""

LEASE_MICROSECONDS = 10_000_000


class TierScheduler:
    """`SummaryScheduler` that also lets the tiers of a session grow; all else is left to `inner`.

    What fails is reported in the log and tried again after the next save. `run_jobs` False leaves the work to another
    process, which finds it among the due `work`: an append puts it there. Without `work`, `inner` takes care of that.
    """

    def __init__(
        self,
        inner: SummaryScheduler,
        *,
        tiers: ProgressiveTiers,
        work: SummaryStore | None = None,
        clock: Clock,
        max_concurrent_sessions: int = 4,
        close_grace_seconds: float = 5.0,
        run_jobs: bool = True,
    ) -> None:
        self._inner = inner
        self._tiers = tiers
        self._work = work
        self._clock = clock
        self._slots = asyncio.Semaphore(max_concurrent_sessions)
        self._close_grace_seconds = close_grace_seconds
        self._run_jobs = run_jobs
        self._is_open = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._asked: set[str] = set()
        self._quiet_until: dict[str, int] = {}

    async def open(self) -> None:
        await self._inner.open()
        self._is_open = True

    async def close(self) -> None:
        """Let running steps finish within the grace time, then cancel them."""
        self._is_open = False
        self._again.clear()
        if running := list(self._tasks.values()):
            await asyncio.wait(running, timeout=self._close_grace_seconds)
            await _cancelled(running)
        await self._inner.close()

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        self._inner.messages_saved(session_id, last_seq)
        if last_seq > self._quiet_until.get(session_id, self._tiers.auto_threshold):
            self._wake(session_id, last_seq)

    def request(self, session_id: str) -> None:
        self._inner.request(session_id)
        if self._run_jobs:
            self._asked.add(session_id)
            self._wake(session_id, 0)

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        return await self._inner.ensure(session_id, until_seq, timeout_seconds=timeout_seconds)

    async def drain(self) -> None:
        await self._inner.drain()
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cancel(self, session_ids: Sequence[str]) -> None:
        await _cancelled([self._tasks[each] for each in session_ids if each in self._tasks])
        for each in session_ids:  # what it was summarised to may be gone, and its messages in view again
            self._quiet_until.pop(each, None)
        await self._inner.cancel(session_ids)

    # -- one session --------------------------------------------------------------------------------------------

    def _wake(self, session_id: str, last_seq: int) -> None:
        if session_id in self._tasks:
            self._again.add(session_id)
        elif self._is_open and self._run_jobs:
            task = asyncio.create_task(self._work_on(session_id, last_seq), name="reactor-memory-tiers")
            self._tasks[session_id] = task
            task.add_done_callback(partial(self._ended, session_id))

    def _ended(self, session_id: str, task: asyncio.Task[None]) -> None:
        """Also of a task that was cancelled before it began."""
        del self._tasks[session_id]
        if session_id in self._again:
            self._again.discard(session_id)
            if not task.cancelled():
                self._wake(session_id, 0)

    async def _work_on(self, session_id: str, last_seq: int) -> None:
        forget_deadline()
        try:
            async with self._slots:
                self._again.discard(session_id)
                self._be_quiet(session_id, last_seq, await self._tiers.summarize_if_due(session_id))
                await self._settle(session_id)
        except ReactorMemoryError as error:
            fields = {"session_id": session_id, "reason": getattr(error, "reason", type(error).__name__)}
            log.warning("session not summarised", extra=fields)
        except Exception as error:
            # A fault of a plug-in. What its author wrote into the exception may be the text of a message.
            fields = {"session_id": session_id, "reason": type(error).__name__}
            log.error("session not summarised\n%s", "".join(format_tb(error.__traceback__)), extra=fields)  # noqa: TRY400

    async def _settle(self, session_id: str) -> None:
        """Take the session off the list of due work, if it was asked for because it stands there."""
        if session_id not in self._asked:
            return
        self._asked.discard(session_id)
        if self._work is None:
            return
        lease = await self._work.claim(session_id, SUMMARIZE, now=self._clock(), lease_microseconds=LEASE_MICROSECONDS)
        if lease is not None:
            await self._work.release(lease, due_at=None)

    def _be_quiet(self, session_id: str, last_seq: int, messages: int) -> None:
        """So many messages may follow `last_seq` before there can be anything to do."""
        if len(self._quiet_until) >= MOST_SESSIONS:
            self._quiet_until.clear()
        self._quiet_until[session_id] = last_seq + messages


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.gather(*tasks, return_exceptions=True)
