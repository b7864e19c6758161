"""Calls of several contenders, timed in turn: whatever the machine does meanwhile, it does to all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

from benchmarks.peers.plan import Effort

Call: TypeAlias = Callable[[], Awaitable[Any]]
Nanoseconds: TypeAlias = int

WARM_UP = 2


async def interleave(
    calls: Mapping[str, Call],
    effort: Effort,
    random: Random,
    *,
    after: Call | None = None,
    clock: Callable[[], Nanoseconds] = perf_counter_ns,
) -> dict[str, list[Nanoseconds]]:
    """The times of each call. Rounds are in random order; whoever has used up its time stops, the others go on.

    `after` follows each call and is not timed.
    """
    times: dict[str, list[Nanoseconds]] = {name: [] for name in calls}
    for round_number in range(WARM_UP + effort.most_calls):
        for name in random.sample(list(calls), len(calls)):
            if _is_done(times[name], effort):
                continue
            begun = clock()
            await calls[name]()
            taken = clock() - begun
            if round_number >= WARM_UP:
                times[name].append(taken)
            if after is not None:
                await after()
    return times


def _is_done(times: Sequence[Nanoseconds], effort: Effort) -> bool:
    return len(times) >= effort.least_calls and sum(times) >= effort.seconds * 1e9


class Slice(NamedTuple):
    """What one contender did in a stretch of time of its own."""

    turns: int
    seconds: float
    latencies: list[Nanoseconds]

    @property
    def rate(self) -> float:
        return self.turns / self.seconds


async def run_together(
    sessions: Sequence[str],
    turn: Callable[[str], Awaitable[Any]],
    seconds: float,
    *,
    clock: Callable[[], Nanoseconds] = perf_counter_ns,
) -> Slice:
    """All sessions at once, each taking one turn after the other until the time is over, and one at least."""
    begun = clock()
    end = begun + int(seconds * 1e9)
    latencies: list[Nanoseconds] = []

    async def keep_talking(session: str) -> None:
        while True:
            start = clock()
            await turn(session)
            latencies.append(clock() - start)
            if clock() >= end:
                return

    async with asyncio.TaskGroup() as group:
        for session in sessions:
            group.create_task(keep_talking(session))
    return Slice(len(latencies), (clock() - begun) / 1e9, latencies)


def microseconds(times: Sequence[Nanoseconds]) -> tuple[float, float]:
    """Median and 99th percentile."""
    p99 = quantiles(times, n=100, method="inclusive")[-1] if len(times) > 1 else times[0]
    return round(median(times) / 1000, 1), round(p99 / 1000, 1)
