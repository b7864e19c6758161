"""One deadline for a call, however many calls of the database it makes.

A block of `within` sets it for everything that is awaited inside; every call of a database ends by it, and the time in
queues, for connections and for repetitions counts. Outside of such a block each call of a database has a limit of its
own (``store.timeout_seconds``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import ContextVar, Token
from functools import wraps
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_ends_at: ContextVar[float | None] = ContextVar("reactor_memory_deadline", default=None)


class within:  # noqa: N801 (it reads as what it is: a block)
    """Everything inside the block together may take `seconds`; an earlier deadline around the block holds, unless the
    block is `anew`: for what has to be tidied up after a deadline.
    """

    __slots__ = ("_anew", "_seconds", "_token")

    def __init__(self, seconds: float, *, anew: bool = False) -> None:
        self._seconds = seconds
        self._anew = anew

    def __enter__(self) -> None:
        outer = None if self._anew else _ends_at.get()
        ends = monotonic() + self._seconds
        self._token: Token[float | None] = _ends_at.set(ends if outer is None else min(outer, ends))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _ends_at.reset(self._token)


P = ParamSpec("P")
T = TypeVar("T")


class HasTimeout(Protocol):
    timeout_seconds: float


S = TypeVar("S", bound=HasTimeout)


def in_time(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """One deadline for all that the method asks of databases, `timeout_seconds` of its object after it was called."""

    @wraps(method)
    async def call(part: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        outer, ends = _ends_at.get(), monotonic() + part.timeout_seconds
        token = _ends_at.set(ends if outer is None or ends < outer else outer)
        try:  # as a block of `within`, which would cost three calls more
            return await method(part, *args, **kwargs)
        finally:
            _ends_at.reset(token)

    return call


def restart_deadline(seconds: float) -> None:
    """The running call may take `seconds` from here on: for a worker that has waited for its caller meanwhile."""
    _ends_at.set(monotonic() + seconds)


def forget_deadline() -> None:
    """For a task that outlives the call which began it: the deadline of that call does not count from here on."""
    _ends_at.set(None)


def end_of_call(limit_seconds: float) -> float:
    """When a call of the database that begins now has to end, on the clock of `time.monotonic`."""
    ends = _ends_at.get()
    return monotonic() + limit_seconds if ends is None else ends


def seconds_left() -> float:
    """Until the deadline of the call; infinite without one."""
    ends = _ends_at.get()
    return inf if ends is None else seconds_until(ends)


def seconds_until(ends: float) -> float:
    """At least 0."""
    return max(0.0, ends - monotonic())
