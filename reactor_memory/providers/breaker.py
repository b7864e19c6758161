"""A circuit breaker, so that a provider that is down is not called for every session."""

from __future__ import annotations

from collections.abc import Callable


class CircuitBreaker:
    """Opens after `failures` failures in a row, for `open_seconds`; then lets one trial through at a time.

    `monotonic` gives seconds. The states and the single trial follow Nygard, "Release It!", chapter on stability
    patterns.
    """

    def __init__(self, *, failures: int, open_seconds: float, monotonic: Callable[[], float]) -> None:
        self._limit = failures
        self._open_seconds = open_seconds
        self._monotonic = monotonic
        self._failures = 0
        self._opened_at = 0.0
        self._trial_runs = False

    @property
    def is_open(self) -> bool:
        """No call should be made now."""
        return self.seconds_until_trial() > 0 or self._trial_runs

    def seconds_until_trial(self) -> float:
        """Seconds until a call may be tried; 0 when one may be made now."""
        if self._failures < self._limit:
            return 0.0
        return max(0.0, self._opened_at + self._open_seconds - self._monotonic())

    def try_acquire(self) -> bool:
        """Ask before a call. After True, `succeeded`, `failed` or `abandoned` must follow."""
        if self.is_open:
            return False
        self._trial_runs = self._failures >= self._limit
        return True

    def succeeded(self) -> None:
        self._failures = 0
        self._trial_runs = False

    def failed(self) -> None:
        self._failures += 1
        self._opened_at = self._monotonic()
        self._trial_runs = False

    def abandoned(self) -> None:
        """The call was cancelled: it says nothing about the provider."""
        self._trial_runs = False
