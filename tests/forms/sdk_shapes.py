"""Shapes that the types of an SDK allow: one value for each member of a union, with what it must have and with all it
may have.

Nothing is named here: a member that a newer SDK brings is drawn as well.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import pydantic
from typing_extensions import is_typeddict

Json = dict[str, Any]

_MOST_LEVELS = 6


def members(union: Any) -> Iterator[Any]:
    """The types that a union of an SDK is made of, each once."""
    yield from dict.fromkeys(_members(union))


def _members(union: Any) -> Iterator[Any]:
    origin = get_origin(union)
    if origin in (Union, types.UnionType):
        for each in get_args(union):
            yield from _members(each)
    elif origin is typing.Annotated:
        yield from _members(get_args(union)[0])
    elif isinstance(union, type):
        yield union


def shapes(kind: Any) -> Iterator[Json]:
    """Values of JSON of this type: the least, and for each choice inside of it one with everything."""
    for choice in range(4):
        for has_all in (False, True):
            shape = _value(kind, has_all, choice, 0)
            yield validated(kind, shape)


def validated(kind: Any, shape: Json) -> Json:
    """As the SDK's own class gives it; types of dicts are checked."""
    made = pydantic.TypeAdapter(kind).validate_python(shape)
    return made.model_dump(exclude_unset=True, by_alias=True) if isinstance(made, pydantic.BaseModel) else shape


def _value(kind: Any, has_all: bool, choice: int, level: int) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (typing.Annotated, Required, NotRequired):
        return _value(args[0], has_all, choice, level)
    if origin is Literal:
        return args[choice % len(args)]
    if origin in (Union, types.UnionType):
        some = [each for each in args if each is not type(None)]
        return _value(some[choice % len(some)], has_all, choice, level)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [*kind][choice % len(kind)].value
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return _object(_fields(kind), has_all, choice, level)
    if is_typeddict(kind):
        return _object(_keys(kind), has_all, choice, level)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"k": _value(args[1], has_all, choice, level + 1)}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [_value(args[0], has_all, choice, level + 1)] if level < _MOST_LEVELS else []
    return _SIMPLE.get(kind, {"any": ["thing"]})


_SIMPLE: dict[Any, Any] = {str: "x", int: 1, float: 0.5, bool: True, type(None): None, bytes: b"x"}


def _object(fields: Iterator[tuple[str, Any, bool]], has_all: bool, choice: int, level: int) -> Json:
    wants_all = has_all and level < _MOST_LEVELS
    return {
        name: _value(kind, has_all, choice, level + 1) for name, kind, is_needed in fields if is_needed or wants_all
    }


def _fields(kind: type[pydantic.BaseModel]) -> Iterator[tuple[str, Any, bool]]:
    for name, field in kind.model_fields.items():
        yield field.alias or name, field.annotation, field.is_required()


def _keys(kind: Any) -> Iterator[tuple[str, Any, bool]]:
    for name, value in get_type_hints(kind, include_extras=True).items():
        yield name, value, get_origin(value) is Required or (kind.__total__ and get_origin(value) is not NotRequired)
