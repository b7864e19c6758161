"""The process in which something was opened. A fork takes neither threads nor connections along, and what it shares
with its parent, sockets and what waits for them, must be left alone.
"""

from __future__ import annotations

import asyncio
import os
from weakref import WeakKeyDictionary

from reactor_memory.errors import OtherProcessError

_forks = 0
"""On the way from the first process to this one: to compare it takes no system call."""


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Process:
    """The one in which this object was made."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = _forks

    @property
    def is_this(self) -> bool:
        return self._forks == _forks

    def check(self) -> None:
        """Raises `OtherProcessError` in any other."""
        if self._forks != _forks:
            raise OtherProcessError


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Process] = WeakKeyDictionary()


def note_process(loop: asyncio.AbstractEventLoop) -> Process:
    """This one, for whoever asks later in which the event loop runs."""
    return _of_loops.setdefault(loop, Process())


def process_of(loop: asyncio.AbstractEventLoop) -> Process:
    """The one of which it was noted, else this one."""
    return _of_loops.get(loop) or Process()
