"""The numbers of a run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias, get_args

from reactor_memory.models import Value

Store: TypeAlias = Literal["sqlite", "postgres", "memory"]
Work: TypeAlias = Literal[
    "append_turn", "load_last_20", "load_hierarchical", "load_200_trim", "cold_load", "concurrent_32"
]
WORKS: tuple[Work, ...] = get_args(Work)

GROWTH: Mapping[str, tuple[int, int]] = {
    "append_turn": (100, 100_000),
    "load_last_20": (100, 100_000),
    "load_hierarchical": (10_000, 100_000),
    "load_200_trim": (1_000, 100_000),
}
"""The lengths of session between which the growth of a work is told."""


class Result(Value, frozen=True, kw_only=True):
    """A work on sessions of `size` messages. Times are microseconds; what was not measured is None.

    `ratio_to_raw` is the median by the reference's, less is better; of ``concurrent_32`` it is turns a second by the
    reference's, more is better, and the times are those of a whole turn. `queries` and `rows_read` are means of a call.
    `facts` and `memory_tokens` are those in the memory of the session that is loaded. `background` of
    ``concurrent_32``: whether this process also did the background work.
    """

    work: Work
    store: Store
    size: int
    strategy: str
    calls: int
    median_us: float
    p99_us: float
    raw_median_us: float | None = None
    raw_p99_us: float | None = None
    ratio_to_raw: float | None = None
    sync_sqlite3_median_us: float | None = None
    rows_read: float | None = None
    raw_rows_read: float | None = None
    queries: float | None = None
    facts: int | None = None
    memory_tokens: int | None = None
    turns_per_second: float | None = None
    raw_turns_per_second: float | None = None
    background: bool | None = None


class Filling(Value, frozen=True, kw_only=True):
    """What making the sessions took: all messages, and the summaries of those sessions that have a memory."""

    messages: int = 0
    messages_per_second: float = 0
    summarized_messages: int = 0
    summarized_messages_per_second: float = 0


class Run(Value, frozen=True, kw_only=True):
    """A whole run. `empty_hop_us`: a call of the driver that does nothing. `growth`: of medians, None where the run has
    not both lengths.
    """

    results: tuple[Result, ...]
    growth: Mapping[str, float | None]
    store: Store
    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    empty_hop_us: float | None = None
    filling: Filling = Filling()


def median_us(nanoseconds: Sequence[int]) -> float:
    return round(median(nanoseconds) / 1000, 1)


def p99_us(nanoseconds: Sequence[int]) -> float:
    """The smallest of the times that at least 99 % do not exceed."""
    return round(sorted(nanoseconds)[math.ceil(0.99 * len(nanoseconds)) - 1] / 1000, 1)


def ratio(part: float, whole: float | None) -> float | None:
    return round(part / whole, 3) if whole else None


def growth(results: Iterable[Result]) -> dict[str, float | None]:
    """How many times longer the median is in the longer of the two sessions of `GROWTH`."""
    medians: dict[tuple[str, int], float] = {(result.work, result.size): result.median_us for result in results}
    return {
        work: ratio(medians[work, long], medians[work, short])
        if (work, short) in medians and (work, long) in medians
        else None
        for work, (short, long) in GROWTH.items()
    }
