"""How long to wait before work that failed is tried again."""

from __future__ import annotations

from collections.abc import Callable


def backoff_seconds(
    attempts: int,
    *,
    first_seconds: float,
    max_seconds: float,
    random: Callable[[], float],
    at_least_seconds: float = 0.0,
) -> float:
    """Seconds to wait after the `attempts`-th failure in a row (from 1).

    Exponential with full jitter over the upper half, so that sessions that failed together do not return together.
    `random` gives numbers in 0..1. `at_least_seconds` is what the provider asked for.
    """
    ceiling = min(max_seconds, first_seconds * 2.0 ** (min(attempts, 30) - 1))
    return max(at_least_seconds, ceiling * (0.5 + random() / 2))
