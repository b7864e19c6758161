"""Takes the times of one work after the other: the library and the reference, on sessions of all lengths, call by call
in a new order each round, so that whatever slows the machine slows all alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from random import Random
from time import perf_counter_ns
from typing import NamedTuple

import anyio

from reactor_memory.evaluation.bench.bench_sessions import SESSIONS
from reactor_memory.evaluation.bench.results import median_us
from reactor_memory.evaluation.bench.statement_counter import Carried
from reactor_memory.evaluation.bench.works import Begin, Case, Crowd

WARM_ROUNDS = 5
COUNTED_CALLS = 10
"""Enough for everything that an append does once in several times."""

Advance = Callable[[int], None]


class Times:
    """Of one case, in nanoseconds."""

    def __init__(self) -> None:
        self.ours: list[int] = []
        self.raw: list[int] = []
        self.sync: list[int] = []


async def take_times(
    cases: Sequence[Case], hop: Begin | None, *, rounds: int, random: Random, advance: Advance
) -> tuple[list[Times], list[int]]:
    """The times of each case, and of the empty hop. Works are not mixed: an append that waits for the disk lets the
    caches grow cold, and what is called next pays for it.
    """
    times, hops = [Times() for _ in cases], list[int]()
    for _, work in groupby(zip(cases, times, strict=True), key=lambda each: each[0].work):
        measured = list(work)
        for number in range(-WARM_ROUNDS, rounds):
            calls = [call for case, taken in measured for call in _calls(case, taken, number)]
            if hop is not None:
                calls.append(_Call(hop, hops))
            random.shuffle(calls)
            for call in calls:
                nanoseconds = await call.take()
                if number >= 0:
                    call.times.append(nanoseconds)
            advance(1)
    return times, hops


def rounds_of(cases: Sequence[Case], rounds: int) -> int:
    """How many rounds `take_times` makes in all."""
    return len({case.work for case in cases}) * (WARM_ROUNDS + rounds)


class _Call(NamedTuple):
    begin: Begin
    times: list[int]

    async def take(self) -> int:
        awaitable = self.begin()
        start = perf_counter_ns()
        await awaitable
        return perf_counter_ns() - start


class _SyncCall(NamedTuple):
    begin: Callable[[], Callable[[], object]]
    times: list[int]

    async def take(self) -> int:
        work = self.begin()
        start = perf_counter_ns()
        work()
        return perf_counter_ns() - start


def _calls(case: Case, times: Times, number: int) -> list[_Call | _SyncCall]:
    if number % case.every:
        return []
    calls: list[_Call | _SyncCall] = [_Call(case.ours, times.ours)]
    if case.raw is not None:
        calls.append(_Call(case.raw, times.raw))
    if case.sync is not None:
        calls.append(_SyncCall(case.sync, times.sync))
    return calls


class Counts(NamedTuple):
    """Means of a call."""

    queries: float
    rows: float
    raw_rows: float | None


async def take_counts(cases: Sequence[Case], carried: Carried) -> list[Counts]:
    """What the calls of each case carry; the connections must have been opened under `counted`."""
    found: list[Counts] = []
    for case in cases:
        queries, rows = await _carried_by(case.ours, carried)
        raw_rows = None if case.raw is None else (await _carried_by(case.raw, carried))[1]
        found.append(Counts(queries, rows, raw_rows))
    return found


async def _carried_by(begin: Begin, carried: Carried) -> tuple[float, float]:
    queries, rows = carried.queries, carried.rows
    for _ in range(COUNTED_CALLS):
        await begin()
    return (carried.queries - queries) / COUNTED_CALLS, (carried.rows - rows) / COUNTED_CALLS


# 32 sessions at once


class Slice(NamedTuple):
    """What was reached in a slice of time; the times of turns in nanoseconds."""

    turns_per_second: float
    turns: list[int]


class Slices:
    """Of one crowd: a slice of ours and one of the reference in each round."""

    def __init__(self) -> None:
        self.ours: list[Slice] = []
        self.raw: list[Slice] = []


async def take_slices(
    crowds: Sequence[Crowd],
    *,
    rounds: int,
    seconds: float,
    random: Random,
    rest: Callable[[], Awaitable[None]],
    advance: Advance,
) -> list[Slices]:
    """`rest` lets the background work of a slice end before the next begins."""
    taken = [Slices() for _ in crowds]
    for _ in range(rounds):
        works = [(each.ours, slices.ours) for each, slices in zip(crowds, taken, strict=True)]
        works += [(each.raw, slices.raw) for each, slices in zip(crowds, taken, strict=True) if each.raw is not None]
        random.shuffle(works)
        for turn, slices in works:
            slices.append(await _slice(turn, seconds))
            await rest()
            advance(1)
    return taken


async def _slice(turn: Callable[[int], Awaitable[object]], seconds: float) -> Slice:
    """Each session goes on until the time is over, and makes at least one turn."""
    times: list[int] = []
    begin = perf_counter_ns()
    end = begin + int(seconds * 1e9)

    async def go_on(number: int) -> None:
        now = 0
        while now < end:
            start = perf_counter_ns()
            await turn(number)
            now = perf_counter_ns()
            times.append(now - start)

    async with anyio.create_task_group() as tasks:
        for number in range(SESSIONS):
            tasks.start_soon(go_on, number)
    return Slice(len(times) * 1e9 / (perf_counter_ns() - begin), times)


def hop_us(hops: Sequence[int]) -> float | None:
    return median_us(hops) if hops else None
