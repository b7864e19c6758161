"""The values that a field takes that takes one of few, for whoever sent another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import inspect

_NAMES = re.compile(r"[A-Za-z]+")


def choices(annotation: Any, place: str = "") -> tuple[str, ...]:
    """Those of the field at `place`, such as ``messages[0].role``, of a type, or of the type itself; none if it takes
    others, too.
    """
    found = list(_parts([inspect.type_info(annotation)]))
    for name in _NAMES.findall(place):
        structs = [each for each in found if isinstance(each, inspect.StructType)]
        found = list(_parts([field.type for each in structs for field in each.fields if field.encode_name == name]))
    return tuple(str(value) for each in found if isinstance(each, inspect.LiteralType) for value in each.values)


def _parts(types: Sequence[inspect.Type]) -> Iterator[inspect.Type]:
    for each in types:
        if isinstance(each, inspect.UnionType):
            yield from _parts(each.types)
        elif isinstance(each, inspect.ListType):
            yield from _parts([each.item_type])
        else:
            yield each
