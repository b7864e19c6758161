"""Requests that are made at once, done in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, TypeVar, cast

A = TypeVar("A")
R = TypeVar("R")

MOST_AT_ONCE = 500
"""So many are done in one call; whoever asks for more at once gets them in one."""


class Joined(Generic[A, R]):
    """Does what is asked for while a call is under way in the next one, in the order in which it was asked for.

    A call that fails fails for all whose requests were in it; an answer that is an exception is raised for those only
    who asked for it. `most` are done in one call.
    """

    def __init__(
        self, run: Callable[[Sequence[A]], Awaitable[Sequence[R | Exception]]], *, most: int = MOST_AT_ONCE
    ) -> None:
        self._run = run
        self._most = most
        self._waiting: list[tuple[Sequence[A], asyncio.Future[Sequence[R]]]] = []
        self._work: asyncio.Task[Any] | None = None

    async def do(self, asked: Sequence[A]) -> Sequence[R]:
        """The answers, in their order."""
        if not asked:
            return ()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[R]] = loop.create_future()
        self._waiting.append((asked, answer))
        if self._work is None:  # in no context of a caller: a deadline of the first one is not that of the others
            self._work = loop.create_task(self._do_all(), context=Context())
        return await answer

    async def _do_all(self) -> None:
        try:
            while self._waiting:
                await self._do_some(self._taken())
        finally:
            self._work = None

    def _taken(self) -> list[tuple[Sequence[A], asyncio.Future[Sequence[R]]]]:
        count = taken = 0
        while taken < len(self._waiting) and (not taken or count + len(self._waiting[taken][0]) <= self._most):
            count += len(self._waiting[taken][0])
            taken += 1
        self._waiting, some = self._waiting[taken:], self._waiting[:taken]
        return some

    async def _do_some(self, some: Sequence[tuple[Sequence[A], asyncio.Future[Sequence[R]]]]) -> None:
        some = [(asked, answer) for asked, answer in some if not answer.done()]  # who was cancelled asks no more
        try:
            results = await self._run([each for asked, _ in some for each in asked]) if some else ()
        except BaseException as error:
            for _, answer in some:
                with suppress(asyncio.InvalidStateError):
                    answer.set_exception(error) if isinstance(error, Exception) else answer.cancel()
            if not isinstance(error, Exception):
                raise
            return
        start = 0
        for asked, answer in some:
            _settle(answer, results[start : start + len(asked)])
            start += len(asked)


def _settle(answer: asyncio.Future[Sequence[R]], results: Sequence[R | Exception]) -> None:
    failed = next((result for result in results if isinstance(result, Exception)), None)
    with suppress(asyncio.InvalidStateError):
        if failed is not None:
            answer.set_exception(failed)
        else:
            answer.set_result(cast("Sequence[R]", results))
