"""Where a window begins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from reactor_memory.models import Message
from reactor_memory.models.turns import first_certain, parted, units

Count = Callable[[Message], int]
"""Tokens of a message, overhead included."""


_SEQ = attrgetter("seq")


class Window(NamedTuple):
    """Where a window may begin, and what it takes from there on."""

    start: int
    tokens: int


def windows(messages: Sequence[Message], *, message_count: int, longest_turn: int, count: Count) -> Iterator[Window]:
    """The windows of whole turns, the smallest first, up to the first with at least `message_count` messages.

    A turn of more than `longest_turn` messages is cut between its units, so that it can be sealed while it goes on. Of
    turns that ran at once all are in a window or none, unless they are so long together. A window has all messages from
    its first one on, in the order of the log.
    """
    order, start, tokens, borders = _in_log_order(messages), len(messages), 0, _Borders(messages)
    for place in range(len(messages) - 1, -1, -1):
        index = order[place]
        tokens += count(messages[index])
        if borders.is_turn(index) or (
            start - place > longest_turn and borders.is_unit(index) and messages[index].role != "tool"
        ):
            start = place
            yield Window(index, tokens)
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


def newest(messages: Sequence[Message], message_count: int) -> Sequence[Message]:
    """Take-last: the newest `message_count` messages, begun at a turn border if one is among them, else between units;
    a unit of more messages is whole, or not there.

    Older messages may be given with them: they tell where a unit begins.
    """
    first = max(0, len(messages) - message_count)
    if first < len(messages) and messages[first].role == "user" and _is_in_log_order(messages):
        return messages[first:]
    order = _in_log_order(messages)
    if not first and (not messages or messages[order[0]].seq == 1):
        return messages
    borders = _Borders(messages)
    turn = next((place for place in range(first, len(messages)) if borders.is_turn(order[place])), None)
    if turn is not None:
        return _from(messages, order, turn)
    places = [place for place, index in enumerate(order) if borders.is_unit(index)]
    inside = [place for place in places if place >= first]
    return _from(messages, order, min(inside) if inside else max(places, default=len(messages)))


def first_seq_of(messages: Sequence[Message], default: int) -> int:
    """Where in the log the first of the messages stands; turns that ran at once stand one after the other here."""
    seqs = list(map(_SEQ, messages))
    return min([seq or 1 for seq in seqs] if None in seqs else seqs, default=default)


def _from(messages: Sequence[Message], order: Sequence[int], place: int) -> Sequence[Message]:
    if isinstance(order, range):
        return messages[place:]
    there = set(order[place:])
    return [message for index, message in enumerate(messages) if index in there]


def _in_log_order(messages: Sequence[Message]) -> Sequence[int]:
    """The positions of the messages as the log has them."""
    if _is_in_log_order(messages):
        return range(len(messages))
    return sorted(range(len(messages)), key=lambda index: messages[index].seq or 0)


def _is_in_log_order(messages: Sequence[Message]) -> bool:
    seqs = list(map(_SEQ, messages))
    if None in seqs:
        seqs = [seq or 0 for seq in seqs]
    return seqs == sorted(seqs)


class _Borders:
    """Where in the messages, which stand turn by turn, a window may begin that has all later ones of the log."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._is_in_order = _is_in_log_order(messages)
        self._units: set[int] | None = None
        self._in_turns: set[int] = set() if self._is_in_order else parted(map(self._run, _turns(messages)))

    def _run(self, run: range) -> Sequence[Message]:
        return self._messages[run.start : run.stop]

    def is_turn(self, index: int) -> bool:
        message = self._messages[index]
        return message.role == "user" and message.seq not in self._in_turns

    def is_unit(self, index: int) -> bool:
        """Whether units begin here, for certain."""
        if self._units is None:
            first = first_certain(self._messages)
            runs = [range(first + run.start, first + run.stop) for run in units(self._messages[first:])]
            inside: set[int] = set() if self._is_in_order else parted(map(self._run, runs))
            self._units = {run.start for run in runs if self._messages[run.start].seq not in inside}
        return index in self._units


def _turns(messages: Sequence[Message]) -> list[range]:
    starts = [index for index, message in enumerate(messages) if message.role == "user" or not index]
    return [range(start, end) for start, end in pairwise([*starts, len(messages)])]
