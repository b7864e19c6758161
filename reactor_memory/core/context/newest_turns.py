"""How much of a list of messages fits, from the newest back, in whole turns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from reactor_memory.core.context.current_turn import Count
from reactor_memory.models import Message, is_posted_summary
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.models.turns import OrphanReason, find_orphans, last_turn_start, orphans_among, units

LeftOut: TypeAlias = OrphanReason | Literal["too_long"]
"""Why a message between those that are shown is not."""


class Cut(NamedTuple):
    """Positions `start`..`end` - 1 of a list are shown, except those in `orphans`, and in part those in `excerpts`.
    `tokens` is what is shown.
    """

    start: int
    end: int
    tokens: int = 0
    orphans: Mapping[int, LeftOut] = {}
    excerpts: Mapping[int, Excerpt] = {}


_NONE: dict[int, OrphanReason] = {}

FULL = 16
"""A room with so few tokens left over is full: they would hold no more than an answer without its question."""

KEPT_TURNS = 2
KEPT_SHARE = 0.5


def kept_start(messages: Sequence[Message], end: int, budget: int, cost: Count) -> int:
    """Where the part of a window begins that makes room for nothing: its newest `KEPT_TURNS` turns, all but the newest
    one only if together they fit into `KEPT_SHARE` of the budget.
    """
    start, left = end, int(KEPT_SHARE * budget)
    for number in range(KEPT_TURNS):
        begin = last_turn_start(messages, 0, start)
        left -= sum(map(cost, messages[begin:start]))
        if number and left < 0:
            break
        start = begin
    return start


def newest_turns(
    messages: Sequence[Message],
    start: int,
    end: int,
    room: int,
    count: Count,
    overhead: int = 0,
    *,
    tokenizer: str = "",
    enough: int = sys.maxsize,
) -> Cut:
    """The newest whole turns of `[start, end)` in `room` tokens, no more than make `enough` messages.

    When not even the newest turn fits, its newest pairs and messages. Stops reading where the room ends. `count` is not
    asked for messages that `tokenizer` counted before.
    """
    if room <= 0 or enough <= 0:
        return Cut(end, end)
    begin, tokens, orphans = end, 0, dict[int, OrphanReason]()
    turn, traffic, turn_end = 0, list[int](), end
    # This loop is most of what a load computes, so a stored message costs no call, and most turns no more than theirs.
    for index in range(end - 1, start - 1, -1):
        message = messages[index]
        role = message.role
        stored = message.token_count
        turn += (stored if stored is not None and message.tokenizer == tokenizer else count(message)) + overhead
        if role != "user" and (role == "tool" or message.tool_calls or message.parts or role == "summary"):
            traffic.append(index)
        if role == "user" or index == start:
            lost = orphans_among(messages, traffic, turn_end) if traffic else _NONE
            turn -= sum([count(messages[orphan]) + overhead for orphan in lost]) if lost else 0
            if tokens + turn > room:
                break
            begin, tokens, turn, turn_end, traffic = index, tokens + turn, 0, index, []
            orphans.update(lost)
            if end - begin - len(orphans) >= enough:
                break
        elif turn > room and not traffic:
            break
    if begin == end:
        return _newest_units(messages, last_turn_start(messages, start, end), end, room, count, overhead)
    return Cut(begin, end, tokens, orphans)


def total_cost(messages: Iterable[Message], cost: Count, overhead: int, tokenizer: str) -> int:
    """Tokens with overhead, without posted summaries. `cost` is not asked for what `tokenizer` counted before."""
    return sum(
        [
            stored + overhead
            if (stored := message.token_count) is not None and message.tokenizer == tokenizer
            else cost(message)
            for message in messages
            if message.role != "summary" or not is_posted_summary(message)
        ]
    )


def without_oldest(messages: Sequence[Message], room: int, cost: Count) -> Cut:
    """All messages, less as many of the first as it takes to come down to `room` tokens."""
    start, tokens = 0, sum(map(cost, messages))
    while start < len(messages) and tokens > room:
        tokens -= cost(messages[start])
        start += 1
    return Cut(start, len(messages), tokens)


def _newest_units(messages: Sequence[Message], start: int, end: int, room: int, count: Count, overhead: int) -> Cut:
    orphans = find_orphans(messages, start, end)
    positions = [index for index in range(start, end) if index not in orphans]
    begin, tokens = end, 0
    for run in reversed(units([messages[index] for index in positions])):
        more = sum(count(messages[positions[index]]) + overhead for index in run)
        if tokens + more > room:
            break
        begin, tokens = positions[run.start], tokens + more
    return Cut(begin, end, tokens, orphans)
