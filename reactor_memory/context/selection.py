"""Where a window begins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.models import Message

Count = Callable[[Message], int]
"""Tokens of a message, overhead included."""


def window_start(
    messages: Sequence[Message], *, message_count: int, max_tokens: int, longest_turn: int, count: Count
) -> int:
    """Index where the smallest window begins: at least `message_count` messages, cut at a turn border.

    Whole turns are added, newest first, while they fit into `max_tokens`; the newest turn is always there. A turn of
    more than `longest_turn` messages is cut at a pair border, so that it can be sealed while it goes on.
    """
    start, tokens = len(messages), 0
    for index in range(len(messages) - 1, -1, -1):
        tokens += count(messages[index])
        if not _may_begin(messages, index, start, longest_turn):
            continue
        if tokens > max_tokens and start < len(messages):
            break
        start = index
        if len(messages) - start >= message_count:
            break
    return start if start < len(messages) else 0


def _may_begin(messages: Sequence[Message], index: int, start: int, longest_turn: int) -> bool:
    """A window may begin with a user message, or inside an over-long turn with a message that is no tool result."""
    role = messages[index].role
    return role == "user" or (start - index > longest_turn and role != "tool")


def newest(messages: Sequence[Message], message_count: int) -> Sequence[Message]:
    """Take-last: the newest `message_count` messages, begun at a turn border if one is among them."""
    tail = messages[-message_count:]
    if len(tail) == len(messages) and (not tail or tail[0].seq == 1):
        return tail
    for index, message in enumerate(tail):
        if message.role == "user":
            return tail[index:]
    return tail
