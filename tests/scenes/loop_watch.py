"""Whether the event loop stays free: how much processor time each of its steps takes."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from unittest.mock import patch

import pytest

MOST_SECONDS = 0.05
USUAL_SECONDS = 0.006
"""What `_slowness` counts takes on a core of today."""


@cache
def _slowness() -> float:
    """How many times slower than usual this machine is, 1 at least."""
    best = 1.0
    for _ in range(5):
        begin = time.thread_time()
        sum([number % 7 for number in range(150_000)])
        best = min(best, time.thread_time() - begin)
    return max(1.0, best / USUAL_SECONDS)


@asynccontextmanager
async def free_loop(most_seconds: float = MOST_SECONDS) -> AsyncGenerator[None]:
    """Fails if one step of the running loop takes more than `most_seconds` of processor time of its thread; on a slow
    machine accordingly more.

    Processor time, so that a busy machine fails nothing. Garbage is collected before and after: how long that takes
    depends on all the tests that ran before.
    """
    longest, most_seconds = (0.0, ""), most_seconds * _slowness()
    run, watched = asyncio.Handle._run, threading.get_ident()  # pyright: ignore[reportPrivateUsage] (no other way in)

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        begin = time.thread_time()
        run(handle)
        seconds = time.thread_time() - begin
        if threading.get_ident() == watched and seconds > longest[0]:
            longest = (seconds, repr(handle))

    gc.collect()
    gc.disable()
    try:
        with patch.object(asyncio.Handle, "_run", timed):
            await asyncio.sleep(0)  # the step that is under way began unwatched
            yield
            await asyncio.sleep(0)  # the last step of the body ends
    finally:
        gc.enable()
    seconds, name = longest
    if seconds > most_seconds:
        pytest.fail(f"a step of the event loop took {seconds * 1000:.0f} ms: {name:.300}")
