"""What a provider gave, without what the message itself holds of it: the frame. Pure.

A frame is the provider's JSON with a reference wherever the message holds the value: its text, parts, calls. So nothing
is stored twice, what nobody knows stands where it stood, and the references tell the order of the blocks. References
are objects with one of the keys below; what a provider writes with such a key is kept under `VERBATIM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

TEXT = "§t"
"""Start and end in the content."""

PART = "§p"
"""The number of a part, or [number, key, ...]: a value in it."""

ARGUMENTS = "§a"
"""The number of a call, whose arguments stand here; with `AS_TEXT` as JSON text."""

CALL_ID = "§i"
"""The number of a call, whose id stands here."""

RESULT_ID = "§r"
"""The id of the call that the message answers stands here."""

AS_TEXT = "§s"
DECODED = "§d"
"""Beside `TEXT`: the value of which the content holds the JSON text."""

WRITTEN = "§w"
"""Beside `PART`: how the provider wrote the part, where that is not how the message holds it."""

EXACT = "§x"
"""Beside another reference: what the provider gave in this place, of which the message holds a storable form."""

VERBATIM = "§v"
"""A value that is no reference, although it looks like one."""

JOINED = "§j"
"""In the frame itself: the provider gave the message together with the one before it."""

_PLACES = (TEXT, PART, ARGUMENTS)

Reference: TypeAlias = tuple[str, Any]


class Held(NamedTuple):
    """What a message holds of its frame. `ids` are those that its calls are to have, `result_id` that of the call it
    answers.
    """

    content: str
    parts: Sequence[dict[str, Any]]
    calls: Sequence[Any]
    ids: Sequence[str]
    result_id: str | None


def references(frame: Any) -> Iterator[Reference]:
    """The places of text, parts and calls in their order."""
    if isinstance(frame, list):
        for each in cast("list[Any]", frame):
            yield from references(each)
    elif isinstance(frame, dict):
        found = cast("dict[str, Any]", frame)
        kind = next((key for key in _PLACES if key in found), None)
        if kind is not None:
            yield kind, found[kind]
            yield from references(found.get(WRITTEN))
        elif VERBATIM not in found:
            for each in found.values():
                yield from references(each)


def names_call(frame: Any) -> bool:
    """Whether the provider gave the id of the call that the message answers."""
    if isinstance(frame, list):
        return any(map(names_call, cast("list[Any]", frame)))
    if not isinstance(frame, dict) or VERBATIM in frame:
        return False
    found = cast("dict[str, Any]", frame)
    return RESULT_ID in found or any(map(names_call, found.values()))


def fits(frame: Any, content: str, parts: int, calls: int) -> bool:
    """Whether the frame belongs to a message as it is now: not if it was shortened since."""
    end, seen_parts, seen_calls = 0, set[int](), set[int]()
    for kind, value in references(frame):
        if kind == TEXT:
            end = max(end, value[1])
        elif kind == PART:
            seen_parts.add(value if isinstance(value, int) else value[0])
        else:
            seen_calls.add(value)
    return end == len(content) and seen_parts == {*range(parts)} and seen_calls == {*range(calls)}


def filled(frame: Any, held: Held, as_object: Callable[[Any], dict[str, Any]]) -> Any:
    """The provider's JSON. `as_object` reads the arguments of a call."""
    if isinstance(frame, list):
        return [filled(each, held, as_object) for each in cast("list[Any]", frame)]
    if not isinstance(frame, dict):
        return frame
    found = cast("dict[str, Any]", frame)
    for key in (EXACT, VERBATIM):
        if key in found:
            return found[key]
    if WRITTEN in found:
        return filled(found[WRITTEN], held, as_object)
    if ARGUMENTS in found:
        call: Any = held.calls[found[ARGUMENTS]]
        return call.arguments_text if AS_TEXT in found else as_object(call)
    read = next((read for key, read in _READ.items() if key in found), None)
    if read is not None:
        return read(found, held)
    return {key: filled(each, held, as_object) for key, each in found.items() if key != JOINED}


def _text(reference: dict[str, Any], held: Held) -> Any:
    start, end = reference[TEXT]
    text = held.content[start:end]
    return msgspec.json.decode(text) if DECODED in reference else text


_READ: dict[str, Callable[[dict[str, Any], Held], Any]] = {
    TEXT: _text,
    PART: lambda reference, held: _of_part(held.parts, reference[PART]),
    CALL_ID: lambda reference, held: held.ids[reference[CALL_ID]],
    RESULT_ID: lambda reference, held: held.result_id,
}


def _of_part(parts: Sequence[dict[str, Any]], place: Any) -> Any:
    if isinstance(place, int):
        return parts[place]
    number, *keys = cast("list[Any]", place)
    return reduce(getitem, keys, cast("Any", parts[number]))


def verbatim(value: Any) -> Any:
    """A value of a provider as a frame holds it."""
    if isinstance(value, list):
        return [verbatim(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, Any]", value)
    if any(key.startswith("§") for key in found):
        return {VERBATIM: found}
    return {key: verbatim(each) for key, each in found.items()}
