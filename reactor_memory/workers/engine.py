"""The one engine of all background work.

Work is keyed by conversation and kind. A hint (a save, a load that waits, a request by name) starts it at once; looking
from time to time finds what no hint told of, what failed and is due again, and what a process left behind that died. A
lease lets one process at a time work on a conversation, and its fence refuses what comes late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from heapq import heappop, heappush
from traceback import format_tb

import anyio
import anyio.abc

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import ReactorMemoryError, SessionDeletedError, SessionNotFoundError, StoreError
from reactor_memory.models import Lease, Value
from reactor_memory.protocols import SUMMARIZE, Ahead, Clock, WorkReport
from reactor_memory.workers.backoff import backoff_seconds
from reactor_memory.workers.breaker import CircuitBreaker
from reactor_memory.workers.kinds import RELEASE_SECONDS, Kind, LeaseLostError

log = logging.getLogger(__name__)

BUSY_POLL_SECONDS = 0.05
"""How often a waiting load looks whether the process that has the lease is done."""

BATCH = 50
"""Conversations that are found at a time."""


class WorkOptions(Value, frozen=True, kw_only=True):
    """Seconds, unless the name says otherwise. `enabled` False leaves the work to another process."""

    max_attempts: int = 5
    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 300.0
    close_grace_seconds: float = 5.0
    enabled: bool = True


class _Work:
    """What this process knows of the work on one conversation. Lives as long as there is something to do now."""

    def __init__(self) -> None:
        self.reached = 0
        self.steps = 0
        self.is_done = False
        self.outcome = ""
        self.reason = ""
        self.fault: StoreError | None = None
        self.again = False
        self.by_name = False
        self.hinted = False
        self.announced = False
        self.waiting_loads = 0
        self.setbacks = 0
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()
        self.ended = anyio.Event()

    def tell(self) -> None:
        """Wake everyone who waits for this conversation."""
        self.changed.set()
        self.changed = anyio.Event()


class Worker:
    """Does one kind of work: one piece at a time for a conversation, several conversations side by side."""

    def __init__(self, kind: Kind, *, clock: Clock, random: Callable[[], float], options: WorkOptions) -> None:
        self.kind = kind
        self._clock = clock
        self._random = random
        self._options = options
        self._lease_microseconds = int(kind.lease_seconds * 1e6)
        self._wait_microseconds = int(options.max_backoff_seconds * 1e6)
        self._works: dict[str, _Work] = {}
        self._given_up: dict[str, float] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._slots: AbstractAsyncContextManager[object] = nullcontext()
        self._closing = False
        self._retries: list[float] = []
        self._sooner = anyio.Event()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._closing = False
        self._slots = anyio.CapacityLimiter(self.kind.concurrency)
        if self._options.enabled:
            group.start_soon(self._look_from_time_to_time)

    def stop(self) -> None:
        """Begin no more work; what runs ends with its step."""
        self._group = None
        self._closing = True

    async def drain(self) -> None:
        """Wait until nothing runs."""
        while self._works:
            await next(iter(self._works.values())).ended.wait()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            if (work := self._works.get(session_id)) is not None:
                work.scope.cancel()
                await work.ended.wait()
        self.kind.forget(session_ids)  # at last: what ran until now may have kept what it saw before

    # -- hints --------------------------------------------------------------------------------------------------

    def wake(self, session_id: str, *, by_name: bool = False) -> _Work | None:
        """There may be work for this conversation. Returns at once; None if this process does none any more.

        What runs looks again before it ends, so newer work coalesces behind it.
        """
        work = self._works.get(session_id)
        if work is None:
            work = self._started(session_id)
        else:
            work.again = True
        if work is not None:
            work.hinted = True
            work.by_name = work.by_name or by_name
        return work

    async def wait(self, session_id: str, until: int, timeout_seconds: float) -> str:
        """Wait until the work has reached `until`: ``covered``, ``timeout``, ``failed`` or ``idle``."""
        work = self.wake(session_id)
        if work is None:
            return "idle"
        work.waiting_loads += 1
        try:
            with anyio.move_on_after(timeout_seconds):
                while work.reached < until and not work.outcome:
                    await work.changed.wait()
                return "covered" if work.reached >= until else work.outcome
        finally:
            work.waiting_loads -= 1
        return "timeout"

    async def do(self, session_id: str) -> WorkReport:
        """Do the work now, put off or given up as it may be, or wait for whoever does it: in the task of the caller
        where this process does no background work.
        """
        work = self.wake(session_id, by_name=True) if self._options.enabled else None
        if work is not None:
            await work.ended.wait()
        else:
            work = _Work()
            work.by_name = True
            await self._until_done(session_id, work, doing=True)
        if work.outcome != "failed":
            return WorkReport(steps=work.steps)
        if work.fault is not None:
            raise work.fault
        return WorkReport(failed=work.reason, steps=work.steps)

    def _started(self, session_id: str) -> _Work | None:
        if self._group is None:
            return None
        work = self._works[session_id] = _Work()
        self._group.start_soon(self._work_on, session_id, work)
        return work

    # -- looking ------------------------------------------------------------------------------------------------

    async def _look_from_time_to_time(self) -> None:
        forget_deadline()
        failures = 0
        while not self._closing:
            await self._until_next_look(failures)
            try:
                await self.look()
                failures = 0
            except StoreError as error:
                failures += 1
                reason = type(error).__name__
                log.warning("cannot look for work", extra={"kind": self.kind.name, "reason": reason})
            except Exception as error:
                failures += 1
                _tell_frames("cannot look for work", error, kind=self.kind.name)

    async def _until_next_look(self, failures: int) -> None:
        """A database that is away is asked less and less often."""
        usual = self.kind.every_seconds * (0.75 + self._random() / 2)
        at = anyio.current_time() + max(usual, self._pause(failures) if failures else 0.0)
        while (left := min([at, *self._retries[:1]]) - anyio.current_time()) > 0:
            self._sooner = anyio.Event()
            with anyio.move_on_after(left):
                await self._sooner.wait()
        while self._retries and self._retries[0] <= anyio.current_time():
            heappop(self._retries)

    def _look_in(self, seconds: float) -> None:
        """Look again then, too, for what is put off until then."""
        heappush(self._retries, anyio.current_time() + seconds)
        self._sooner.set()

    async def look(self, *, wait: bool = False) -> int:
        """Find work and do it; how many conversations some was done for, if asked to `wait` for its end."""
        done, after = 0, ""
        while page := await self._found(after):
            works = [work for each in page if (work := self._works.get(each) or self._started(each)) is not None]
            after = page[-1] if self.kind.find is not None else ""
            if wait or len(page) >= BATCH:
                for work in works:
                    await work.ended.wait()
            moved = sum(work.is_done for work in works)
            done += moved
            if self.kind.find is None and (len(page) < BATCH or not moved):
                break
        return done

    async def _found(self, after: str) -> Sequence[str]:
        if self.kind.find is not None:
            return await self.kind.find(after=after, limit=BATCH)
        return await self.kind.leases.due(
            self.kind.name,
            now=self._clock(),
            limit=BATCH,
            ahead=Ahead(lease_microseconds=self._lease_microseconds, wait_microseconds=self._wait_microseconds),
        )

    # -- one conversation ---------------------------------------------------------------------------------------

    async def _work_on(self, session_id: str, work: _Work) -> None:
        forget_deadline()
        try:
            with work.scope:
                await self._until_done(session_id, work, doing=self._options.enabled)
        except Exception as error:
            _tell_frames("background work stopped", error, kind=self.kind.name, session_id=session_id)
            work.outcome = "failed"
        finally:
            del self._works[session_id]
            work.outcome = work.outcome or "idle"
            work.ended.set()
            work.tell()

    async def _until_done(self, session_id: str, work: _Work, *, doing: bool) -> None:
        while not self._closing:
            work.again, work.outcome, work.fault, by_name = False, "", None, work.by_name
            try:
                pause = await self._attempt(session_id, work, doing=doing)
                work.setbacks = 0
            except (StoreError, LeaseLostError) as error:
                pause = self._set_back(session_id, work, error)
            if pause is not None:
                await anyio.sleep(pause)
            elif not work.again or (work.outcome and by_name == work.by_name):
                return

    def _set_back(self, session_id: str, work: _Work, error: Exception) -> float | None:
        """The store or another process was in the way: no failure of the work, tried again a few times."""
        work.setbacks += 1
        work.reason = type(error).__name__
        fields = {"kind": self.kind.name, "session_id": session_id, "times": work.setbacks, "reason": work.reason}
        log.info("background work set back", extra=fields)
        work.fault = error if isinstance(error, StoreError) else None
        is_last = work.setbacks > self._options.max_attempts
        if is_last or work.fault is not None:
            work.outcome = "failed"
            work.tell()
        return None if is_last else self._pause(work.setbacks, BUSY_POLL_SECONDS)

    async def _attempt(self, session_id: str, work: _Work, *, doing: bool) -> float | None:
        """Do all there is. None when nothing is left to do here, else the seconds until it should be tried again."""
        async with self._slots:
            lease = await (self._claim(session_id, work) if doing else self._announced(session_id, work))
            if lease is None:
                return await self._watch(session_id, work, doing=doing)
            try:
                await self._steps(lease, work)
            except (SessionDeletedError, SessionNotFoundError):
                await self._give_back(lease, due_in=None)
            except (StoreError, LeaseLostError):
                await self._leave(lease, work)
                raise
            except Exception as error:
                await self._failed(lease, work, error)
            except BaseException:
                await self._give_back(lease, due_in=0.0, attempts=lease.attempts)
                raise
            else:
                await self._give_back(lease, due_in=None)
                work.is_done = True
        return None

    async def _claim(self, session_id: str, work: _Work) -> Lease | None:
        """The lease, if it is free. Who is cancelled meanwhile gives back what may have been claimed all the same, or
        nobody could claim it until it runs out.
        """
        claim = self.kind.leases.claim(
            session_id,
            self.kind.name,
            now=self._clock(),
            lease_microseconds=self._lease_microseconds,
            wait_microseconds=None if work.by_name else self._wait_microseconds,
        )
        claiming = asyncio.ensure_future(claim)
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS), suppress(StoreError):
                if (lease := await claiming) is not None:
                    await self._give_back(lease, due_in=0.0, attempts=lease.attempts)
            raise

    async def _steps(self, lease: Lease, work: _Work) -> None:
        reached: int | None = await self.kind.reached(lease.session_id)
        while reached is not None:
            work.reached = reached
            work.tell()
            if self._closing or not await self._renewed(lease):
                raise LeaseLostError
            reached = await self.kind.step(lease)
            work.steps += reached is not None

    async def _renewed(self, lease: Lease) -> bool:
        return await self.kind.leases.renew(lease, now=self._clock(), lease_microseconds=self._lease_microseconds)

    # -- work that another process does --------------------------------------------------------------------------

    async def _announced(self, session_id: str, work: _Work) -> None:
        """Make the work due, once, for the process that does it. What is put off or given up stays so."""
        if not work.announced:
            work.announced = True
            if lease := await self._claim(session_id, work):
                await self._give_back(lease, due_in=0.0, attempts=lease.attempts)

    async def _watch(self, session_id: str, work: _Work, *, doing: bool) -> float | None:
        """Look how far the work of another process is while somebody waits for it, else leave it alone."""
        work.reached = await self.kind.reached(session_id)
        work.tell()
        state = await self.kind.leases.work_state(session_id, self.kind.name)
        if state is None:
            return None
        if state.lease_until <= 0 and (state.parked or (state.due_at or 0) > self._clock()):
            if doing and state.parked and work.hinted and not self._was_given_up_lately(session_id):
                work.by_name = True
                return 0.0
            work.outcome, work.reason = "failed", state.last_error or ""
            return None
        at_rest = state.due_at is None and state.lease_until <= 0
        if (at_rest and not doing) or not (work.waiting_loads or work.by_name):
            return None
        return BUSY_POLL_SECONDS

    # -- how an attempt ends ------------------------------------------------------------------------------------

    async def _leave(self, lease: Lease, work: _Work) -> None:
        """The store or another process was in the way. After the last try here the work is put off."""
        if work.setbacks < self._options.max_attempts:
            await self._give_back(lease, due_in=0.0, attempts=lease.attempts)
            return
        pause = self._pause(lease.attempts + 1)
        await self._give_back(lease, due_in=pause, attempts=lease.attempts + 1, error=work.reason)
        self._look_in(pause)

    async def _failed(self, lease: Lease, work: _Work, error: Exception) -> None:
        """Put the work off, longer each time, or give it up. That a provider was not asked is no failure of it."""
        was_asked = getattr(error, "reason", "") != "breaker_open"
        attempts = lease.attempts + was_asked
        work.outcome, work.reason = "failed", str(getattr(error, "reason", type(error).__name__))
        parked = self.kind.parks and attempts >= self._options.max_attempts
        fields = {
            "kind": self.kind.name,
            "session_id": lease.session_id,
            "attempts": attempts,
            "reason": work.reason,
        }
        if not isinstance(error, ReactorMemoryError):
            _tell_frames("background work failed", error, **fields)
        elif was_asked:
            log.log(logging.ERROR if parked else logging.WARNING, _TOLD[parked], extra=fields)
        if parked:
            self._give_up(lease.session_id)
            await self._give_back(lease, due_in=None, attempts=attempts, parked=True, error=work.reason)
            return
        asked_for = float(getattr(error, "retry_after_seconds", None) or 0.0) * (1 + self._random() / 4)
        pause = min(max(self._pause(max(1, attempts)), asked_for), self._options.max_backoff_seconds)
        await self._give_back(lease, due_in=pause, attempts=attempts, error=work.reason)
        self._look_in(pause)

    def _give_up(self, session_id: str) -> None:
        """Until the longest pause has passed; then the conversation is tried once more when it is used."""
        now = anyio.current_time()
        self._given_up = {key: until for key, until in self._given_up.items() if until > now}
        self._given_up[session_id] = now + self._options.max_backoff_seconds

    def _was_given_up_lately(self, session_id: str) -> bool:
        return self._given_up.get(session_id, 0.0) > anyio.current_time()

    def _pause(self, attempts: int, first_seconds: float | None = None) -> float:
        return backoff_seconds(
            attempts,
            first_seconds=self._options.backoff_seconds if first_seconds is None else first_seconds,
            max_seconds=self._options.max_backoff_seconds,
            random=self._random,
        )

    async def _give_back(
        self, lease: Lease, *, due_in: float | None, attempts: int = 0, parked: bool = False, error: str | None = None
    ) -> None:
        due_at = None if due_in is None else self._clock() + int(due_in * 1e6)
        with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS):
            await self.kind.leases.release(lease, due_at=due_at, attempts=attempts, parked=parked, error=error)


_TOLD = {False: "background work failed", True: "background work given up"}


def _tell_frames(told: str, error: Exception, **fields: object) -> None:
    """A fault of a store or plug-in. What its author wrote into the exception may be the text of a message, so only the
    frames are told.
    """
    frames = "".join(format_tb(error.__traceback__))
    log.error("%s\n%s", told, frames, extra={"reason": type(error).__name__, **fields})


class BackgroundWork:
    """`SummaryScheduler` over all kinds of work of this process.

    With `options.enabled` False nothing is done here but what is asked for by `work_on`: other processes do it.
    """

    def __init__(
        self,
        kinds: Iterable[Kind],
        *,
        breaker: CircuitBreaker,
        clock: Clock,
        random: Callable[[], float],
        options: WorkOptions,
    ) -> None:
        self._workers = [Worker(kind, clock=clock, random=random, options=options) for kind in kinds]
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
        """Let running steps finish within the grace time, then cancel. What is left is found by whoever looks next."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._closing.set()
            await asyncio.shield(runner)

    async def _serve(self, started: anyio.Event) -> None:
        forget_deadline()
        async with anyio.create_task_group() as group:
            for worker in self._workers:
                worker.start(group)
            started.set()
            await self._closing.wait()
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
        """Find what is to be done now and do it; for how many conversations and kinds some was done. What runs already
        is waited for.

        What failed is put off: asking for it at once again would change nothing.
        """
        done = 0
        for worker in self._workers:
            done += await worker.look(wait=True)
        await self.drain()
        return done
