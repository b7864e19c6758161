"""Blocks of ``async with`` that say how they are entered to whoever forgets it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
)
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

from reactor_memory.errors import InvalidInputError

P = ParamSpec("P")
T = TypeVar("T")


class NotEnteredError(InvalidInputError, AttributeError):
    """A block was used without entering it. An `AttributeError`, so that `hasattr` says no."""


class Unentered:
    """A block that is not entered: what only an entered one has is refused, with the line to write."""

    _call: str = ""
    _line: str = ""

    def _refuse(self, *_: object) -> NoReturn:
        raise NotEnteredError(self._call, f"gives a block, which is not entered: write `{self._line}`")

    def __repr__(self) -> str:
        return f"<{self._call}, a block that is not entered: {self._line}>"

    if not TYPE_CHECKING:  # a type checker shall go on refusing what is refused here
        __await__ = _refuse
        __getattr__ = _refuse


class AsyncBlock(Unentered, AbstractAsyncContextManager[T, "bool | None"], Generic[T]):
    """A block of ``async with``."""

    def __init__(self, block: AbstractAsyncContextManager[T], call: str, line: str) -> None:
        self._block = block
        self._call = call
        self._line = line

    async def __aenter__(self) -> T:
        return await self._block.__aenter__()

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._block.__aexit__(*raised)

    if not TYPE_CHECKING:
        __enter__ = __exit__ = Unentered._refuse


def nothing(*_: object) -> AbstractAsyncContextManager[None]:
    """A block around which nothing happens."""
    return nullcontext()


def async_block(line: str) -> Callable[[Callable[P, AsyncGenerator[T]]], Callable[P, AsyncBlock[T]]]:
    """`asynccontextmanager` for a block that is entered with this line."""

    def of(function: Callable[P, AsyncGenerator[T]]) -> Callable[P, AsyncBlock[T]]:
        opened = asynccontextmanager(function)

        @wraps(function)
        def block(*args: P.args, **kwargs: P.kwargs) -> AsyncBlock[T]:
            return AsyncBlock(opened(*args, **kwargs), function.__name__, line)

        return block

    return of
