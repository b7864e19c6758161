"""Items that applications keep."""

from __future__ import annotations

from reactor_memory.models import JsonObject, Value


class Item(Value, frozen=True, kw_only=True):
    """A JSON object that an application keeps under a namespace and a key.

    A namespace is a path: labels with points between them.
    """

    namespace: str
    key: str
    value: JsonObject
    created_at: int
    updated_at: int


class ItemChange(Value, frozen=True, kw_only=True):
    """What an item becomes; without a `value` it is removed."""

    namespace: str
    key: str
    value: JsonObject | None = None
