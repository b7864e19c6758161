"""The way to the event loop of a memory: from every thread and loop, and never a wait for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from reactor_memory.adapters import loop_bridge as module
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import InvalidInputError, StoreClosedError, StoreUnavailableError

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30, method="thread")]

Call = Callable[[Crossing, Any], Any]


def waited(crossing: Crossing, work: Any) -> Any:
    return crossing.call(work)


def awaited(crossing: Crossing, work: Any) -> Any:
    return asyncio.run(crossing.acall(work))


BOTH = pytest.mark.parametrize("call", [waited, awaited])


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The running event loop of another thread."""
    with start_blocking_portal() as portal:
        yield portal.call(asyncio.get_running_loop)


async def where() -> Any:
    return asyncio.get_running_loop()


@BOTH
def test_work_is_done_over_there(loop: asyncio.AbstractEventLoop, call: Call) -> None:
    assert call(Crossing(loop), where) is loop


async def test_on_that_loop_it_is_done_at_once_without_blocking() -> None:
    crossing = Crossing(asyncio.get_running_loop())
    assert await crossing.acall(where) is asyncio.get_running_loop()
    with pytest.raises(InvalidInputError, match="async methods"):
        crossing.call(where)


@BOTH
@pytest.mark.parametrize("error", [TimeoutError("mine"), ValueError("mine"), StoreClosedError()])
def test_what_the_work_raises_is_raised(loop: asyncio.AbstractEventLoop, call: Call, error: Exception) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        call(Crossing(loop), fail)
    assert str(raised.value) == str(error)


@BOTH
def test_a_loop_that_does_not_run_answers_nothing(call: Call) -> None:
    loop = asyncio.new_event_loop()
    with pytest.raises(InvalidInputError, match="does not run"):
        call(Crossing(loop), where)
    loop.close()
    with pytest.raises(StoreClosedError):
        call(Crossing(loop), where)


@BOTH
def test_work_under_way_when_the_loop_ends_is_told(call: Call) -> None:
    begun = threading.Event()
    found: list[asyncio.AbstractEventLoop] = []

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    async def main() -> None:
        found.append(asyncio.get_running_loop())
        opened.set()
        await asyncio.to_thread(begun.wait)

    opened = threading.Event()
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(asyncio.run, main())
        opened.wait()
        with pytest.raises(StoreClosedError):
            call(Crossing(found[0]), work)
        ended.result()


@BOTH
def test_work_under_way_when_the_loop_stops_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.01)
    loop = asyncio.new_event_loop()

    async def work() -> None:
        loop.stop()
        await asyncio.sleep(0.2)

    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(loop.run_forever)
        while not loop.is_running():
            pass
        with pytest.raises(InvalidInputError, match="does not run"):
            call(Crossing(loop), work)
        stopped.result()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@BOTH
def test_a_blocked_loop_is_told_and_does_nothing_afterwards(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by the thread of the memory that waits for the threads that call it."""
    monkeypatch.setattr(module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(module, "BLOCKED_AFTER", 0.05)
    done: list[str] = []

    async def work() -> None:
        done.append("work")

    async def main() -> BaseException | None:
        crossing = Crossing(asyncio.get_running_loop())
        with ThreadPoolExecutor() as pool:
            failure = pool.submit(call, crossing, work).exception()
        await asyncio.sleep(0.05)
        return failure

    failure = asyncio.run(main())
    assert isinstance(failure, StoreUnavailableError)
    assert "blocked" in str(failure)
    assert done == []


def test_work_that_takes_long_is_waited_for(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(module, "BLOCKED_AFTER", 0.05)
    for call in (waited, awaited):
        assert call(Crossing(loop), lambda: asyncio.sleep(0.2, "done")) == "done"


async def test_who_is_cancelled_cancels_the_work(loop: asyncio.AbstractEventLoop) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(Crossing(loop).acall(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(cancelled.wait, 10)
