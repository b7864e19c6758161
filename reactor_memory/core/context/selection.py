"""Where a window begins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.core.context.turns import first_certain, units
from reactor_memory.models import Message

Count = Callable[[Message], int]
"""Tokens of a message, overhead included."""


def window_start(
    messages: Sequence[Message], *, message_count: int, max_tokens: int, longest_turn: int, count: Count
) -> int:
    """Index where the smallest window begins: at least `message_count` messages, cut at a turn border.

    Whole turns are added, newest first, while they fit into `max_tokens`; the newest turn is always there. A turn of
    more than `longest_turn` messages is cut between its units, so that it can be sealed while it goes on.
    """
    start, tokens, borders = len(messages), 0, _borders(messages)
    for index in range(len(messages) - 1, -1, -1):
        tokens += count(messages[index])
        if not _may_begin(messages[index], start - index > longest_turn and index in borders):
            continue
        if tokens > max_tokens and start < len(messages):
            break
        start = index
        if len(messages) - start >= message_count:
            break
    return start if start < len(messages) else first_certain(messages)


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
