"""One worker per session: coalesces what comes while it runs, backs off after failures, stops within a grace time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from traceback import format_tb

import anyio
import anyio.abc

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import SessionDeletedError, SessionNotFoundError, StoreError, SummarizationError
from reactor_memory.models import Lease, Value, WorkState
from reactor_memory.protocols import SUMMARIZE, Clock, SummaryStore
from reactor_memory.workers.backoff import backoff_seconds
from reactor_memory.workers.breaker import CircuitBreaker
from reactor_memory.workers.guarding import BreakerOpenError
from reactor_memory.workers.jobs import RELEASE_SECONDS, LeaseLostError, SummaryJob

log = logging.getLogger(__name__)

BUSY_POLL_SECONDS = 0.05
"""How often a waiting load looks whether the process that has the lease is done."""


class WorkerOptions(Value, frozen=True, kw_only=True):
    """Seconds, unless the name says otherwise. `run_jobs` False leaves the work to another process."""

    trigger_message_count: int = 20
    max_concurrent_sessions: int = 4
    lease_seconds: float = 120.0
    max_attempts: int = 5
    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 300.0
    close_grace_seconds: float = 5.0
    run_jobs: bool = True


class _Work:
    """What this process knows of the work on one session. Lives as long as there is something to do."""

    def __init__(self) -> None:
        self.covered_seq = 0
        self.again = False
        self.waiting_loads = 0
        self.asked_by_name = False
        self.announced = False
        self.outcome = ""
        self.resting = False
        self.setbacks = 0
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()

    def tell(self) -> None:
        """Wake everyone who waits for this session."""
        self.changed.set()
        self.changed = anyio.Event()


class SummaryWorkers:
    """`SummaryScheduler` over one kind of job."""

    def __init__(
        self,
        *,
        job: SummaryJob,
        summaries: SummaryStore,
        breaker: CircuitBreaker,
        clock: Clock,
        random: Callable[[], float],
        options: WorkerOptions,
    ) -> None:
        self._job = job
        self._summaries = summaries
        self._breaker = breaker
        self._clock = clock
        self._random = random
        self._options = options
        self._works: dict[str, _Work] = {}
        self._parked: dict[str, float] = {}
        self._runner: asyncio.Task[None] | None = None
        self._group: anyio.abc.TaskGroup | None = None
        self._slots: anyio.CapacityLimiter | None = None
        self._closing = anyio.Event()

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start to accept work. A task of its own holds the task group, so any task may close it."""
        self._slots = anyio.CapacityLimiter(self._options.max_concurrent_sessions)
        self._closing = anyio.Event()
        started = anyio.Event()
        self._runner = asyncio.create_task(self._serve(started), name="reactor-memory-workers")
        await started.wait()

    async def close(self) -> None:
        """Let running steps finish within the grace time, then cancel. Resting work is cancelled at once."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._closing.set()
            await asyncio.shield(runner)

    async def _serve(self, started: anyio.Event) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            started.set()
            await self._closing.wait()
            self._group = None
            for work in list(self._works.values()):
                if work.resting:
                    work.scope.cancel()
            with anyio.move_on_after(self._options.close_grace_seconds):
                await self.drain()
            group.cancel_scope.cancel()

    # -- the protocol -------------------------------------------------------------------------------------------

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        due = last_seq > self._options.trigger_message_count and not self._is_parked(session_id)
        if due and self._options.run_jobs:
            self._wake(session_id)

    def request(self, session_id: str) -> None:
        """Look whether there is work for the session, parked or not. Returns at once."""
        self._parked.pop(session_id, None)
        work = self._wake(session_id)
        if work is not None:
            work.asked_by_name = True

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        if self._breaker.is_open:
            return "open"
        if self._is_parked(session_id):
            return "failed"
        work = self._wake(session_id)
        if work is None:
            return "idle"
        work.waiting_loads += 1
        try:
            with anyio.move_on_after(timeout_seconds):
                return await self._covered(work, until_seq)
        finally:
            work.waiting_loads -= 1
        return "timeout"

    async def _covered(self, work: _Work, until_seq: int) -> str:
        while work.covered_seq < until_seq and not work.outcome:
            await work.changed.wait()
        return "covered" if work.covered_seq >= until_seq else work.outcome

    async def drain(self) -> None:
        """Wait until every session is done or rests after a failure."""
        while active := [work for work in self._works.values() if not work.resting]:
            await active[0].changed.wait()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            self._parked.pop(session_id, None)
            work = self._works.get(session_id)
            if work is not None:
                work.scope.cancel()
                while self._works.get(session_id) is work:
                    await work.changed.wait()

    # -- one session --------------------------------------------------------------------------------------------

    def _wake(self, session_id: str) -> _Work | None:
        work = self._works.get(session_id)
        if work is not None:
            work.again = True
            return work
        if self._group is None:
            return None
        work = self._works[session_id] = _Work()
        self._group.start_soon(self._work_on, session_id, work)
        return work

    async def _work_on(self, session_id: str, work: _Work) -> None:
        forget_deadline()
        try:
            with work.scope:
                await self._until_done(session_id, work)
        except Exception as error:
            # The last resort for a fault in a store or plug-in: it must not take the other sessions down. What its
            # author wrote into the text of the exception may be the text of a message, so only the frames are told.
            fields = {"session_id": session_id, "reason": type(error).__name__}
            log.error("background work stopped\n%s", "".join(format_tb(error.__traceback__)), extra=fields)  # noqa: TRY400
            work.outcome = "failed"
        finally:
            del self._works[session_id]
            work.outcome = work.outcome or "idle"
            work.tell()

    async def _until_done(self, session_id: str, work: _Work) -> None:
        while not self._closing.is_set():
            work.again = False
            try:
                pause = await self._attempt(session_id, work)
                work.setbacks = 0
            except (StoreError, LeaseLostError) as error:
                pause = self._set_back(session_id, work, error)
            if pause is not None:
                await self._rest(work, pause)
            elif not work.again:
                return

    def _set_back(self, session_id: str, work: _Work, error: Exception) -> float | None:
        """The store or another process was in the way: no failure of the session, tried again a few times."""
        work.setbacks += 1
        work.outcome = "failed" if isinstance(error, StoreError) else ""
        reason = type(error).__name__
        log.info("summary work set back", extra={"session_id": session_id, "times": work.setbacks, "reason": reason})
        return None if work.setbacks > self._options.max_attempts else self._pause(work.setbacks, BUSY_POLL_SECONDS)

    async def _rest(self, work: _Work, seconds: float) -> None:
        work.resting = work.outcome == "failed"
        work.tell()
        await anyio.sleep(seconds)
        work.resting = False
        work.outcome = ""

    async def _attempt(self, session_id: str, work: _Work) -> float | None:
        """Do all there is. None when done, else the seconds until it should be tried again."""
        assert self._slots is not None
        async with self._slots:
            lease = await self._claim(session_id) if self._options.run_jobs else await self._announce(session_id, work)
            if lease is None:
                return await self._watch(session_id, work)
            try:
                await self._steps(lease, work)
            except (SessionDeletedError, SessionNotFoundError):
                return await self._give_back(lease, due_in=None, pause=None)
            except BreakerOpenError as error:
                return await self._postpone(lease, work, error.retry_after_seconds or 0.0)
            except SummarizationError as error:
                return await self._failed(lease, work, error)
            except BaseException:
                await self._give_back(lease, due_in=0.0, pause=None)
                raise
            return await self._give_back(lease, due_in=None, pause=None, done=True)

    async def _claim(self, session_id: str) -> Lease | None:
        return await self._summaries.claim(
            session_id, SUMMARIZE, now=self._clock(), lease_microseconds=self._lease_microseconds
        )

    async def _announce(self, session_id: str, work: _Work) -> None:
        """Make the work due for the process that does it, once, unless that knows of it, or gave it up unasked."""
        state = await self._summaries.work_state(session_id, SUMMARIZE)
        if work.announced or (state is not None and _is_known(state, asked=work.asked_by_name)):
            return
        work.announced = True
        if lease := await self._claim(session_id):
            await self._give_back(lease, due_in=0.0, pause=None)

    async def _watch(self, session_id: str, work: _Work) -> float | None:
        """Another process does the work: look how far it is while a load waits for it, else leave it alone."""
        summary = await self._summaries.get_summary_head(session_id)
        work.covered_seq = summary.covered_seq if summary else 0
        work.tell()
        if not work.waiting_loads or (not self._options.run_jobs and await self._is_at_rest(session_id)):
            return None
        return BUSY_POLL_SECONDS

    async def _is_at_rest(self, session_id: str) -> bool:
        state = await self._summaries.work_state(session_id, SUMMARIZE)
        return state is None or state.parked or (state.due_at is None and not state.lease_until)

    async def _steps(self, lease: Lease, work: _Work) -> None:
        summary = await self._summaries.get_summary_head(lease.session_id)
        covered: int | None = summary.covered_seq if summary else 0
        while covered is not None:
            work.covered_seq = covered
            work.tell()
            if self._closing.is_set():
                raise LeaseLostError
            if not await self._summaries.renew(lease, now=self._clock(), lease_microseconds=self._lease_microseconds):
                raise LeaseLostError
            covered = await self._job.step(lease)

    # -- how an attempt ends ------------------------------------------------------------------------------------

    async def _failed(self, lease: Lease, work: _Work, error: SummarizationError) -> float | None:
        attempts = lease.attempts + 1
        reason = error.reason
        work.outcome = "failed"
        fields = {"session_id": lease.session_id, "attempts": attempts, "reason": reason}
        if attempts >= self._options.max_attempts:
            log.error("summary work parked", extra=fields)
            self._park(lease.session_id)
            return await self._give_back(lease, due_in=None, pause=None, attempts=attempts, parked=True, error=reason)
        log.warning("summary work failed", extra=fields)
        pause = max(self._pause(attempts, self._options.backoff_seconds), error.retry_after_seconds or 0.0)
        return await self._give_back(lease, due_in=pause, pause=pause, attempts=attempts, error=reason)

    def _pause(self, attempts: int, first_seconds: float) -> float:
        return backoff_seconds(
            attempts,
            first_seconds=first_seconds,
            max_seconds=self._options.max_backoff_seconds,
            random=self._random,
        )

    async def _postpone(self, lease: Lease, work: _Work, seconds: float) -> float | None:
        """The provider was not called: that is no failure of this session."""
        work.outcome = "failed"
        pause = max(seconds, self._options.backoff_seconds) * (1 + self._random() / 4)
        return await self._give_back(lease, due_in=pause, pause=pause, attempts=lease.attempts, error="breaker_open")

    async def _give_back(
        self,
        lease: Lease,
        *,
        due_in: float | None,
        pause: float | None,
        attempts: int | None = None,
        parked: bool = False,
        error: str | None = None,
        done: bool = False,
    ) -> float | None:
        kept = 0 if done else lease.attempts if attempts is None else attempts
        due_at = None if due_in is None else self._clock() + int(due_in * 1e6)
        with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS):
            await self._summaries.release(lease, due_at=due_at, attempts=kept, parked=parked, error=error)
        return pause

    def _park(self, session_id: str) -> None:
        now = anyio.current_time()
        self._parked = {key: until for key, until in self._parked.items() if until > now}
        self._parked[session_id] = now + self._options.max_backoff_seconds

    def _is_parked(self, session_id: str) -> bool:
        return self._parked.get(session_id, 0.0) > anyio.current_time()

    @property
    def _lease_microseconds(self) -> int:
        return int(self._options.lease_seconds * 1e6)


def _is_known(state: WorkState, *, asked: bool) -> bool:
    """Whether the work is due, or being done, or was given up and nobody has asked for it since."""
    if state.parked:
        return not asked
    return state.due_at is not None or state.lease_until > 0
