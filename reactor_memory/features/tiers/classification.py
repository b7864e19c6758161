"""Which messages are recent, which to condense, which to compress: by their number, counted from the newest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from reactor_memory.models import Message, Value, is_bare_reasoning, is_models
from reactor_memory.models.turns import units

Level: TypeAlias = Literal["condensed", "compressed"]

CONDENSED: Level = "condensed"
COMPRESSED: Level = "compressed"
EVERYTHING = 2**62


class TierSizes(Value, frozen=True, kw_only=True):
    """How many messages stay verbatim, and how many before them are condensed. Each tier may hold more, as turns and
    pairs stay whole; a turn of more than `longest_turn` messages is cut between its pairs.
    """

    recent_count: int = 20
    condensed_count: int = 50
    longest_turn: int = 40

    def at(self, level: Level | None) -> TierSizes:
        """The sizes for a step that brings everything beyond the recent messages to one level."""
        if level is None:
            return self
        return replace(self, condensed_count=0 if level == COMPRESSED else EVERYTHING)


class Tiers(Value, frozen=True, kw_only=True):
    """Messages, oldest first, in the tier that each belongs to."""

    to_compress: tuple[Message, ...] = ()
    to_condense: tuple[Message, ...] = ()
    recent: tuple[Message, ...] = ()


def classify(messages: Sequence[Message], sizes: TierSizes) -> Tiers:
    """The tiers of `messages`, the newest of a session. A turn that still goes on is recent whatever its length."""
    borders = tuple(cuts(messages, sizes.longest_turn))
    recent = _before(borders, len(messages) - sizes.recent_count)
    condensed = _before(borders, recent - sizes.condensed_count)
    return Tiers(
        to_compress=tuple(messages[:condensed]),
        to_condense=tuple(messages[condensed:recent]),
        recent=tuple(messages[recent:]),
    )


def split(messages: Sequence[Message], newest: int, longest_turn: int) -> tuple[Sequence[Message], Sequence[Message]]:
    """`messages` with which no turn is open, cut so that the second part holds `newest` of them or a few more."""
    borders = (*cuts(messages, longest_turn), len(messages))
    cut = _before(borders, len(messages) - newest)
    return messages[:cut], messages[cut:]


def cuts(messages: Sequence[Message], longest_turn: int) -> Iterator[int]:
    """Where `messages` may be cut, in ascending order: 0, before each turn, between the pairs of an over-long one,
    and behind the last message if its turn is complete.
    """
    starts = [index for index, message in enumerate(messages) if message.role == "user" and index]
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        yield start
        if end - start > longest_turn:
            last = end if end < len(messages) or is_complete(messages) else _first_open_call(messages, start)
            runs = units(messages[start:end])
            yield from (start + run.start for run in runs if run.start and start + run.start <= last)
    if messages and is_complete(messages):
        yield len(messages)


def is_complete(messages: Sequence[Message]) -> bool:
    """Whether the last turn ended: with an answer that calls no tool."""
    if not messages:
        return False
    last = messages[-1]
    return is_models(last) and not (last.tool_calls or is_bare_reasoning(last))


def _first_open_call(messages: Sequence[Message], start: int) -> int:
    """The first message of the turn with a call whose result may still come."""
    answered = {message.tool_call_id for message in messages[start:] if message.role == "tool"}
    for index in range(start, len(messages)):
        if any(call.id not in answered for call in messages[index].tool_calls):
            return index
    return len(messages)


def _before(borders: Sequence[int], position: int) -> int:
    """The last border at or before `position`; 0 where there is none."""
    return max((border for border in borders if border <= position), default=0)
