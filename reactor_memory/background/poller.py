"""Finds background work without a hint: what is due again, what a killed process left, what never had a row."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from reactor_memory.background.kinds import Find, Leases
from reactor_memory.background.worker import Work, Worker, WorkOptions, tell_frames
from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import StoreError

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

BATCH = 50
"""Conversations of a kind that are found at a time."""

DUE = "due"


class _Look:
    """One way to find work, and when to try it next."""

    def __init__(self, name: str, every_seconds: float, look: Callable[[], Awaitable[object]]) -> None:
        self.name = name
        self.every_seconds = every_seconds
        self.look = look
        self.failures = 0
        self.at = 0.0
        self.runs = False


class Poller:
    """One loop over all kinds of work. What is due is one question about all of them; a kind with a way of its own to
    find work (`Kind.find`) is also asked, less often. Neither waits for the other, nor for the work that it finds.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        *,
        leases: Leases,
        clock: Clock,
        random: Callable[[], float],
        options: WorkOptions,
    ) -> None:
        self._leased = {worker.kind.name: worker for worker in workers if worker.kind.is_leased}
        self._finders = [(worker, find) for worker in workers if (find := worker.kind.find) is not None]
        self._leases = leases
        self._clock = clock
        self._random = random
        self._options = options
        self._working: set[str] = set()
        self._due = _Look(DUE, options.poll_seconds, self._look_for_due)
        self._looks = [self._due] if self._leased else []
        for worker, find in self._finders:
            look = partial(self._sweep, worker, find)
            self._looks.append(_Look(worker.kind.name, worker.kind.every_seconds, look))
        self._retries: list[float] = []
        self._group: anyio.abc.TaskGroup | None = None
        self._changed = anyio.Event()

    # -- from time to time ----------------------------------------------------------------------------------------

    def start(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        if self._looks:
            group.start_soon(self._loop, group)

    def stop(self) -> None:
        """Look no more."""
        self._group = None
        self._wake()

    def look_in(self, seconds: float) -> None:
        """Look for due work in so many seconds, too: some was put off until then."""
        if self._group is not None:
            heappush(self._retries, anyio.current_time() + seconds)
            self._wake()

    async def _loop(self, group: anyio.abc.TaskGroup) -> None:
        forget_deadline()
        for look in self._looks:
            self._plan(look)
        while self._group is not None:
            self._begin(group)
            self._changed = anyio.Event()
            with anyio.move_on_after(self._next_at() - anyio.current_time()):
                await self._changed.wait()

    def _begin(self, group: anyio.abc.TaskGroup) -> None:
        now = anyio.current_time()
        while not self._due.runs and self._retries and self._retries[0] <= now:
            heappop(self._retries)
            self._due.at = now
        for look in self._looks:
            if look.at <= now and not look.runs:
                look.runs = True
                group.start_soon(self._look, look)

    def _next_at(self) -> float:
        retries = [] if self._due.runs else self._retries[:1]
        return min([inf, *retries, *(look.at for look in self._looks if not look.runs)])

    async def _look(self, look: _Look) -> None:
        try:
            await look.look()
            look.failures = 0
        except StoreError as error:
            look.failures += 1
            reason = type(error).__name__
            log.warning("cannot look for work", extra={"kind": look.name, "reason": reason})
        except Exception as error:
            look.failures += 1
            tell_frames("cannot look for work", error, kind=look.name)
        finally:
            look.runs = False
            self._plan(look)
            self._wake()

    def _plan(self, look: _Look) -> None:
        """Plan the next look. A database that cannot be reached is asked less and less often."""
        usual = look.every_seconds * (0.75 + self._random() / 2)
        pause = self._options.pause(look.failures, self._random) if look.failures else 0.0
        look.at = anyio.current_time() + max(usual, pause)

    def _wake(self) -> None:
        self._changed.set()

    # -- what is due ----------------------------------------------------------------------------------------------

    async def _look_for_due(self) -> None:
        """Kinds that are still busy with as much as is found at a time are not asked for."""
        for worker, page in await self._found(kind for kind in self._leased if kind not in self._working):
            works = worker.begin(page)
            if len(page) == BATCH and self._group is not None:
                self._working.add(worker.kind.name)
                self._group.start_soon(self._go_on_behind, worker, works)

    async def _go_on_behind(self, worker: Worker, works: Sequence[Work]) -> None:
        """Look again at once when these are done, for there is more."""
        moved = await _moved(works)
        self._working.discard(worker.kind.name)
        if moved:
            self.look_in(0)

    async def _found(self, kinds: Iterable[str]) -> list[tuple[Worker, tuple[str, ...]]]:
        asked = tuple(kinds)
        if not asked:
            return []
        due = await self._leases.due(asked, now=self._clock(), limit=BATCH, ahead=self._options.ahead)
        return [(self._leased[kind], due[kind]) for kind in asked if due[kind]]

    # -- what has a way of its own to be found --------------------------------------------------------------------

    async def _sweep(self, worker: Worker, find: Find, *, wait: bool = False) -> int:
        done, after = 0, ""
        while page := await find(after=after, limit=BATCH):
            works = worker.begin(page)
            after = page[-1]
            if wait or len(page) >= BATCH:
                done += await _moved(works)
        return done

    # -- once -----------------------------------------------------------------------------------------------------

    async def run_once(self) -> int:
        """Find what is to be done now, and wait until it was tried; for how many conversations and kinds some was
        done.
        """
        done, kinds = 0, tuple(self._leased)
        while found := await self._found(kinds):
            begun = [(worker.kind.name, len(page) == BATCH, worker.begin(page)) for worker, page in found]
            moved = [(kind, is_full, await _moved(works)) for kind, is_full, works in begun]
            done += sum(count for _, _, count in moved)
            kinds = tuple(kind for kind, is_full, count in moved if is_full and count)
        for worker, find in self._finders:
            done += await self._sweep(worker, find, wait=True)
        return done


async def _moved(works: Sequence[Work]) -> int:
    """Wait until these have ended; for how many of them some work was done."""
    for work in works:
        await work.ended.wait()
    return sum(work.is_done for work in works)
