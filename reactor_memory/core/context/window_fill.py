"""A window that does not hold all of its messages: what fits of them, the long ones in part. Pure.

From the newest back, a message takes at most a share of the room, so that one long message leaves room to the others.
What is left goes to those that were cut. In a larger room no message is shown less, and none that was whole is cut:
the room that is left to a message grows with the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.core.context.current_turn import Count
from reactor_memory.core.context.excerpts import can_be_cut, excerpt_of, least_excerpt, shown_as
from reactor_memory.core.context.newest_turns import Cut, LeftOut
from reactor_memory.models import Message, reasoned_runs
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.models.turns import find_orphans, last_turn_start, units

NEWEST_SHARE = 0.5
OLDER_SHARE = 0.25
"""A message takes at most this share of the room: one of the newest exchange, any other. One is the inverse of a
whole number, and the other a multiple of it: that is what makes a larger room show no less.
"""

LEAST_CAP = 80
"""In the smallest room, too, a message may take so many tokens."""

LEAST_TEXT = 8
"""Tokens that an excerpt has beside its mark: its first words say what to look up by its place. What is left of a room
that holds no more would stay empty.
"""

MOST_OF_CUT = 0.9
"""While older messages are not shown, what is left makes no excerpt longer than this share of its message."""


class _Unit(NamedTuple):
    """Positions of messages that stand together or not at all, and the most tokens for each of them."""

    positions: Sequence[int]
    cap: int


class _Fill:
    def __init__(self, messages: Sequence[Message], room: int, count: Count, overhead: int, tokenizer: str) -> None:
        self._messages = messages
        self._room = room
        self._count = count
        self._overhead = overhead
        self._tokenizer = tokenizer
        self.tokens: dict[int, int] = {}
        self.orphans: dict[int, LeftOut] = {}
        self._costs: dict[int, int] = {}
        self._floors: dict[int, int] = {}
        self._aside: list[Sequence[int]] = []
        self._reasoned: set[int] = set()

    def cost(self, index: int) -> int:
        """Tokens of a whole message with overhead, counted once."""
        if index not in self._costs:
            self._costs[index] = self._count(self._messages[index]) + self._overhead
        return self._costs[index]

    def share_out(self, start: int, end: int, never: frozenset[int], spare: int) -> None:
        """Decide how many tokens each message gets. Those of `never`, and what stands with them, get none."""
        # A provider that knows what it gave with reasoning takes it back only as it was.
        self._reasoned = {index for run in reasoned_runs(self._messages, range(start, end), end) for index in run}
        left, is_all = self._room, True
        for unit in self._units_back(start, end):
            if never.intersection(unit.positions) or not self._may_stand(unit):
                self._aside.append(unit.positions)
                continue
            wanted = sum(min(self.cost(index), unit.cap) for index in unit.positions)
            if wanted > left and sum(map(self._floor, unit.positions)) > left:
                if left >= max(LEAST_CAP, int(OLDER_SHARE * self._room)):
                    self._aside.append(unit.positions)
                    continue
                is_all = False
                begun = self._begun(unit, left + spare)
                self.tokens |= begun
                left -= sum(begun.values())
                break
            given = self._leveled(unit, left)
            self.tokens |= given
            left -= sum(given.values())
            if left <= 0:
                is_all = False
                break
        if is_all:
            left = self._complete(left, never)
        self._lengthen(left + spare)

    def _units_back(self, start: int, end: int) -> Iterator[_Unit]:
        cap = max(LEAST_CAP, int(NEWEST_SHARE * self._room))
        while end > start:
            begin = last_turn_start(self._messages, start, end)
            lost = find_orphans(self._messages, begin, end)
            self.orphans |= lost
            positions = [index for index in range(begin, end) if index not in lost]
            for run in reversed(units([self._messages[index] for index in positions])):
                yield _Unit([positions[index] for index in run], cap)
                if len(run) > 1:
                    cap = max(LEAST_CAP, int(OLDER_SHARE * self._room))
            end, cap = begin, max(LEAST_CAP, int(OLDER_SHARE * self._room))

    def _may_stand(self, unit: _Unit) -> bool:
        return all(self.cost(index) <= unit.cap or self._can_be_cut(index) for index in unit.positions)

    def _can_be_cut(self, index: int) -> bool:
        return index not in self._reasoned and can_be_cut(self._messages[index])

    def _floor(self, index: int) -> int:
        """The least tokens that show something of a message."""
        cost = self.cost(index)
        if not self._can_be_cut(index):
            return cost
        if index not in self._floors:
            least = least_excerpt(self._messages[index], self._count)
            self._floors[index] = min(cost, least + LEAST_TEXT + self._overhead)
        return self._floors[index]

    def _leveled(self, unit: _Unit, left: int) -> dict[int, int]:
        """Tokens for each message of the unit: its cap, or where these are too many, what one level for all allows."""
        most = {index: min(self.cost(index), unit.cap) for index in unit.positions}
        if sum(most.values()) <= left:
            return most
        low, high = 0, unit.cap
        while low < high:
            middle = (low + high + 1) // 2
            if sum(max(self._floor(index), min(each, middle)) for index, each in most.items()) <= left:
                low = middle
            else:
                high = middle - 1
        return {index: max(self._floor(index), min(each, low)) for index, each in most.items()}

    def _begun(self, unit: _Unit, left: int) -> dict[int, int]:
        """What is left shows of the first unit that it is too little for, if that is one message: never all of it."""
        if len(unit.positions) > 1 or not self._can_be_cut(unit.positions[0]):
            return {}
        (index,) = unit.positions
        most = min(left, int(MOST_OF_CUT * self.cost(index)))
        return {index: most} if most >= self._floor(index) else {}

    def _complete(self, left: int, never: frozenset[int]) -> int:
        """All messages have been asked: the newest that were cut, and then those left out, become whole. Returns what
        is left.
        """
        for index in sorted(self.tokens, reverse=True):
            more = min(self.cost(index) - self.tokens[index], left)
            self.tokens[index] += more
            left -= more
        for positions in self._aside:
            cost = sum(map(self.cost, positions))
            if cost <= left and not never.intersection(positions):
                self.tokens |= {index: self.cost(index) for index in positions}
                left -= cost
        return left

    def _lengthen(self, left: int) -> None:
        """Excerpts become longer, the newest first. None becomes whole: in a larger room, an older message might have
        these tokens.
        """
        for index in sorted(self.tokens, reverse=True):
            given = self.tokens[index]
            more = min(max(0, int(MOST_OF_CUT * self.cost(index)) - given), left)
            if given < self.cost(index):
                self.tokens[index] += more
                left -= more

    def excerpts(self) -> dict[int, Excerpt | None]:
        """Of the messages that get less than they cost; None where so few tokens hold nothing of one."""
        return {
            index: excerpt_of(self._messages[index], given - self._overhead, self._count, self._tokenizer)
            for index, given in self.tokens.items()
            if given < self.cost(index)
        }

    def cut(self, end: int, excerpts: Mapping[int, Excerpt]) -> Cut:
        if not self.tokens:
            return Cut(end, end)
        start = min(self.tokens)
        gone: dict[int, LeftOut] = {
            index: self.orphans.get(index, "too_long") for index in range(start, end) if index not in self.tokens
        }
        tokens = sum(
            excerpts[index].tokens + self._overhead if index in excerpts else self.cost(index) for index in self.tokens
        )
        return Cut(start, end, tokens, gone, dict(excerpts))


def filled(
    messages: Sequence[Message],
    start: int,
    end: int,
    room: int,
    count: Count,
    overhead: int = 0,
    *,
    tokenizer: str = "",
    spare: int = 0,
) -> Cut:
    """What of `[start, end)` is shown in `room` tokens: messages whole, in part, or left out for their length. `spare`
    tokens more make excerpts longer, and nothing else.
    """
    never: frozenset[int] = frozenset()
    while True:
        fill = _Fill(messages, room, count, overhead, tokenizer)
        fill.share_out(start, end, never, spare)
        found = fill.excerpts()
        empty = frozenset(index for index, excerpt in found.items() if excerpt is None)
        if not empty:
            return fill.cut(end, {index: excerpt for index, excerpt in found.items() if excerpt})
        never |= empty


def held(
    messages: Sequence[Message],
    end: int,
    room: int,
    excerpts: Mapping[int, Excerpt],
    count: Count,
    overhead: int = 0,
    *,
    tokenizer: str = "",
) -> Cut:
    """The messages before `end`, those with an excerpt of their `seq` as it shows them, less the oldest turns that do
    not fit into `room`. `count` is not asked for messages that `tokenizer` counted before.
    """
    orphans: dict[int, LeftOut] = {**find_orphans(messages, 0, end)}
    forms = [excerpts.get(message.seq or 0) for message in messages[:end]]
    too_long = [index for index, form in enumerate(forms) if form and not form.tokens]
    if too_long:
        unfit: dict[int, LeftOut] = dict.fromkeys(too_long, "too_long")
        orphans = unfit | orphans
        kept = [index for index in range(end) if index not in orphans]
        # a call may have got its result, or both may have been read, after the others were left out
        parted = find_orphans([messages[index] for index in kept])
        orphans |= {kept[place]: "too_long" for place in parted}
    shown = {index: form for index, form in enumerate(forms) if form and form.tokens and index not in orphans}
    costs = [
        (stored if (stored := message.token_count) is not None and message.tokenizer == tokenizer else count(message))
        + overhead
        for message in messages[:end]
    ]
    for index, form in shown.items():
        costs[index] = form.tokens + overhead
    for index in orphans:
        costs[index] = 0
    start, left = 0, sum(costs)
    while start < end and left > room:
        after = next((index for index in range(start + 1, end) if messages[index].role == "user"), end)
        left -= sum(costs[start:after])
        start = after
    gone: dict[int, LeftOut] = {index: reason for index, reason in orphans.items() if index >= start}
    return Cut(start, end, left, gone, {index: each for index, each in shown.items() if index >= start})


def shown_messages(messages: Sequence[Message], cut: Cut) -> list[Message]:
    """What the cut shows."""
    return [
        shown_as(messages[index], cut.excerpts[index]) if index in cut.excerpts else messages[index]
        for index in range(cut.start, cut.end)
        if index not in cut.orphans
    ]


def excerpts_of(messages: Sequence[Message], cut: Cut) -> tuple[Excerpt, ...]:
    """How the messages of the cut that are not whole are shown, for the next context to show them so as well."""
    skipped = [index for index, reason in cut.orphans.items() if reason == "too_long"]
    return tuple(
        cut.excerpts.get(index, Excerpt(messages[index].seq or 0)) for index in sorted([*cut.excerpts, *skipped])
    )
