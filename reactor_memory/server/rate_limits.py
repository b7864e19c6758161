"""How often somebody may call: a bucket of tokens each, in the memory of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock


class Buckets:
    """Everybody's bucket holds what `per_minute` gives in `burst_seconds` (at least one), and fills steadily.

    Of each only the time is kept at which it will be full. At most `max_names` are kept: the one that was not used for
    longest counts as full again.
    """

    def __init__(self, *, per_minute: int, burst_seconds: float, clock: Clock, max_names: int = 10_000) -> None:
        self._is_unlimited = per_minute == 0
        self._interval = 60e6 / max(per_minute, 1)
        self._tolerance = max(burst_seconds * 1e6 - self._interval, 0.0)
        self._clock = clock
        self._max_names = max_names
        self._full_at: dict[str, float] = {}

    def take(self, name: str) -> float:
        """Take a token: 0, or the seconds to wait for one."""
        if self._is_unlimited:
            return 0.0
        now = self._clock()
        full_at = max(self._full_at.pop(name, now), now)
        wait = full_at - now - self._tolerance
        self._full_at[name] = full_at if wait > 0 else full_at + self._interval
        if len(self._full_at) > self._max_names:
            self._full_at.pop(next(iter(self._full_at)))
        return max(wait, 0.0) / 1e6
