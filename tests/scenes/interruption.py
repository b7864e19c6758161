"""Cancelling a coroutine at an await of the test's choice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Literal, TypeAlias

import anyio

Way: TypeAlias = Literal["task", "scope"]


class _Interrupted:
    """Runs `coroutine`; when it suspends for the `at`-th time (from 0), `cancel` is called while it waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], at: int, cancel: Any) -> None:
        self.suspensions = 0
        self._coroutine = coroutine
        self._at = at
        self._cancel = cancel

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        try:
            waits_for = next(inner)
            while True:
                if self.suspensions == self._at:
                    self._cancel()
                self.suspensions += 1
                try:
                    value = yield waits_for
                except BaseException as error:
                    waits_for = inner.throw(error)
                else:
                    waits_for = inner.send(value)
        except StopIteration as done:
            return done.value


async def cancelled_at(coroutine: Coroutine[Any, Any, Any], at: int, way: Way) -> bool:
    """Whether `coroutine` was cancelled at its `at`-th await; if it has fewer, it has run to its end.

    ``task`` cancels like `asyncio`, once; ``scope`` like anyio, at every await from there on.
    """
    return await asyncio.create_task(_by_task(coroutine, at) if way == "task" else _by_scope(coroutine, at))


async def _by_task(coroutine: Coroutine[Any, Any, Any], at: int) -> bool:
    task = asyncio.current_task()
    assert task is not None
    interrupted = _Interrupted(coroutine, at, task.cancel)
    try:
        await interrupted
    except asyncio.CancelledError:
        task.uncancel()
        return True
    return interrupted.suspensions > at


async def _by_scope(coroutine: Coroutine[Any, Any, Any], at: int) -> bool:
    with anyio.CancelScope() as scope:
        interrupted = _Interrupted(coroutine, at, scope.cancel)
        await interrupted
    return scope.cancel_called
