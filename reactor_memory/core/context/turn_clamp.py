"""Making the current turn smaller when it alone is larger than the budget.

Only what the model sees shrinks; the log keeps the originals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import msgspec

from reactor_memory.core.context.current_turn import Count, CountText, CurrentTurn, FittedTurn
from reactor_memory.core.context.excerpts import longest_cut
from reactor_memory.models import Message, reasoned_runs
from reactor_memory.models.turns import is_traffic, units
from reactor_memory.text.borders import border_after, cut

_COMFORTABLE = 64
"""Tokens below which a message says too little: rather than cut deeper, older pairs leave."""

_LONGEST_TOKEN = 8
"""Characters a token, above what prose and code reach: keeps the search in a text of a megabyte short."""


class _Clamped(NamedTuple):
    tokens: int
    message: Message


class TurnClamp:
    """One current turn that has to shrink.

    Steps, the first that suffices: the longest messages are cut to one level, the user's only if the others do not
    suffice; the oldest pairs leave whole, one by one, then a closing answer; what must stay is cut to the bare mark.
    """

    def __init__(self, turn: CurrentTurn, cost: Count, count_text: CountText, *, overhead: int) -> None:
        self._turn = turn
        self._messages = turn.messages
        self._costs = turn.costs
        self._cost = cost
        self._count_text = count_text
        self._overhead = overhead

    def minimum(self) -> int:
        """The fewest tokens that the turn can be brought down to."""
        return _total(self._least, {index for run in self._removable() for index in run})

    def fit(self, room: int) -> FittedTurn:
        """The turn in at most `room` tokens, which must be at least `minimum()`."""
        if self._turn.tokens <= room:
            return self._turn.whole()
        least = self._least
        floors = [
            max(low, min(cost, _COMFORTABLE + self._overhead)) for low, cost in zip(least, self._costs, strict=True)
        ]
        users_whole = [
            cost if message.role == "user" else floor
            for message, cost, floor in zip(self._messages, self._costs, floors, strict=True)
        ]
        gone: set[int] = set()
        for run in (range(0), *self._removable()):
            gone.update(run)
            for candidate in (users_whole, floors):
                if _total(candidate, gone) <= room:
                    return self._cut(candidate, gone, room)
        return self._cut(least, gone, room)

    @cached_property
    def _least(self) -> list[int]:
        """What each message costs at least."""
        return [min(cost, self._cost(self._cut_text(index, 0))) for index, cost in enumerate(self._costs)]

    @cached_property
    def _reasoned(self) -> set[int]:
        """What stands beside its reasoning in a message of its own: a provider takes it back as it was."""
        runs = reasoned_runs(self._messages, range(len(self._messages)), len(self._messages))
        return {index for run in runs if len(run) > 1 for index in run}

    @cached_property
    def _text_tokens(self) -> list[int]:
        return [self._count_text(message.content) for message in self._messages]

    def _removable(self) -> list[range]:
        """What may leave, in this order: all but the user's messages and, if it is tool traffic, the newest run."""
        runs = units(self._messages)
        if runs and any(is_traffic(self._messages[index]) for index in runs[-1]):
            runs.pop()
        return [run for run in runs if all(self._messages[index].role != "user" for index in run)]

    def _cut(self, floors: Sequence[int], gone: set[int], room: int) -> FittedTurn:
        staying = [index for index in range(len(self._messages)) if index not in gone]
        level = _level([(self._costs[index], floors[index]) for index in staying], room)
        kept: dict[int, Message] = {}
        costs: dict[int, int] = {}
        clamped: set[int] = set()
        for index in staying:
            target = max(floors[index], level)
            kept[index], costs[index] = self._messages[index], self._costs[index]
            if costs[index] > target:
                costs[index], kept[index] = self._clamp(index, target)
                clamped.add(index)
        return FittedTurn(kept, costs, frozenset(clamped))

    def _clamp(self, index: int, target: int) -> _Clamped:
        """The longest cut of a message that costs at most `target`."""
        content, whole = self._messages[index].content, self._costs[index]
        length = min(len(content), target * _LONGEST_TOKEN)
        least = self._tried(index, 0)
        return longest_cut(least, length, whole * length // max(1, len(content)), target, partial(self._tried, index))

    def _tried(self, index: int, characters: int) -> _Clamped:
        message = self._cut_text(index, characters)
        return _Clamped(self._cost(message), message)

    def _cut_text(self, index: int, characters: int) -> Message:
        """A message with `characters` of its text, two thirds of them from its beginning, and the mark."""
        message = self._messages[index]
        text = message.content
        if not text or index in self._reasoned:
            return message
        tail = characters // 3
        head, end = cut(text, characters - tail), text[border_after(text, len(text) - tail) :]
        gone = self._text_tokens[index] - self._count_text(head) - self._count_text(end)
        content = f"{head} {cut_mark(max(gone, 1))} {end}".strip()
        return msgspec.structs.replace(message, content=content, token_count=None, tokenizer=None)


def cut_mark(tokens: int) -> str:
    """The visible mark in place of text that was cut."""
    return f"[… {tokens:,} tokens cut …]"


def _total(costs: Sequence[int], gone: set[int]) -> int:
    return sum(cost for index, cost in enumerate(costs) if index not in gone)


def _level(pieces: Sequence[tuple[int, int]], room: int) -> int:
    """The highest level so that (cost, floor) pieces, each cut to it but not below its floor, fit in `room`."""
    low, high = 0, max(room, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(floor, min(cost, middle)) for cost, floor in pieces) <= room:
            low = middle
        else:
            high = middle - 1
    return low
