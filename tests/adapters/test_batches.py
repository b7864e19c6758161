"""Requests that are made at once, done in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from reactor_memory.adapters.batches import MOST_AT_ONCE, Joined
from reactor_memory.database.deadlines import seconds_left, within

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30, method="thread")]


class Doubles:
    """Answers each number with its double, and remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.gate = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> Sequence[int]:
        self.calls.append(list(numbers))
        await self.gate.wait()
        if 13 in numbers:
            raise ValueError("unlucky")
        return [2 * number for number in numbers]


async def test_what_is_asked_meanwhile_is_done_in_the_next_call() -> None:
    doubles = Doubles()
    joined = Joined(doubles)
    first = [asyncio.create_task(joined.do([n])) for n in range(3)]
    await asyncio.sleep(0.01)
    later = [asyncio.create_task(joined.do(asked)) for asked in ([3, 4], [], [5])]
    await asyncio.sleep(0.01)
    doubles.gate.set()
    assert await asyncio.gather(*first) == [[0], [2], [4]]
    assert await asyncio.gather(*later) == [[6, 8], (), [10]]
    assert doubles.calls == [[0, 1, 2], [3, 4, 5]]
    assert await joined.do([7]) == [14]


async def test_a_call_has_a_bound_that_larger_requests_may_pass() -> None:
    doubles = Doubles()
    doubles.gate.set()
    joined = Joined(doubles)
    sizes = [MOST_AT_ONCE - 1, 2, 2 * MOST_AT_ONCE, 1]
    answers = await asyncio.gather(*(joined.do(list(range(20, 20 + size))) for size in sizes))
    assert [len(answer) for answer in answers] == sizes
    assert [len(call) for call in doubles.calls] == sizes


async def test_a_failure_reaches_everybody_in_the_call_and_nobody_else() -> None:
    doubles = Doubles()
    joined = Joined(doubles)
    first = asyncio.create_task(joined.do([1]))
    await asyncio.sleep(0.01)
    failed = [asyncio.create_task(joined.do([n])) for n in (12, 13)]
    await asyncio.sleep(0.01)
    doubles.gate.set()
    assert await first == [2]
    assert [str(error) for error in await asyncio.gather(*failed, return_exceptions=True)] == ["unlucky"] * 2
    assert await joined.do([1]) == [2]


async def test_who_is_cancelled_takes_nobody_along() -> None:
    doubles = Doubles()
    joined = Joined(doubles)
    tasks = [asyncio.create_task(joined.do([n])) for n in range(3)]
    await asyncio.sleep(0.01)
    late = asyncio.create_task(joined.do([9]))
    await asyncio.sleep(0.01)
    tasks[0].cancel()
    late.cancel()
    doubles.gate.set()
    assert await asyncio.gather(*tasks[1:]) == [[2], [4]]
    assert await joined.do([5]) == [10]
    assert doubles.calls == [[0, 1, 2], [5]]


async def test_the_deadline_of_one_is_not_that_of_the_others() -> None:
    left: list[float] = []

    async def look(asked: Sequence[int]) -> Sequence[int]:
        left.append(seconds_left())
        return asked

    with within(0.5):
        await Joined(look).do([1])
    assert left == [float("inf")]
