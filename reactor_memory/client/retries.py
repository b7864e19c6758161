"""How often a call is repeated, and after which wait: decided from numbers alone."""

from __future__ import annotations

from collections.abc import Callable

from reactor_memory.models import Value

PASSING = frozenset({429, 502, 503})
"""Statuses that say: the same request may succeed later."""

BEING_WORKED_ON = "in_progress"
"""The code of a request whose first attempt is still under way."""


class Retries(Value, frozen=True, kw_only=True):
    """A call is repeated up to `most` times: after a random wait of up to `first_seconds`, then of up to twice as long
    each time, `longest_seconds` at most.

    A service that asks for a wait gets it in addition, unless it is longer than that: then its refusal is raised.
    """

    most: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 10.0

    def wait(self, repetition: int, asked_seconds: float | None, chance: Callable[[], float]) -> float | None:
        """Seconds until `repetition` (from 1); None to give up. `chance` gives numbers from 0 to 1."""
        asked = asked_seconds or 0.0
        if repetition > self.most or asked > self.longest_seconds:
            return None
        return asked + chance() * min(self.longest_seconds, self.first_seconds * 2.0 ** (repetition - 1))


DEFAULT_RETRIES = Retries()


def may_pass(status: int, code: str) -> bool:
    """Whether an answer asks for a repetition of the request that it refuses."""
    return status in PASSING or code == BEING_WORKED_ON
