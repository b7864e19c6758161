"""The circuit breaker before a provider."""

from __future__ import annotations

import time

from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.wiring.settings import Settings


def breaker_of(settings: Settings) -> CircuitBreaker:
    summary = settings.summary
    return CircuitBreaker(
        failures=summary.breaker_failures, open_seconds=summary.breaker_open_seconds, monotonic=time.monotonic
    )
