"""Parts that take their time do the same."""

from __future__ import annotations

import random

import pytest

from reactor_memory.evaluation.delays import Delayed

pytestmark = pytest.mark.anyio


class Part:
    name = "part"

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    async def work(self, first: int, *, second: int) -> int:
        self.calls.append((first, second))
        return first + second


async def test_a_delayed_part_answers_as_the_part() -> None:
    part = Part()
    delayed = Delayed(part, random.Random(1))
    assert delayed.name == "part"
    assert [await delayed.work(number, second=1) for number in range(20)] == list(range(1, 21))
    assert part.calls == [(number, 1) for number in range(20)]
    assert not hasattr(delayed, "record_segment")


async def test_some_calls_wait_and_some_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)
    delayed = Delayed(Part(), random.Random(1))
    for number in range(50):
        await delayed.work(number, second=0)
    assert len(waits) == 100
    assert 5 < sum(wait > 0 for wait in waits) < 50
