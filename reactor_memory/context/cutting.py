"""How much of a list of messages fits, from the newest back, in whole turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from reactor_memory.context.clamping import Count
from reactor_memory.context.turns import OrphanReason, find_orphans, last_turn_start, units
from reactor_memory.models import Message


class Cut(NamedTuple):
    """Positions `start`..`end` - 1 of a list are shown, except those in `orphans`. `tokens` is what is shown."""

    start: int
    end: int
    tokens: int = 0
    orphans: dict[int, OrphanReason] = {}


def newest_turns(
    messages: Sequence[Message], start: int, end: int, room: int, cost: Count, *, enough: int = sys.maxsize
) -> Cut:
    """The newest whole turns of `[start, end)` in `room` tokens, no more than make `enough` messages.

    When not even the newest turn fits, its newest pairs and messages. Stops reading where the room ends.
    """
    if room <= 0 or enough <= 0:
        return Cut(end, end)
    begin, tokens, orphans = end, 0, dict[int, OrphanReason]()
    turn, traffic = 0, False
    for index in range(end - 1, start - 1, -1):
        message = messages[index]
        turn += cost(message)
        traffic = traffic or message.role == "tool" or bool(message.tool_calls)
        if message.role == "user" or index == start:
            lost = find_orphans(messages, index, begin) if traffic else {}
            turn -= sum([cost(messages[orphan]) for orphan in lost])
            if tokens + turn > room:
                break
            begin, tokens, turn, traffic = index, tokens + turn, 0, False
            orphans |= lost
            if end - begin - len(orphans) >= enough:
                break
        elif turn > room and not traffic:
            break
    if begin == end:
        return _newest_units(messages, last_turn_start(messages, start, end), end, room, cost)
    return Cut(begin, end, tokens, orphans)


def without_oldest(messages: Sequence[Message], room: int, cost: Count) -> Cut:
    """All messages, less as many of the first as it takes to come down to `room` tokens."""
    start, tokens = 0, sum(map(cost, messages))
    while start < len(messages) and tokens > room:
        tokens -= cost(messages[start])
        start += 1
    return Cut(start, len(messages), tokens)


def _newest_units(messages: Sequence[Message], start: int, end: int, room: int, cost: Count) -> Cut:
    orphans = find_orphans(messages, start, end)
    positions = [index for index in range(start, end) if index not in orphans]
    begin, tokens = end, 0
    for run in reversed(units([messages[index] for index in positions])):
        more = sum(cost(messages[positions[index]]) for index in run)
        if tokens + more > room:
            break
        begin, tokens = positions[run.start], tokens + more
    return Cut(begin, end, tokens, orphans)
