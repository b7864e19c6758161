"""What a reader of a context takes in at once: a line of a memory block, or elsewhere a whole message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from reactor_memory.core.context.context import Context
from reactor_memory.models import JsonObject, Message

MAX_LINE_CHARACTERS = 400
"""A longer line of a memory block is no unit: everything in one line would always be found."""


class Unit(NamedTuple):
    """What a reader takes in at once. `columns` are the names of its parts in a header above it; `is_line`: it is a
    line of memory, elsewhere a whole message.
    """

    text: str
    is_line: bool = True
    columns: tuple[str, ...] = ()


def units_of(context: Context) -> Iterator[Unit]:
    """The units of a context in its order: the lines of memory, and the messages but for the one to come."""
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part in context.report.blocks:
            yield from lines_as_units(message.content.split("\n"))
        elif part != "current":
            yield Unit(message_unit(message), is_line=False)


def lines_as_units(lines: Iterable[str]) -> Iterator[Unit]:
    """Lines of memory, each with the columns that a header above it names."""
    columns: tuple[str, ...] = ()
    for line in lines:
        header = columns_of(line)
        if header:
            columns = header
        elif not line.startswith("+ "):
            columns = ()
        if len(line) <= MAX_LINE_CHARACTERS:
            yield Unit(line, columns=() if header else columns)


def columns_of(line: str) -> tuple[str, ...]:
    """The names of the columns in a header, "Bookings (hotel; day):"; empty if it is none."""
    title, opened, names = line.removesuffix("):").rpartition("(")
    if not (line.endswith("):") and opened and ";" in names) or "=" in title or ")" in names:
        return ()
    return tuple(name.strip() for name in names.split(";"))


def context_units(context: Context) -> tuple[str, ...]:
    """The text of the units of a context."""
    return tuple(unit.text for unit in units_of(context))


def message_unit(message: Message) -> str:
    """The text of a message and its tool calls as JSON."""
    if not message.tool_calls:
        return message.content
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return f"{message.content}\n{msgspec.json.encode(calls).decode()}"


def request_units(request: Iterable[JsonObject]) -> tuple[str, ...]:
    """The messages of a request to a provider as units: every string in a message, one below the other."""
    return tuple("\n".join(_strings(message)) for message in request)


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(item)  # pyright: ignore[reportUnknownArgumentType]
