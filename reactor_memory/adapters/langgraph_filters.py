"""Filters of LangGraph's stores: as parts of the text of an item, and as conditions on its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import JsonObject

_COMPARISONS = {
    "$gt": float.__gt__,
    "$gte": float.__ge__,
    "$lt": float.__lt__,
    "$lte": float.__le__,
}


def fragments(wanted: JsonObject) -> list[str]:
    """Texts that stand in the JSON of every value that matches, so that the database leaves most others out.

    Equal numbers may be written differently, so only texts are looked for, and names that must be there.
    """
    return [text for name, condition in wanted.items() for text in _fragments_of(name, condition)]


def _fragments_of(name: str, condition: Any) -> list[str]:
    if isinstance(condition, str):
        return _written_name(name) + _written(condition)
    if not isinstance(condition, dict):
        return [] if condition is None else _written_name(name)
    conditions = cast("JsonObject", condition)
    if not any(inner.startswith("$") for inner in conditions):
        return _written_name(name) + fragments(conditions)
    for operator in conditions:
        check_operator(operator)
    equal = _written(conditions["$eq"]) if isinstance(conditions.get("$eq"), str) else []
    return equal if _COMPARISONS.keys().isdisjoint(conditions) else equal + _written_name(name)


def _written_name(name: str) -> list[str]:
    """A name in JSON; of one with points what it has in common with the last name of the path that it may be."""
    return [text[1:] if "." in name else text for text in _written(name.rpartition(".")[2])]


def _written(text: str) -> list[str]:
    """A text in JSON; nothing for one that no stored value holds."""
    try:
        return [msgspec.json.encode(text).decode()]
    except UnicodeEncodeError:
        return []


def matches(value: JsonObject, wanted: dict[str, Any] | None) -> bool:
    return all(_fits(_value_at(value, name), condition) for name, condition in (wanted or {}).items())


def _value_at(value: JsonObject, name: str) -> Any:
    """What is under a name, or under a path of names with points between them; None if nothing is."""
    if name in value or "." not in name:
        return value.get(name)
    found: Any = value
    for part in name.split("."):
        found = cast("JsonObject", found).get(part) if isinstance(found, dict) else None
    return found


def _fits(value: Any, condition: Any) -> bool:
    """Whether a value is the one of a filter; inside objects what the filter names, operators where they stand."""
    if isinstance(condition, dict):
        conditions = cast("JsonObject", condition)
        if any(name.startswith("$") for name in conditions):
            return all(_compared(value, operator, operand) for operator, operand in conditions.items())
        return isinstance(value, dict) and matches(cast("JsonObject", value), conditions)
    if isinstance(condition, (list, tuple)):
        conditions, values = list(cast("Sequence[Any]", condition)), cast("list[Any]", value)
        same_length = isinstance(value, list) and len(values) == len(conditions)
        return same_length and all(_fits(one, other) for one, other in zip(values, conditions, strict=True))
    return bool(value == condition)


def _compared(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == operand) == (operator == "$eq")
    check_operator(operator)
    try:
        return _COMPARISONS[operator](float(value), float(operand))
    except (TypeError, ValueError, OverflowError):
        return False


def check_operator(operator: str) -> None:
    if operator not in ("$eq", "$ne", *_COMPARISONS):
        raise InvalidInputError("filter", f"has the operator {operator!r}; known are $eq $ne $gt $gte $lt $lte")
