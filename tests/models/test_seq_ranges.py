"""Ranges that overlap or touch are one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.models.seq_ranges import joined_ranges

RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)).map(lambda each: (each[0], sum(each))))


def positions(ranges: tuple[tuple[int, int], ...] | list[tuple[int, int]]) -> set[int]:
    return {seq for first, last in ranges for seq in range(first, last + 1)}


@given(RANGES)
def test_the_same_positions_in_runs_apart(ranges: list[tuple[int, int]]) -> None:
    found = joined_ranges(ranges)
    assert positions(found) == positions(ranges)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found))


def test_what_touches_is_one() -> None:
    assert joined_ranges([(5, 6), (1, 2), (3, 4), (9, 9)]) == ((1, 6), (9, 9))
