"""One kind of background work: leased, tried again after a pause, given up after too many failures.

A lease lets one process at a time work on a conversation, and its fence refuses what comes late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from heapq import heappop, heappush
from traceback import format_tb
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from reactor_memory.background.backoff import backoff_seconds
from reactor_memory.background.kinds import Kind, Leases, NoLeases
from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import ReactorMemoryError, SessionDeletedError, SessionNotFoundError, StoreError
from reactor_memory.models import Value
from reactor_memory.models.requests import RELEASE_SECONDS, Ahead, LeaseLostError, WorkReport

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.models.leases import Lease

log = logging.getLogger(__name__)

BUSY_POLL_SECONDS = 0.05
"""How often a waiting load looks whether the process that has the lease is done."""


_MESSAGES = {False: "background work failed", True: "background work given up"}


class WorkOptions(Value, frozen=True, kw_only=True):
    """Seconds, unless the name says otherwise. `enabled` False leaves the work to another process."""

    max_attempts: int = 5
    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 300.0
    close_grace_seconds: float = 5.0
    lease_seconds: float = 120.0
    poll_seconds: float = 1.0
    enabled: bool = True

    @property
    def ahead(self) -> Ahead:
        """How far ahead of now a lease and a pause can end."""
        return Ahead(
            lease_microseconds=int(self.lease_seconds * 1e6), wait_microseconds=int(self.max_backoff_seconds * 1e6)
        )

    def pause(self, attempts: int, random: Callable[[], float], *, first_seconds: float | None = None) -> float:
        """Seconds until the next try, after so many failures in a row."""
        return backoff_seconds(
            attempts,
            first_seconds=self.backoff_seconds if first_seconds is None else first_seconds,
            max_seconds=self.max_backoff_seconds,
            random=random,
        )


class Work:
    """The state of the work on one conversation in this process. Lives as long as there is something to do now."""

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
        self.scope: anyio.CancelScope | None = None
        """Of the attempt that runs; None while the work waits for its turn or pauses."""
        self.changed = anyio.Event()
        self.ended = anyio.Event()

    def tell(self) -> None:
        """Wake everyone who waits for this conversation."""
        self.changed.set()
        self.changed = anyio.Event()


class Worker:
    """Does one kind of work: one piece at a time for a conversation, several conversations side by side.

    There are as many tasks as conversations are worked on side by side; what waits for its turn is a place in a queue.
    """

    def __init__(
        self, kind: Kind, *, leases: Leases, clock: Clock, random: Callable[[], float], options: WorkOptions
    ) -> None:
        self.kind = kind
        self._leases = leases if kind.is_leased else NoLeases()
        self._clock = clock
        self._random = random
        self._options = options
        self._ahead = options.ahead
        self._works: dict[str, Work] = {}
        self._waiting: OrderedDict[str, Work] = OrderedDict()
        self._running = 0
        self._pausing: list[tuple[float, int, str, Work]] = []
        self._paused = anyio.Event()
        self._given_up: dict[str, float] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._slots: AbstractAsyncContextManager[object] = nullcontext()
        self._closing = False
        self._look_in: Callable[[float], None] = _nobody_looks

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self, group: anyio.abc.TaskGroup, *, look_in: Callable[[float], None]) -> None:
        """`look_in` is told when work that is put off will be due."""
        self._group = group
        self._look_in = look_in
        self._closing = False
        self._slots = anyio.CapacityLimiter(self.kind.concurrency)

    def stop(self) -> None:
        """Begin no more work; what runs ends with its step, what waits is left to whoever polls next."""
        self._group = None
        self._closing = True
        self._pausing.clear()
        self._paused.set()
        for session_id, work in [*self._works.items()]:
            if work.scope is None:
                self._end(session_id, work)

    async def drain(self) -> None:
        """Wait until nothing runs."""
        while self._works:
            await next(iter(self._works.values())).ended.wait()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            if (work := self._works.get(session_id)) is not None:
                if work.scope is None:
                    self._end(session_id, work)
                else:
                    work.scope.cancel()
                    await work.ended.wait()
        self.kind.forget(session_ids)  # at last: what ran until now may have kept what it saw before

    # -- hints --------------------------------------------------------------------------------------------------

    def wake(self, session_id: str, *, by_name: bool = False) -> Work | None:
        """A hint that this conversation may have work. Returns at once; None if this process does no more work.

        If work on it runs, it looks again before it ends, so hints that come meanwhile are handled together.
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
        if session_id in self._waiting:
            self._waiting.move_to_end(session_id, last=False)  # nobody waits for the others
        try:
            with anyio.move_on_after(timeout_seconds):
                while work.reached < until and not work.outcome:
                    await work.changed.wait()
                return "covered" if work.reached >= until else work.outcome
        finally:
            work.waiting_loads -= 1
        return "timeout"

    async def do(self, session_id: str) -> WorkReport:
        """Do the work now, even if it was put off or given up, or wait for the process that does it: in the task of the
        caller where this process does no background work.
        """
        work = self.wake(session_id, by_name=True) if self._options.enabled else None
        if work is not None:
            await work.ended.wait()
        else:
            work = Work()
            work.by_name = True
            await self._until_done(session_id, work)
        if work.outcome != "failed":
            return WorkReport(steps=work.steps)
        if work.fault is not None:
            raise work.fault
        return WorkReport(failed=work.reason, steps=work.steps)

    def begin(self, session_ids: Sequence[str]) -> list[Work]:
        """Work on these conversations, of which it was found that there may be something to do."""
        return [work for each in session_ids if (work := self._works.get(each) or self._started(each)) is not None]

    def _started(self, session_id: str) -> Work | None:
        if self._group is None:
            return None
        work = self._works[session_id] = Work()
        self._queue(session_id, work)
        return work

    def _queue(self, session_id: str, work: Work) -> None:
        """Work on this conversation when it is its turn."""
        self._waiting[session_id] = work
        if self._group is not None and self._running < self.kind.concurrency:
            self._running += 1
            self._group.start_soon(self._run)

    async def _run(self) -> None:
        """Take conversations out of the queue until it is empty."""
        forget_deadline()
        try:
            while self._waiting:
                await self._work_on(*self._waiting.popitem(last=False))
        finally:
            self._running -= 1

    # -- one conversation ---------------------------------------------------------------------------------------

    async def _work_on(self, session_id: str, work: Work) -> None:
        """One attempt. Work that has to pause gives its turn to others meanwhile."""
        pause: float | None = None
        work.scope = scope = anyio.CancelScope()
        try:
            with scope:
                pause = await self._try(session_id, work, doing=self._options.enabled)
        except Exception as error:
            tell_frames("background work stopped", error, kind=self.kind.name, session_id=session_id)
            work.outcome = "failed"
        finally:
            work.scope = None
            if pause is None or self._group is None or scope.cancel_called:
                self._end(session_id, work)
            else:
                self._rest(session_id, work, pause, self._group)

    def _rest(self, session_id: str, work: Work, seconds: float, group: anyio.abc.TaskGroup) -> None:
        if not self._pausing:
            group.start_soon(self._resume)
        heappush(self._pausing, (anyio.current_time() + seconds, id(work), session_id, work))
        self._paused.set()

    async def _resume(self) -> None:
        """Queue what has paused long enough: one task for all that pauses."""
        while self._pausing:
            self._paused = anyio.Event()
            until, _, session_id, work = self._pausing[0]
            if (seconds := until - anyio.current_time()) > 0:
                with anyio.move_on_after(seconds):
                    await self._paused.wait()
                continue
            heappop(self._pausing)
            if self._works.get(session_id) is work:
                self._queue(session_id, work)

    def _end(self, session_id: str, work: Work) -> None:
        self._waiting.pop(session_id, None)
        del self._works[session_id]
        work.outcome = work.outcome or "idle"
        work.ended.set()
        work.tell()

    async def _until_done(self, session_id: str, work: Work) -> None:
        """In the task of the caller."""
        pause: float | None = 0.0
        while not self._closing and pause is not None:
            await anyio.sleep(pause)
            pause = await self._try(session_id, work, doing=True)

    async def _try(self, session_id: str, work: Work, *, doing: bool) -> float | None:
        """The seconds after which to try again; None when there is no reason to."""
        work.again, work.outcome, work.fault, by_name = False, "", None, work.by_name
        try:
            pause = await self._attempt(session_id, work, doing=doing)
            work.setbacks = 0
        except (StoreError, LeaseLostError) as error:
            pause = self._set_back(session_id, work, error)
        is_hinted = work.again and not (work.outcome and by_name == work.by_name)
        return 0.0 if pause is None and is_hinted else pause

    def _set_back(self, session_id: str, work: Work, error: Exception) -> float | None:
        """A fault of the store, or a lease lost to another process: no failure of the work, tried again a few times."""
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

    async def _attempt(self, session_id: str, work: Work, *, doing: bool) -> float | None:
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

    async def _claim(self, session_id: str, work: Work) -> Lease | None:
        """The lease, if it is free. A claim that is cancelled gives back what it may have got all the same: else nobody
        could claim it until the lease runs out.
        """
        claim = self._leases.claim(
            session_id,
            self.kind.name,
            now=self._clock(),
            lease_microseconds=self._ahead.lease_microseconds,
            wait_microseconds=None if work.by_name else self._ahead.wait_microseconds,
        )
        claiming = asyncio.ensure_future(claim)
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS), suppress(StoreError):
                if (lease := await claiming) is not None:
                    await self._give_back(lease, due_in=0.0, attempts=lease.attempts)
            raise

    async def _steps(self, lease: Lease, work: Work) -> None:
        reached: int | None = await self.kind.reached(lease.session_id)
        is_new = True
        while reached is not None:
            work.reached = reached
            work.tell()
            if self._closing or not (is_new or await self._renewed(lease)):
                raise LeaseLostError
            is_new = False
            reached = await self.kind.step(lease)
            work.steps += reached is not None

    async def _renewed(self, lease: Lease) -> bool:
        return await self._leases.renew(lease, now=self._clock(), lease_microseconds=self._ahead.lease_microseconds)

    # -- work that another process does --------------------------------------------------------------------------

    async def _announced(self, session_id: str, work: Work) -> None:
        """Make the work due, once, for the process that does it. Work that is put off or given up stays so."""
        if not work.announced:
            work.announced = True
            if lease := await self._claim(session_id, work):
                await self._give_back(lease, due_in=0.0, attempts=lease.attempts)

    async def _watch(self, session_id: str, work: Work, *, doing: bool) -> float | None:
        """Look how far the work of another process is while somebody waits for it, else leave it alone."""
        work.reached = await self.kind.reached(session_id)
        work.tell()
        state = await self._leases.work_state(session_id, self.kind.name)
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

    async def _leave(self, lease: Lease, work: Work) -> None:
        """Give the lease back after a fault of the store. After the last try here the work is put off."""
        if work.setbacks < self._options.max_attempts:
            await self._give_back(lease, due_in=0.0, attempts=lease.attempts)
            return
        pause = self._pause(lease.attempts + 1)
        await self._give_back(lease, due_in=pause, attempts=lease.attempts + 1, error=work.reason)
        self._look_in(pause)

    async def _failed(self, lease: Lease, work: Work, error: Exception) -> None:
        """Put the work off, longer each time, or give it up. A provider that was not called did not fail."""
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
            tell_frames("background work failed", error, **fields)
        elif was_asked:
            log.log(logging.ERROR if parked else logging.WARNING, _MESSAGES[parked], extra=fields)
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
        pause = self._options.pause(attempts, self._random, first_seconds=first_seconds)
        return min(pause, self.kind.longest_pause_seconds)

    async def _give_back(
        self, lease: Lease, *, due_in: float | None, attempts: int = 0, parked: bool = False, error: str | None = None
    ) -> None:
        due_at = None if due_in is None else self._clock() + int(due_in * 1e6)
        with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS):
            await self._leases.release(lease, due_at=due_at, attempts=attempts, parked=parked, error=error)


def tell_frames(title: str, error: Exception, **fields: object) -> None:
    """Log a fault of a store or plug-in by its frames only: its text may hold the text of a message."""
    frames = "".join(format_tb(error.__traceback__))
    log.error("%s\n%s", title, frames, extra={"reason": type(error).__name__, **fields})


def _nobody_looks(seconds: float) -> None:
    """The hook of a worker without a poller: another process finds work that is put off."""
