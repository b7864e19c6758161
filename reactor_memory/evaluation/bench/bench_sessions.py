"""Sessions of any length out of real text, and which of them a run needs. Pure.

A session longer than the text goes over it again and again, each time with other numbers, so that each pass tells other
facts. Sessions of all lengths end with the text as it stands: their newest messages are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from reactor_memory.models import JsonObject, Message, ToolCall

TURN = (
    Message.user("Could you add a second one of those to order 31415, without sugar this time?"),
    Message.assistant("I have added a second one without sugar to order 31415. Would you like anything else?"),
)
"""What every append stores."""

_NUMBER = re.compile(r"\d{3,}")


def session_of(texts: Sequence[Message], size: int, *, seed: int) -> Iterator[Message]:
    """The `size` messages of a session. Raises `ValueError` without any text."""
    if not texts:
        raise ValueError("there is no text to make sessions of")
    first = -size % len(texts)
    for position in range(first, first + size):
        passes_left = (first + size - 1 - position) // len(texts)
        message = texts[position % len(texts)]
        yield _other(message, f"{seed}:{passes_left}") if passes_left else message


def _other(message: Message, salt: str) -> Message:
    """The message with other numbers of three and more digits, equal ones becoming equal ones."""

    def number(match: re.Match[str]) -> str:
        digest = int.from_bytes(blake2b(f"{salt}:{match[0]}".encode(), digest_size=8).digest())
        return "".join("123456789"[digest // 9**place % 9] for place in range(len(match[0])))

    def calls() -> Iterator[ToolCall]:
        for call in message.tool_calls:
            given = call.arguments
            arguments: JsonObject | str = (
                _NUMBER.sub(number, given)
                if isinstance(given, str)
                else msgspec.json.decode(_NUMBER.sub(number, msgspec.json.encode(given).decode()))
            )
            yield msgspec.structs.replace(call, id=f"{call.id}-{salt}", arguments=arguments)

    return msgspec.structs.replace(
        message,
        content=_NUMBER.sub(number, message.content),
        tool_calls=tuple(calls()),
        tool_call_id=message.tool_call_id and f"{message.tool_call_id}-{salt}",
    )


# Which sessions there are

SESSIONS = 32
"""So many at once in `concurrent_32`."""

CROWD_SIZE = 300
"""How long those are at first, in a run with sessions of this length: long enough to have a memory."""

SAMPLE = "sample"
"""A session of one turn: the rows that the reference appends."""


class Wanted(NamedTuple):
    """A session to make. `memory`: with its background work done."""

    session_id: str
    size: int
    memory: bool = False


def loaded(size: int) -> str:
    """The session of this length that is read and never written."""
    return f"read-{size}"


def appended(size: int, calls: int) -> tuple[str, ...]:
    """The sessions of this length that are written in turn, as many as keep each from growing by more than a fifth."""
    return tuple(f"written-{size}-{number}" for number in range(-(-2 * calls * 5 // size)))


def crowd(kind: str) -> tuple[str, ...]:
    """The sessions of `concurrent_32`: read, written, or both at once (live)."""
    return tuple(f"crowd-{kind}-{number}" for number in range(SESSIONS))


def crowd_size(sizes: Sequence[int]) -> int:
    return min(CROWD_SIZE, max(sizes))


def wanted_sessions(works: Sequence[str], sizes: Sequence[int], calls: int) -> Iterator[Wanted]:
    for size in sizes:
        yield Wanted(loaded(size), size, memory="load_hierarchical" in works)
        if "append_turn" in works:
            yield from (Wanted(each, size) for each in appended(size, calls))
    if "concurrent_32" in works:
        yield from (Wanted(each, crowd_size(sizes), memory=True) for kind in ("read", "live") for each in crowd(kind))
        yield from (Wanted(each, crowd_size(sizes)) for each in crowd("written"))
