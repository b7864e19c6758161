"""The engine of all background work.

Work is keyed by conversation and kind. A hint (a save, a load that waits, a request by name) starts it at once; polling
finds work without a hint, work that failed and is due again, and work that a process left when it died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import anyio

from reactor_memory.background.kinds import Kind, Leases
from reactor_memory.background.poller import Poller
from reactor_memory.background.worker import Worker, WorkOptions
from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.models.requests import SUMMARIZE, WorkReport
from reactor_memory.providers.breaker import CircuitBreaker

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock


class WorkEngine:
    """`BackgroundWork` over all kinds of work of this process.

    With `options.enabled` False nothing is done here but what is asked for by `work_on`: other processes do it.
    """

    def __init__(
        self,
        kinds: Iterable[Kind],
        *,
        leases: Leases,
        breaker: CircuitBreaker,
        clock: Clock,
        random: Callable[[], float],
        options: WorkOptions,
    ) -> None:
        self._workers = [Worker(kind, leases=leases, clock=clock, random=random, options=options) for kind in kinds]
        self._poller = Poller(self._workers, leases=leases, clock=clock, random=random, options=options)
        self._hinted = [worker for worker in self._workers if worker.kind.wants is not None]
        self._summaries = next((each for each in self._workers if each.kind.name == SUMMARIZE), None)
        self._breaker = breaker
        self._options = options
        self._runner: asyncio.Task[None] | None = None
        self._closing = anyio.Event()

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start to work. A task of its own holds the task group, so any task may close it."""
        self._closing = anyio.Event()
        started = anyio.Event()
        self._runner = asyncio.create_task(self._serve(started), name="reactor-memory-background")
        await started.wait()

    async def close(self) -> None:
        """Let running steps finish within the grace time, then cancel them. Whoever polls next finds the rest."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._closing.set()
            await asyncio.shield(runner)

    async def _serve(self, started: anyio.Event) -> None:
        forget_deadline()
        async with anyio.create_task_group() as group:
            for worker in self._workers:
                worker.start(group, look_in=self._poller.look_in)
            if self._options.enabled:
                self._poller.start(group)
            started.set()
            try:
                await self._closing.wait()
            finally:
                self._poller.stop()
                for worker in self._workers:
                    worker.stop()
            with anyio.move_on_after(self._options.close_grace_seconds):
                await self.drain()
            group.cancel_scope.cancel()

    # -- the protocol -------------------------------------------------------------------------------------------

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        for worker in self._hinted if self._options.enabled else ():
            if worker.kind.wants is not None and worker.kind.wants(session_id, last_seq):
                worker.wake(session_id)

    def request(self, session_id: str) -> None:
        for worker in self._hinted:
            worker.wake(session_id, by_name=True)

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        if self._summaries is None:
            return "idle"
        if self._breaker.is_open:
            return "open"
        return await self._summaries.wait(session_id, until_seq, timeout_seconds)

    async def work_on(self, session_id: str, *, timeout_seconds: float) -> WorkReport:
        report = WorkReport()
        with anyio.move_on_after(timeout_seconds):
            for worker in self._hinted:
                done = await worker.do(session_id)
                report = WorkReport(failed=report.failed or done.failed, steps=report.steps + done.steps)
            return report
        return WorkReport(failed=report.failed or "timeout", steps=report.steps)

    async def drain(self) -> None:
        for worker in self._workers:
            await worker.drain()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        for worker in self._workers:
            await worker.cancel(session_ids)

    async def run_once(self) -> int:
        """Find the work that is to be done now and do it; for how many conversations and kinds some was done. Waits for
        work that runs already.

        Work that failed is put off: trying it again at once would change nothing.
        """
        done = await self._poller.run_once()
        await self.drain()
        return done
