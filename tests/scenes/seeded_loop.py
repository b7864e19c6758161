"""An event loop, a clock and threads of SQLite that a seed drives, in orders that a machine rarely makes.

Nothing runs by itself: the loop runs one callback, or lets one thread go on to its next pause, or moves the clock, as
the seed says. A thread pauses where it looks at the clock, at each statement and wherever SQLite asks whether to go on,
so that timers, cancellations and closings fall between any two of them. The same seed makes the same run.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from heapq import heappop
from math import inf
from random import Random
from traceback import format_exception
from typing import Any, TypeVar
from unittest.mock import patch

import anyio

from reactor_memory.database import deadlines, inline_reads, sqlite, sqlite_transactions
from reactor_memory.database.sqlite_thread import Connect, SqliteThread

T = TypeVar("T")

MOST_STEPS = 100_000
"""Of one run; one that takes more goes round in circles."""


LONGEST_HICCUP = 0.3
"""Seconds for which a machine does nothing although something could be done."""


class StuckError(AssertionError):
    """Nothing can happen any more, and somebody waits."""


class _Ended(BaseException):
    """Ends a thread."""


class SeededLoop(asyncio.SelectorEventLoop):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self.now = 1_000.0
        self.unretrieved: list[str] = []
        self.most_tasks = 0
        self.threads: list[SteppedThread] = []
        self.locked = self.random.choice((0.0, 0.02, 0.2))
        """How often another process has the database locked when a transaction begins."""
        self._slowness = self.random.choice((0.005, 0.02, 0.1))
        """How often the clock moves although something could be done."""
        self._steps = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.set_exception_handler(lambda loop, context: self.unretrieved.append(_told(context)))
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self.now

    def _new_task(self, loop: Any, coroutine: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
        task = asyncio.Task(coroutine, loop=self, **options)
        self._tasks = {each for each in self._tasks if not each.done()} | {task}
        self.most_tasks = max(self.most_tasks, len(self._tasks))
        return task

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody has to be woken."""

    def _run_once(self) -> None:
        self._steps += 1
        ready, scheduled = self._of_loop()
        busy = [thread for thread in self.threads if thread.can_go_on(self.now)]
        if self._steps > MOST_STEPS or not (ready or busy or scheduled or self._wakings()):
            raise StuckError(f"after {self._steps} steps at {self.now}")
        if not (ready or busy) or self.random.random() < self._slowness:
            self._move_clock(scheduled, at_most=LONGEST_HICCUP if ready or busy else inf)
        elif ready and (not busy or self.random.random() < 0.6):
            self._run_one(ready)
        else:
            self.random.choice(busy).go_on()

    def _of_loop(self) -> tuple[deque[Any], list[Any]]:
        ready, scheduled = vars(self)["_ready"], vars(self)["_scheduled"]
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self.now):
            timer = heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        return ready, scheduled

    def _run_one(self, ready: deque[Any]) -> None:
        """Mostly the first; others overtake it, as in no real loop, where they come from elsewhere in time."""
        at = self.random.randrange(len(ready)) if self.random.random() < 0.3 else 0
        handle = ready[at]
        del ready[at]
        if not handle._cancelled:
            handle._run()

    def _wakings(self) -> list[float]:
        return [thread.sleeps_until for thread in self.threads if thread.sleeps_until > self.now]

    def _move_clock(self, scheduled: list[Any], at_most: float) -> None:
        events = self._wakings() + ([scheduled[0]._when] if scheduled else [])
        until_next = max(0.0, min(events, default=self.now) - self.now)
        late = self.random.choice((0.0, 0.0, 1e-6, self.random.random() / 2))
        self.now += min(at_most, self.random.choice((1e-6, 0.01, until_next, until_next + late)))


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return context["message"] + "".join(format_exception(error) if error else ())


class SteppedThread:
    """A thread that runs from pause to pause, when it is let. Stands in for a thread of aiosqlite."""

    def __init__(self, loop: SeededLoop) -> None:
        self.sleeps_until = 0.0
        self._loop = loop
        self._queue: deque[Any] = deque()
        self._works = self._stopped = self._aborted = False
        self._mine, self._theirs = _taken_lock(), _taken_lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.stepped = self  # type: ignore[attr-defined]
        loop.threads.append(self)
        self._thread.start()

    def put_nowait(self, item: Any) -> None:
        self._queue.append(item)

    def stop(self) -> None:
        self._stopped = True

    @property
    def _tx(self) -> SteppedThread:
        return self

    def can_go_on(self, now: float) -> bool:
        return (self._works or (bool(self._queue) and not self._stopped)) and self.sleeps_until <= now

    def go_on(self) -> None:
        self._mine.release()
        self._theirs.acquire()

    def end(self) -> None:
        self._aborted = True
        self._mine.release()
        self._thread.join()
        self._loop.threads.remove(self)

    # -- on the thread itself

    def pause(self) -> None:
        if self._aborted:
            raise _Ended
        self._theirs.release()
        self._mine.acquire()
        if self._aborted:
            raise _Ended

    def sleep(self, seconds: float) -> None:
        self.sleeps_until = self._loop.now + seconds
        self.pause()

    def _run(self) -> None:
        self._mine.acquire()
        with suppress(_Ended):
            while not self._aborted:
                self._works = True
                _, work = self._queue.popleft()
                work()
                self._works = False
                self.pause()


def _taken_lock() -> threading.Lock:
    """To wait for: whoever waits is let go on by the release of another thread."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def _own() -> SteppedThread | None:
    return getattr(threading.current_thread(), "stepped", None)


class _Connection(sqlite3.Connection):
    loop: SeededLoop

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if (thread := _own()) is not None:
            thread.pause()
            if statement.startswith("BEGIN") and self.loop.random.random() < self.loop.locked:
                busy = sqlite3.OperationalError("database is locked")
                busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise busy
        return super().execute(statement, *values)


@contextmanager
def seeded(loop: SeededLoop) -> Iterator[None]:
    """While threads of SQLite and the clocks of the database are those of the loop."""

    def monotonic() -> float:
        if (thread := _own()) is not None and loop.random.random() < 0.5:
            thread.pause()
        return loop.now

    def sleep(seconds: float) -> None:
        thread = _own()
        real_sleep(seconds) if thread is None else thread.sleep(seconds)

    async def started(kind: type[SqliteThread], connect: Connect) -> SqliteThread:
        await asyncio.sleep(0)
        connection: Any = SteppedThread(loop)
        return kind(connection, connect())

    async def run_sync(work: Callable[..., T], *args: Any, **options: Any) -> T:
        await asyncio.sleep(0)
        return work(*args)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return real_connect(*args, factory=kind, **options)

    real_connect, real_sleep = sqlite3.connect, sqlite_transactions.time.sleep
    kind = type("_Connection", (_Connection,), {"loop": loop})
    with (
        patch.object(deadlines, "monotonic", monotonic),
        patch.object(inline_reads, "monotonic", monotonic),
        patch.object(sqlite_transactions, "monotonic", monotonic),
        patch.object(sqlite_transactions.time, "sleep", sleep),
        patch.object(sqlite_transactions, "_VM_STEPS", 2_000),
        patch.object(SqliteThread, "started", classmethod(started)),
        patch.object(anyio.to_thread, "run_sync", run_sync),
        patch.object(sqlite.sqlite3, "connect", connect),
    ):
        yield


def run(loop: SeededLoop, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `main` gives on this loop, which is closed then; its threads end."""
    try:
        with seeded(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())
    finally:
        for thread in [*loop.threads]:
            thread.end()
