"""What applications keep by namespace and key, in the memory of this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from reactor_memory.models import Item, ItemChange
from reactor_memory.storage.in_memory_user_rows import KeptItem, UserRows
from reactor_memory.storage.items import value_from_json, value_to_json


class InMemoryItems(ABC):
    """`ItemsStore`, of a store that keeps `UserRows`."""

    @property
    @abstractmethod
    def _users(self) -> UserRows: ...

    async def read_items(self, user_id: str, keys: Sequence[tuple[str, str]]) -> tuple[Item | None, ...]:
        return tuple(self._item(user_id, namespace, key) for namespace, key in keys)

    async def list_items(self, user_id: str, namespace: str, *, limit: int | None = None) -> tuple[Item, ...]:
        found = [
            (-kept.updated_at, at, key)
            for (at, key), kept in self._users.items.get(user_id, {}).items()
            if not namespace or f"{at}.".startswith(f"{namespace}.")
        ]
        items = (self._item(user_id, at, key) for _, at, key in sorted(found)[:limit])
        return tuple(item for item in items if item is not None)

    async def list_item_namespaces(self, user_id: str) -> tuple[str, ...]:
        return tuple(sorted({namespace for namespace, _ in self._users.items.get(user_id, {})}))

    async def change_items(self, user_id: str, changes: Sequence[ItemChange], *, now: int) -> None:
        texts = [None if change.value is None else value_to_json(change.value) for change in changes]
        rows = self._users.items.setdefault(user_id, {})
        for change, text in zip(changes, texts, strict=True):
            row = (change.namespace, change.key)
            before = rows.get(row)
            if text is None:
                rows.pop(row, None)
            else:
                rows[row] = KeptItem(text, now if before is None else before.created_at, now)

    def _item(self, user_id: str, namespace: str, key: str) -> Item | None:
        kept = self._users.items.get(user_id, {}).get((namespace, key))
        if kept is None:
            return None
        return Item(
            namespace=namespace,
            key=key,
            value=value_from_json(kept.value),
            created_at=kept.created_at,
            updated_at=kept.updated_at,
        )
