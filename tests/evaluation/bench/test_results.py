"""The arithmetic of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.evaluation.bench.measurement import Counts, Slice, Slices, Times
from reactor_memory.evaluation.bench.results import Result, Work, growth, median_us, p99_us, ratio
from reactor_memory.evaluation.bench.run import Plan, Remembered, latency, throughput
from reactor_memory.evaluation.bench.works import Case, Crowd


def row(work: Work, size: int, median: float) -> Result:
    return Result(work=work, store="sqlite", size=size, strategy="take_last", calls=1, median_us=median, p99_us=median)


async def nothing() -> None: ...


async def no_turn(number: int) -> None: ...


def test_the_median_and_the_99th_hundredth_are_told_in_microseconds() -> None:
    times = [number * 1000 for number in range(1, 201)]
    assert median_us(times) == 100.5
    assert p99_us(times) == 198.0
    assert p99_us([5000]) == 5.0


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_at_most_one_in_a_hundred_is_beyond_the_99th(times: list[int]) -> None:
    beyond = sum(round(time / 1000, 1) > p99_us(times) for time in times)
    assert beyond <= len(times) / 100


@pytest.mark.parametrize("whole", [None, 0])
def test_nothing_is_compared_with_what_was_not_measured(whole: float | None) -> None:
    assert ratio(5, whole) is None


def test_growth_compares_the_lengths_that_are_promised() -> None:
    rows = [row("append_turn", 100, 10), row("append_turn", 1000, 30), row("append_turn", 100_000, 12)]
    assert growth(rows) == {
        "append_turn": 1.2,
        "load_last_20": None,
        "load_hierarchical": None,
        "load_200_trim": None,
    }


def test_growth_is_unknown_without_both_lengths() -> None:
    rows = [row("load_hierarchical", size, 10) for size in (100, 1000, 100_000)]
    assert growth(rows)["load_hierarchical"] is None


def test_row_has_the_medians_their_ratio_and_what_was_counted() -> None:
    times = Times()
    times.ours, times.raw, times.sync = [3000, 3000, 9000], [2000, 2000], [1000]
    found = latency(
        Case("load_last_20", 100, "take_last", nothing), times, "sqlite", Counts(4.2, 21, 21), Remembered(7, 90)
    )
    assert (found.median_us, found.p99_us, found.raw_median_us, found.ratio_to_raw) == (3.0, 9.0, 2.0, 1.5)
    assert (found.queries, found.rows_read, found.facts, found.memory_tokens) == (4.2, 21, 7, 90)
    assert (found.sync_sqlite3_median_us, found.calls) == (1.0, 3)


def test_a_store_without_a_driver_has_no_ratio() -> None:
    times = Times()
    times.ours = [3000]
    found = latency(Case("load_last_20", 100, "take_last", nothing), times, "memory", None, None)
    assert (found.raw_median_us, found.ratio_to_raw, found.rows_read, found.facts) == (None, None, None, None)


PLAN = Plan(store="sqlite", works=("concurrent_32",), sizes=(100,), calls=1, seconds=1, slices=3, seed=0, texts=())


def test_turns_are_compared_round_by_round() -> None:
    slices = Slices()
    slices.ours = [Slice(rate, [2000]) for rate in (100, 10, 90)]
    slices.raw = [Slice(rate, [1000]) for rate in (200, 10, 100)]
    found = throughput(Crowd("take_last", no_turn, no_turn), slices, PLAN, Remembered(7, 90))
    assert (found.turns_per_second, found.raw_turns_per_second, found.ratio_to_raw) == (90, 100, 0.9)
    assert (found.median_us, found.raw_p99_us, found.facts) == (2.0, 1.0, None)


def test_a_crowd_with_memory_tells_it_and_needs_no_reference() -> None:
    slices = Slices()
    slices.ours = [Slice(100, [2000])]
    found = throughput(Crowd("hierarchical", no_turn, None, background=True), slices, PLAN, Remembered(7, 90))
    assert (found.ratio_to_raw, found.raw_p99_us, found.facts, found.background) == (None, None, 7, True)
