"""Groups of sessions in a `RecordStore`: read whole, and changed as nobody else changes them meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import unquote

import anyio

from reactor_memory.core.ports import RecordStore
from reactor_memory.errors import ReactorMemoryError, StoreClosedError, StoreUnavailableError
from reactor_memory.features.record_store.record_family import Family, log_name, made_name

T = TypeVar("T")
Records = Mapping[str, bytes | None]

MOST_TRIES = 100
"""Somebody else has to succeed for each that fails."""
PAGE = 500
"""Names that are asked for at once, and records."""


class Families:
    """What the two stores are made of. An error of the store that is none of ours is a `StoreUnavailableError`."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._is_open = False

    async def open(self) -> None:
        await self._asked(self._store.open())
        self._is_open = True

    async def close(self) -> None:
        was_open, self._is_open = self._is_open, False
        if was_open:
            await self._asked(self._store.close())

    @property
    def name(self) -> str:
        return type(self._store).__name__

    async def read(self, names: Iterable[str]) -> dict[str, bytes]:
        self._require_open()
        asked = list(dict.fromkeys(names))
        found: dict[str, bytes] = {}
        for start in range(0, len(asked), PAGE):
            found |= await self._asked(self._store.read(asked[start : start + PAGE]))
        return found

    async def names(self, prefix: str) -> AsyncIterator[str]:
        """What follows the prefix in the names of records, in order."""
        after = ""
        while True:
            self._require_open()
            page = await self._asked(self._store.names(prefix, after=after, limit=PAGE))
            for name in page:
                yield name[len(prefix) :]
            if len(page) < PAGE:
                return
            after = page[-1]

    async def groups(self, prefix: str) -> AsyncIterator[Family]:
        """Those that records with this prefix name."""
        async for group in self.names(prefix):
            yield await self.family(unquote(group))

    async def family(self, group_id: str) -> Family:
        found = await self.read((log_name(group_id), made_name(group_id)))
        return Family(group_id, found.get(log_name(group_id)), found.get(made_name(group_id)))

    async def change(
        self, group_id: str, deed: Callable[[Family, Mapping[str, bytes]], tuple[T, Records]], also: Sequence[str] = ()
    ) -> T:
        """What `deed` answers after it has changed the group, with more records to write. It is given those of `also`
        that there are, and called again if somebody changed the group meanwhile; what it raises changes nothing.
        """
        log, made = log_name(group_id), made_name(group_id)
        for tries in range(MOST_TRIES):
            found = await self.read((log, made, *also))
            family = Family(group_id, found.get(log), found.get(made))
            before = family.records() if log in found or made in found else {}
            answer, more = deed(family, found)
            after = family.records()
            changed: dict[str, bytes | None] = {name: each for name, each in after.items() if before.get(name) != each}
            changed |= dict.fromkeys(before.keys() - after.keys()) | dict(more)
            expected = {name: found.get(name) for name in (log, made)}
            if not changed or await self._asked(self._store.write(changed, expected=expected)):
                return answer
            await anyio.sleep(0.001 * min(tries, 20))
        raise StoreUnavailableError(f"store: {self.name} found no quiet moment for a write in {MOST_TRIES} tries")

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreClosedError

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except ReactorMemoryError:
            raise
        except Exception as error:  # it is anybody's code
            raise StoreUnavailableError(f"store: {self.name} fails with a {type(error).__name__}") from error
