"""The operations on items: what applications keep by namespace and key, each user's apart.

`user_id` "" is nobody in particular. A namespace is a path of labels with points between them; "" is above all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict

import msgspec

from reactor_memory.core.log.user_rows import name_user
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.items.models import Item, ItemChange
from reactor_memory.models import JsonObject
from reactor_memory.text.analyzer import terms

BEYOND_ALL = "\U0010ffff"
"""Comes behind every namespace."""

FIRST_PAGE = 64

Found: TypeAlias = tuple[tuple[Item, int], ...]
"""Items, each with how many terms of the query it holds."""

_OBJECT = msgspec.json.Decoder(JsonObject)


def read_items(user_id: str, keys: Sequence[tuple[str, str]]) -> Steps[tuple[Item | None, ...]]:
    """The items under these namespaces and keys, in this order; None for what is not there."""
    yield from name_user(user_id)
    wanted = msgspec.json.encode(list(dict.fromkeys(keys))).decode()
    rows = yield Query("items_of_keys", {"user_id": user_id, "keys": wanted})
    found = {(row[0], row[1]): row for row in rows}
    return tuple(_item(found[key]) if key in found else None for key in keys)


def list_items(user_id: str, namespace: str) -> Steps[tuple[Item, ...]]:
    """The items of the namespace and of all below it, changed last first."""
    yield from name_user(user_id)
    rows = yield Query("items_below", {"user_id": user_id} | _below(namespace))
    return tuple(map(_item, rows))


class ItemSearch(TypedDict):
    """The arguments of `find_items`."""

    namespace: str
    query: frozenset[str]
    fragments: Sequence[str]
    fits: Callable[[JsonObject], bool] | None
    limit: int


def find_items(
    user_id: str,
    namespace: str,
    *,
    query: frozenset[str] = frozenset(),
    fragments: Sequence[str] = (),
    fits: Callable[[JsonObject], bool] | None = None,
    limit: int,
) -> Steps[Found]:
    """The first `limit` items of the namespace and of all below it, with how many terms of `query` each holds: those
    with most of them first, then those changed last.

    Only values that `fits` accepts. `fragments` stand in the JSON of each of them: the database selects by these, and
    `fits` is asked about the rest, page by page until there are enough.
    """
    yield from name_user(user_id)
    values = {
        "user_id": user_id,
        "terms": _json([f" {term} " for term in sorted(query)]),
        "fragments": _json(fragments),
        "after_shared": len(query) + 1,
        "after_updated_at": 0,
        "after_namespace": "",
        "after_key": "",
    }
    found: list[tuple[Item, int]] = []
    page = limit if fits is None else max(limit, FIRST_PAGE)
    while len(found) < limit:
        rows = yield Query("found_items", values | _below(namespace) | {"limit": page})
        read = ((_item(row[:5]), row[5]) for row in rows)
        found += [each for each in read if fits is None or fits(each[0].value)]
        if len(rows) < page:
            break
        last = rows[-1]
        after = {"shared": last[5], "updated_at": last[4], "namespace": last[0], "key": last[1]}
        values |= {f"after_{name}": value for name, value in after.items()}
        page *= 16
    return tuple(found[:limit])


def find_each(user_id: str, searches: Sequence[ItemSearch]) -> Steps[tuple[Found | InvalidInputError, ...]]:
    """What `find_items` finds for each search, or why its condition cannot be asked for."""
    answers: list[Found | InvalidInputError] = []
    for search in searches:
        try:
            answers.append((yield from find_items(user_id, **search)))
        except InvalidInputError as error:
            answers.append(error)
    return tuple(answers)


def list_item_namespaces(user_id: str) -> Steps[tuple[str, ...]]:
    """The namespaces that hold an item, in the order of their code points."""
    yield from name_user(user_id)
    rows = yield Query("item_namespaces", {"user_id": user_id})
    return tuple(row[0] for row in rows)


def change_items(user_id: str, changes: Sequence[ItemChange], *, now: int) -> Steps[None]:
    """Make all changes, or none, in their order. What is replaced keeps the time of its creation."""
    yield from name_user(user_id)
    last = {(change.namespace, change.key): change.value for change in changes}
    keys = {key: {"user_id": user_id, "namespace": key[0], "key": key[1]} for key in last}
    put = [keys[key] | value_columns(value) | {"now": now} for key, value in last.items() if value is not None]
    removed = [keys[key] for key, value in last.items() if value is None]
    if put:
        yield Batch("put_item", put)
    if removed:
        yield Batch("remove_item", removed)


def value_columns(value: JsonObject) -> dict[str, str]:
    """What is stored of a value: its JSON, and the terms of that, with spaces around and between."""
    text = _json(value)
    return {"value": text, "terms": f" {' '.join(sorted(set(terms(text))))} "}


def value_from_json(text: str) -> JsonObject:
    return _OBJECT.decode(text)


def _below(namespace: str) -> dict[str, str]:
    """The bounds of a namespace and of all below it; all there are below ""."""
    if not namespace:
        return {"namespace": "", "first": "", "beyond": BEYOND_ALL}
    return {"namespace": namespace, "first": f"{namespace}.", "beyond": f"{namespace}/"}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _item(row: Row) -> Item:
    namespace, key, value, created_at, updated_at = row
    return Item(
        namespace=namespace, key=key, value=value_from_json(value), created_at=created_at, updated_at=updated_at
    )
