"""A database that fails, or never answers, at a call of the test's choice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal, TypeAlias

import anyio

from reactor_memory.database.database import Database
from reactor_memory.errors import StoreUnavailableError

Mode: TypeAlias = Literal["before", "after", "hang"]


class FaultyDatabase(Database):
    """Passes every call on to `database`, except that call number `at` (from 1) fails.

    ``before``: nothing is done. ``after``: it is done, but the caller is not told. ``hang``: nothing is done and no
    answer comes. With `for_ever` every later call fails the same way, until `heal`. `open` and `close` do not count,
    nor do calls of other operations than `operations`, by the names of their functions (None: all count).
    """

    def __init__(
        self,
        database: Database,
        *,
        at: int,
        mode: Mode,
        for_ever: bool = False,
        operations: Collection[str] | None = None,
    ) -> None:
        self.engine = database.engine  # pyright: ignore[reportIncompatibleVariableOverride]
        self._database = database
        self._at = at
        self._mode = mode
        self._for_ever = for_ever
        self._operations = operations
        self._healed = False
        self.calls = 0
        self.failures = 0

    def heal(self) -> None:
        self._healed = True

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def read(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(operation.__name__, lambda: self._database.read(operation, *args, **kwargs))

    async def read_long(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(operation.__name__, lambda: self._database.read_long(operation, *args, **kwargs))

    async def write(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(operation.__name__, lambda: self._database.write(operation, *args, **kwargs))

    async def write_relaxed(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(operation.__name__, lambda: self._database.write_relaxed(operation, *args, **kwargs))

    async def one(self, statement: str, values: Any, *, is_repeatable: bool = False) -> Any:
        return await self._call(statement, lambda: self._database.one(statement, values, is_repeatable=is_repeatable))

    async def write_grouped(self, write: Any, request: Any) -> Any:
        return await self._call(write.alone.__name__, lambda: self._database.write_grouped(write, request))

    async def _call(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        if self._operations is not None and name not in self._operations:
            return await work()
        self.calls += 1
        return await (self._fail(work) if self._fails(self.calls) else work())

    def _fails(self, number: int) -> bool:
        return not self._healed and (number >= self._at if self._for_ever else number == self._at)

    async def _fail(self, work: Callable[[], Awaitable[Any]]) -> Any:
        self.failures += 1
        if self._mode == "hang":
            await anyio.sleep_forever()
        if self._mode == "after":
            await work()
        raise StoreUnavailableError("store: a fault made by a test")
