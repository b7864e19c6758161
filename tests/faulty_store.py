"""A store that fails, or never answers, at a call of the test's choice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal, TypeAlias

import anyio

from reactor_memory.errors import StoreUnavailableError

Mode: TypeAlias = Literal["before", "after", "hang"]


class FaultyStore:
    """Passes every call on to `store`, except that call number `at` (from 1) fails.

    ``before``: nothing is done. ``after``: it is done, but the caller is not told. ``hang``: nothing is done and no
    answer comes. With `for_ever` every later call fails the same way, until `heal`. `open` and `close` do not count,
    nor do calls other than `methods` (None: all count).
    """

    def __init__(
        self,
        store: Any,
        *,
        at: int,
        mode: Mode,
        for_ever: bool = False,
        methods: Collection[str] | None = None,
    ) -> None:
        self._store = store
        self._at = at
        self._mode = mode
        self._for_ever = for_ever
        self._methods = methods
        self._healed = False
        self.calls = 0
        self.failures = 0

    def heal(self) -> None:
        self._healed = True

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)
        if self._methods is not None and name not in self._methods:
            return operation

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if not self._fails(self.calls):
                return await operation(*args, **kwargs)
            return await self._fail(lambda: operation(*args, **kwargs))

        return call

    def _fails(self, number: int) -> bool:
        return not self._healed and (number >= self._at if self._for_ever else number == self._at)

    async def _fail(self, operation: Callable[[], Awaitable[Any]]) -> Any:
        self.failures += 1
        if self._mode == "hang":
            await anyio.sleep_forever()
        if self._mode == "after":
            await operation()
        raise StoreUnavailableError("store: a fault made by a test")
