"""What a reader of a context takes in at once: a line of a memory block, a passage that came back, or elsewhere a whole
message, that of a tool with the call that it answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reactor_memory.core.context.context import Context
from reactor_memory.models import JsonObject, Message, ToolCall
from reactor_memory.models.turns import find_pairs

MAX_LINE_CHARACTERS = 400
"""A longer line of a memory block is no unit: everything in one line would always be found."""


RESULT = "->"
"""Between what a call was given and what it gave back."""


class Unit(NamedTuple):
    """What a reader takes in at once. `columns` are the names of its parts in a header above it; `is_line`: it is a
    line of memory, elsewhere a whole message or a passage of one.
    """

    text: str
    is_line: bool = True
    columns: tuple[str, ...] = ()


def units_of(context: Context) -> Iterator[Unit]:
    """The units of a context in its order: the lines of memory, the messages but for the one to come, and what of them
    came back, each passage by itself.
    """
    report, read = context.report, message_units(context.messages)
    behind = {frame.part for frame in report.frames if frame.place == "last"}
    for message, text, part in zip(context.messages, read, report.parts, strict=True):
        if part in behind:
            yield from (Unit(line, is_line=False) for line in message.content.split("\n"))
        elif part in report.blocks:
            yield from lines_as_units(message.content.split("\n"))
        elif part != "current":
            yield Unit(text, is_line=False)


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
    """The names of the columns in a header, "Bookings (hotel; day):"; empty if it is none. `RESULT` stands between what
    was given and what came back, and what all rows have ("seats=2") is no column.
    """
    title, opened, names = line.removesuffix("):").rpartition("(")
    if not (line.endswith("):") and opened and (";" in names or RESULT in names)) or "=" in title or ")" in names:
        return ()
    given, arrow, made = names.partition(RESULT)
    found = [
        name.strip().split(" then ")[0] for name in (*given.split(";"), *([RESULT] * bool(arrow)), *made.split(";"))
    ]
    return tuple(name for name in found if name and "=" not in name)


def context_units(context: Context) -> tuple[str, ...]:
    """The text of the units of a context."""
    return tuple(unit.text for unit in units_of(context))


def message_units(messages: Sequence[Message]) -> list[str]:
    """The text of each message as it is read among the others: a result below the call that it answers."""
    read = [message_unit(message) for message in messages]
    for pair in find_pairs(messages):
        calls = {call.id: call for call in messages[pair.call].tool_calls}
        for index in pair.results:
            call = calls[messages[index].tool_call_id or ""]
            read[index] = f"{_call_text(call)}\n{read[index]}"
    return read


def message_unit(message: Message) -> str:
    """The text of a message by itself, with the name of who speaks and its tool calls."""
    name = [message.name] if message.name and message.role == "user" else []
    return "\n".join([*name, message.content, *map(_call_text, message.tool_calls)])


def _call_text(call: ToolCall) -> str:
    """The call with its arguments in the spacing that models and probes use, which `msgspec` leaves out."""
    arguments = call.arguments
    return f"{call.name} {arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)}"


def request_units(request: Iterable[JsonObject]) -> tuple[str, ...]:
    """The messages of a request in the form of OpenAI as units: every string in a message, one below the other, a
    result below its call.
    """
    units: list[str] = []
    calls: dict[object, JsonObject] = {}
    for message in request:
        calls |= {call.get("id"): call for call in message.get("tool_calls") or ()}
        units.append("\n".join(_strings([calls.get(message.get("tool_call_id")), message])))
    return tuple(units)


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(item)  # pyright: ignore[reportUnknownArgumentType]
