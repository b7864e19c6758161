"""What is measured, and how much of it."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias
from uuid import NAMESPACE_DNS, uuid5

Work: TypeAlias = Literal[
    "append_turn", "load_last_20", "load_hierarchical", "load_200_trim", "cold_load", "concurrent_32"
]

LAST = 20
MANY = 200
BUDGET = 4000
CONCURRENT = 32
CONCURRENT_SIZE = 100


class Effort(NamedTuple):
    """A contender is called `most_calls` times at most, and no more after `seconds`, but `least_calls` times."""

    sizes: tuple[int, ...]
    most_calls: int
    least_calls: int
    seconds: float
    rounds: int
    round_seconds: float


FULL = Effort(sizes=(100, 1000, 10_000), most_calls=100, least_calls=5, seconds=1.0, rounds=4, round_seconds=0.8)
QUICK = Effort(sizes=(100, 1000), most_calls=30, least_calls=3, seconds=0.3, rounds=2, round_seconds=0.4)


def session_of(size: int) -> str:
    """The conversation of so many messages. Some libraries want a UUID."""
    return str(uuid5(NAMESPACE_DNS, f"size-{size}"))


def concurrent_sessions() -> list[str]:
    return [str(uuid5(NAMESPACE_DNS, f"concurrent-{number}")) for number in range(CONCURRENT)]
