"""What applications keep by namespace and key, in the memory of this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from reactor_memory.models import Item, ItemChange
from reactor_memory.storage.items import value_from_json, value_to_json


class _Kept(NamedTuple):
    """A value as JSON, so that nobody else holds it."""

    value: str
    created_at: int
    updated_at: int


ItemRows: TypeAlias = dict[tuple[str, str, str], _Kept]
"""Found by user, namespace and key."""


class InMemoryItems(ABC):
    """`ItemsStore`, of a store that keeps `ItemRows`."""

    @property
    @abstractmethod
    def _items(self) -> ItemRows: ...

    async def read_items(self, user_id: str, keys: Sequence[tuple[str, str]]) -> tuple[Item | None, ...]:
        return tuple(self._item(user_id, namespace, key) for namespace, key in keys)

    async def list_items(self, user_id: str, namespace: str, *, limit: int | None = None) -> tuple[Item, ...]:
        found = [
            (-kept.updated_at, at, key)
            for (owner, at, key), kept in self._items.items()
            if owner == user_id and (not namespace or f"{at}.".startswith(f"{namespace}."))
        ]
        items = (self._item(user_id, at, key) for _, at, key in sorted(found)[:limit])
        return tuple(item for item in items if item is not None)

    async def list_item_namespaces(self, user_id: str) -> tuple[str, ...]:
        return tuple(sorted({namespace for owner, namespace, _ in self._items if owner == user_id}))

    async def change_items(self, user_id: str, changes: Sequence[ItemChange], *, now: int) -> None:
        texts = [None if change.value is None else value_to_json(change.value) for change in changes]
        for change, text in zip(changes, texts, strict=True):
            row = (user_id, change.namespace, change.key)
            before = self._items.get(row)
            if text is None:
                self._items.pop(row, None)
            else:
                self._items[row] = _Kept(text, now if before is None else before.created_at, now)

    async def erase_items(self, user_id: str) -> int:
        own = [row for row in self._items if row[0] == user_id]
        for row in own:
            del self._items[row]
        return len(own)

    def _item(self, user_id: str, namespace: str, key: str) -> Item | None:
        kept = self._items.get((user_id, namespace, key))
        if kept is None:
            return None
        return Item(
            namespace=namespace,
            key=key,
            value=value_from_json(kept.value),
            created_at=kept.created_at,
            updated_at=kept.updated_at,
        )
