"""Ranges of seq, ends included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""Runs of seq, ends included."""


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges in their order, those that overlap or touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def is_within(seq: int, ranges: Ranges) -> bool:
    return any(start <= seq <= end for start, end in ranges)


def overlaps(run: tuple[int, int], ranges: Ranges) -> bool:
    return any(run[0] <= end and start <= run[1] for start, end in ranges)


def is_inside(run: tuple[int, int], ranges: Ranges) -> bool:
    """Whether one of the ranges holds all of the run."""
    return any(start <= run[0] and run[1] <= end for start, end in ranges)
