"""Memos of pure functions over texts, which can be emptied: what was erased must not stay in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")

_memos: WeakSet[Any] = WeakSet()


def memo(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """As `functools.lru_cache`, until `forget_texts` is called."""

    def remembering(function: Callable[P, T]) -> Callable[P, T]:
        remembered = lru_cache(maxsize=maxsize)(function)
        _memos.add(remembered)
        return cast("Callable[P, T]", remembered)

    return remembering


def forget_texts() -> None:
    """Empty every memo of this process."""
    for each in list(_memos):
        each.cache_clear()
