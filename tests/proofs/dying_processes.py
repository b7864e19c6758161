"""What processes do that kill themselves (``SIGKILL``), one after the other."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn


def say(*words: object) -> None:
    print(*words, flush=True)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def each_killed(kills: int, work: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Run `work` so often, each time in a process of its own, and say ``bad`` of one that did not kill itself."""
    for number in range(kills):
        child = os.fork()
        if not child:
            asyncio.run(work(number))
            os._exit(1)
        _, status = os.waitpid(child, 0)
        if os.WTERMSIG(status) != signal.SIGKILL:
            say("bad", f"process {number} ended by itself")
