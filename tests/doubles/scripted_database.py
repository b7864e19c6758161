"""A database whose answers a test writes."""

from __future__ import annotations

from typing import Any, ClassVar

from reactor_memory.database.database import Database, Engine


class ScriptedDatabase(Database):
    """Answers an operation by the method of its name, which a subclass has."""

    engine: ClassVar[Engine] = "sqlite"

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _answer(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return await getattr(self, operation.__name__)(*args, **kwargs)

    read = read_long = write = write_relaxed = _answer

    async def one(self, statement: str, values: Any, *, is_repeatable: bool = False) -> Any:
        return await getattr(self, statement)(values)

    async def write_grouped(self, write: Any, request: Any) -> Any:
        return await self._answer(write.alone, request)
