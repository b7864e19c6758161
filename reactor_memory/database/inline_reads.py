"""Whether short reads may hold up the event loop: as long as they take it little of its time.

What a read takes of the clock says nothing on a busy machine, where a process waits for its turn. It holds up the loop
by the processor time that it takes itself, and by waiting for a disk.
"""

from __future__ import annotations

from time import monotonic, thread_time
from typing import TypeAlias

try:
    import resource
except ImportError:  # beside Linux and its like
    resource = None

getrusage = getattr(resource, "getrusage", None) if hasattr(resource, "RUSAGE_THREAD") else None
"""Where it does not tell of a single thread, the clock of the thread has to do."""

SLOW_SECONDS = 0.005
"""A read that takes no longer holds up nothing."""

LONGEST_SECONDS = 0.1
"""A read that takes longer by the clock is ended, and done elsewhere."""

SHARE = 0.01
"""Of the time that goes by, slow reads may take so much of the loop..."""

BURST_SECONDS = 0.025
"""...and so much at once."""

REST_SECONDS = 5.0
"""How long reads go elsewhere after more than that."""


_Used: TypeAlias = tuple[float, int]
"""What a thread has taken so far: seconds of processor time, and blocks that it read from a disk."""


def _used() -> _Used:
    if resource is None or getrusage is None:
        return thread_time(), 0
    usage = getrusage(resource.RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime, usage.ru_inblock


class InlineReads:
    """What slow reads took of the event loop; `began` and `ended` are called on its thread."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._at = 0.0
        self._again_at = 0.0
        self._began_at = 0.0
        self._used: _Used = 0.0, 0

    def may_run(self) -> bool:
        return monotonic() >= self._again_at

    def began(self) -> float:
        """A read begins, which has to end by the time given, on the clock of `time.monotonic`."""
        self._used = _used()
        self._began_at = monotonic()
        return self._began_at + LONGEST_SECONDS

    def ended(self) -> None:
        now = monotonic()
        seconds = now - self._began_at
        if seconds <= SLOW_SECONDS:
            return
        processor, blocks = _used()
        if blocks <= self._used[1]:
            seconds = processor - self._used[0]
        if seconds <= SLOW_SECONDS:
            return
        self._taken = max(0.0, self._taken - SHARE * (now - self._at)) + seconds
        self._at = now
        if self._taken > BURST_SECONDS:
            self._taken, self._again_at = 0.0, now + REST_SECONDS
