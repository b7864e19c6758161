"""Writes to a SQLite file that wait together share a commit; each is settled by its deadline, whatever happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, cast

import pytest

from reactor_memory.database.grouped_writes import Waiting
from reactor_memory.database.operations import GroupedWrite
from reactor_memory.database.sqlite_thread import SqliteThread
from reactor_memory.database.sqlite_writes import SqliteWrites
from reactor_memory.errors import OutcomeUnknownError, StoreUnavailableError

pytestmark = pytest.mark.anyio

WRITE: GroupedWrite[Any, Any] = cast(Any, None)
"""No write is run here."""


class Thread:
    """Runs what was posted when it is let, on the thread of the test."""

    def __init__(self) -> None:
        self.posted: deque[Callable[[], None]] = deque()
        self.batches: list[list[str]] = []
        self.writes = SqliteWrites(cast(SqliteThread, self), self.write_all)

    def post(self, work: Callable[[], None]) -> None:
        self.posted.append(work)

    def write_all(self, batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        begun = [waiting.request for waiting in batch if waiting.begin()]
        self.batches.append(begun)
        return [f"wrote {waiting.request}" for waiting in batch]

    def put(self, request: str, seconds: float = 60.0) -> asyncio.Task[Any]:
        return asyncio.create_task(self.writes.put(WRITE, request, monotonic() + seconds))

    async def go_on(self) -> None:
        """Until nothing is posted any more."""
        await turns()
        while self.posted:
            self.posted.popleft()()
            await turns()


async def turns() -> None:
    """Let the event loop go round a few times."""
    for _ in range(4):
        await asyncio.sleep(0)


async def test_what_waits_shares_a_commit() -> None:
    thread = Thread()
    puts = [thread.put(str(number)) for number in range(100)]
    await thread.go_on()
    assert [len(batch) for batch in thread.batches] == [64, 36]
    assert await asyncio.gather(*puts) == [f"wrote {number}" for number in range(100)]


async def test_the_first_takes_along_what_comes_before_the_thread_begins() -> None:
    thread = Thread()
    first = thread.put("first")
    await turns()
    assert len(thread.posted) == 1
    later = [thread.put(str(number)) for number in range(5)]
    await thread.go_on()
    assert [len(batch) for batch in thread.batches] == [6]
    await asyncio.gather(first, *later)


async def test_what_comes_while_the_thread_writes_goes_out_next() -> None:
    later: list[asyncio.Task[Any]] = []

    def write_and_wait(batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        if not later:
            later.extend(thread.put(str(number)) for number in range(5))
        return Thread.write_all(thread, batch, ends)

    thread = Thread()
    thread.writes = SqliteWrites(cast(SqliteThread, thread), write_and_wait)
    first = thread.put("first")
    await thread.go_on()
    assert [len(batch) for batch in thread.batches] == [1, 5]
    await asyncio.gather(first, *later)


async def test_one_that_left_while_it_waited_is_left_out() -> None:
    thread = Thread()
    first, left, last = map(thread.put, ("first", "left", "last"))
    await asyncio.sleep(0)
    left.cancel()
    await thread.go_on()
    assert thread.batches == [["first", "last"]]
    assert await asyncio.gather(first, last) == ["wrote first", "wrote last"]


async def test_one_that_leaves_on_the_way_is_not_written() -> None:
    def write_late(batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        left.cancel()
        batch[0].leave()
        return Thread.write_all(thread, batch, ends)

    thread = Thread()
    thread.writes = SqliteWrites(cast(SqliteThread, thread), write_late)
    left = thread.put("left")
    await thread.go_on()
    assert thread.batches == [[]]


async def test_errors_reach_those_whose_write_failed() -> None:
    thread = Thread()
    thread.write_all = lambda batch, ends: [StoreUnavailableError("store: gone"), "wrote it"]  # type: ignore[method-assign]
    thread.writes = SqliteWrites(cast(SqliteThread, thread), lambda batch, ends: thread.write_all(batch, ends))
    puts = [thread.put("one"), thread.put("two")]
    await thread.go_on()
    first, second = await asyncio.gather(*puts, return_exceptions=True)
    assert isinstance(first, StoreUnavailableError)
    assert second == "wrote it"


async def test_a_thread_that_breaks_strands_nobody() -> None:
    def breaks(batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        raise SystemExit

    thread = Thread()
    thread.writes = SqliteWrites(cast(SqliteThread, thread), breaks)
    puts = [thread.put(str(number)) for number in range(70)]
    await thread.go_on()
    outcomes = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknownError] * 70


async def test_one_that_was_not_begun_fails_at_its_deadline() -> None:
    thread = Thread()
    patient, hasty = thread.put("patient"), thread.put("hasty", 0.01)
    async with asyncio.timeout(5):
        (error,) = await asyncio.gather(hasty, return_exceptions=True)
    assert type(error) is StoreUnavailableError
    await thread.go_on()
    assert thread.batches == [["patient"]]
    assert await patient == "wrote patient"


async def test_one_that_was_begun_is_unknown_after_its_grace() -> None:
    thread = Thread()
    begun: list[Waiting] = []

    def never_ends(batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        begun.extend(each for each in batch if each.begin())
        raise SystemExit  # of which the loop hears nothing

    thread.writes = SqliteWrites(cast(SqliteThread, thread), never_ends)
    put = thread.put("it", 0.01)
    await turns()
    loop = asyncio.get_running_loop()
    told, loop.call_soon_threadsafe = loop.call_soon_threadsafe, lambda *_: None  # type: ignore[method-assign,assignment]
    try:
        thread.posted.popleft()()
    finally:
        loop.call_soon_threadsafe = told  # type: ignore[method-assign]
    before = monotonic()
    async with asyncio.timeout(5):
        (error,) = await asyncio.gather(put, return_exceptions=True)
    assert type(error) is OutcomeUnknownError
    assert begun
    assert monotonic() - before > 0.2


def test_the_next_event_loop_goes_on_after_a_dead_one() -> None:
    thread = Thread()

    async def leave_one() -> None:
        thread.put("left behind")
        await turns()

    async def put_one() -> None:
        put = thread.put("next")
        await thread.go_on()
        async with asyncio.timeout(5):
            assert await put == "wrote next"

    asyncio.run(leave_one())
    asyncio.run(put_one())
    assert thread.batches == [["next"]]


async def test_closing_waits_for_what_was_passed_in() -> None:
    thread = Thread()
    put = thread.put("it")
    await turns()
    finished = asyncio.create_task(thread.writes.finish())
    await turns()
    assert not finished.done()
    await thread.go_on()
    await finished
    assert await put == "wrote it"
