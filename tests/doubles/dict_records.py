"""A `RecordStore` in a dictionary that says what it was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import anyio.lowlevel


class DictRecords:
    """`waits`: others get their turn before each answer."""

    def __init__(self, *, waits: bool = False) -> None:
        self.kept: dict[str, bytes] = {}
        self.asked: list[str] = []
        self._waits = waits

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        self.asked += names
        found = {name: self.kept[name] for name in names if name in self.kept}
        await self._wait()
        return found

    async def names(self, prefix: str, *, after: str, limit: int) -> Sequence[str]:
        return sorted(name for name in self.kept if name.startswith(prefix) and name > after)[:limit]

    async def write(self, records: Mapping[str, bytes | None], *, expected: Mapping[str, bytes | None]) -> bool:
        await self._wait()
        if any(self.kept.get(name) != record for name, record in expected.items()):
            return False
        self.kept = {name: record for name, record in (self.kept | dict(records)).items() if record is not None}
        return True

    async def _wait(self) -> None:
        if self._waits:
            await anyio.lowlevel.checkpoint()
