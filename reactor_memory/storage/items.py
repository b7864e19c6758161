"""The operations on items: what applications keep by namespace and key, each user's apart.

`user_id` "" is nobody in particular. A namespace is a path of labels with points between them; "" is above all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from reactor_memory.database.operations import Batch, Row, Step, Steps
from reactor_memory.models import Item, ItemChange, JsonObject
from reactor_memory.storage.user_rows import name_user

UNLIMITED = 2**63 - 1

_OBJECT = msgspec.json.Decoder(JsonObject)


def read_items(user_id: str, keys: Sequence[tuple[str, str]]) -> Steps[tuple[Item | None, ...]]:
    """The items under these namespaces and keys, in this order; None for what is not there."""
    yield from name_user(user_id)
    found: list[Item | None] = []
    for namespace, key in keys:
        rows = yield Step("item", {"user_id": user_id, "namespace": namespace, "key": key})
        found.append(_item(rows[0]) if rows else None)
    return tuple(found)


def list_items(user_id: str, namespace: str, *, limit: int | None = None) -> Steps[tuple[Item, ...]]:
    """The items of the namespace and of all below it, changed last first; at most `limit`."""
    yield from name_user(user_id)
    values = {"user_id": user_id, "limit": UNLIMITED if limit is None else limit}
    if namespace:
        below = {"namespace": namespace, "first": f"{namespace}.", "beyond": f"{namespace}/"}
        rows = yield Step("items_below", values | below)
    else:
        rows = yield Step("items_of_user", values)
    return tuple(map(_item, rows))


def list_item_namespaces(user_id: str) -> Steps[tuple[str, ...]]:
    """The namespaces that hold an item, in the order of their code points."""
    yield from name_user(user_id)
    rows = yield Step("item_namespaces", {"user_id": user_id})
    return tuple(row[0] for row in rows)


def change_items(user_id: str, changes: Sequence[ItemChange], *, now: int) -> Steps[None]:
    """Make all changes, or none, in their order. What is replaced keeps the time of its creation."""
    yield from name_user(user_id)
    last = {(change.namespace, change.key): change.value for change in changes}
    keys = {key: {"user_id": user_id, "namespace": key[0], "key": key[1]} for key in last}
    put = [keys[key] | {"value": value_to_json(value), "now": now} for key, value in last.items() if value is not None]
    removed = [keys[key] for key, value in last.items() if value is None]
    if put:
        yield Batch("put_item", put)
    if removed:
        yield Batch("remove_item", removed)


def value_to_json(value: JsonObject) -> str:
    return msgspec.json.encode(value).decode()


def value_from_json(text: str) -> JsonObject:
    return _OBJECT.decode(text)


def _item(row: Row) -> Item:
    namespace, key, value, created_at, updated_at = row
    return Item(
        namespace=namespace, key=key, value=value_from_json(value), created_at=created_at, updated_at=updated_at
    )
