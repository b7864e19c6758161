"""Where a window begins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from reactor_memory.models import Message
from reactor_memory.models.turns import first_certain, units

Count = Callable[[Message], int]
"""Tokens of a message, overhead included."""


class Window(NamedTuple):
    """Where a window may begin, and what it takes from there on."""

    start: int
    tokens: int


def windows(messages: Sequence[Message], *, message_count: int, longest_turn: int, count: Count) -> Iterator[Window]:
    """The windows of whole turns, the smallest first, up to the first with at least `message_count` messages.

    A turn of more than `longest_turn` messages is cut between its units, so that it can be sealed while it goes on.
    """
    start, tokens, borders = len(messages), 0, _borders(messages)
    for index in range(len(messages) - 1, -1, -1):
        tokens += count(messages[index])
        if _may_begin(messages[index], start - index > longest_turn and index in borders):
            start = index
            yield Window(start, tokens)
            if len(messages) - start >= message_count:
                return


def window_start(
    messages: Sequence[Message], *, message_count: int, max_tokens: int, longest_turn: int, count: Count
) -> int:
    """Index where the smallest window begins: at least `message_count` messages, cut at a turn border.

    Whole turns are added, newest first, while they fit into `max_tokens`; the newest turn is always there.
    """
    start: int | None = None
    for window in windows(messages, message_count=message_count, longest_turn=longest_turn, count=count):
        if start is not None and window.tokens > max_tokens:
            break
        start = window.start
    return first_certain(messages) if start is None else start


def _may_begin(message: Message, is_border_of_a_long_turn: bool) -> bool:
    return message.role == "user" or (is_border_of_a_long_turn and message.role != "tool")


def newest(messages: Sequence[Message], message_count: int) -> Sequence[Message]:
    """Take-last: the newest `message_count` messages, begun at a turn border if one is among them, else between units;
    a unit of more messages is whole, or not there.

    Older messages may be given with them: they tell where a unit begins.
    """
    first = max(0, len(messages) - message_count)
    if not first and (not messages or messages[0].seq == 1):
        return messages
    turn = next((index for index in range(first, len(messages)) if messages[index].role == "user"), None)
    if turn is not None:
        return messages[turn:]
    borders = _borders(messages)
    inside = [border for border in borders if border >= first]
    return messages[min(inside) if inside else max(borders, default=len(messages)) :]


def _borders(messages: Sequence[Message]) -> set[int]:
    """Where a unit begins for certain."""
    first = first_certain(messages)
    return {first + run.start for run in units(messages[first:])}
