"""How long to wait before work that failed is tried again."""

from __future__ import annotations

from collections.abc import Callable


def backoff_seconds(
    attempts: int,
    *,
    first_seconds: float,
    max_seconds: float,
    random: Callable[[], float],
) -> float:
    """Seconds to wait after the `attempts`-th failure in a row (from 1).

    Exponential with full jitter over the upper half, so that sessions that failed together do not return together.
    `random` gives numbers in 0..1.
    """
    ceiling = min(max_seconds, first_seconds * 2.0 ** (min(attempts, 30) - 1))
    return ceiling * (0.5 + random() / 2)
