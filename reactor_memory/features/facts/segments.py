"""Where the log is cut into segments, and which of them a branch shows.

A border depends only on the messages up to it and the one after it. So every process cuts a log at the same places,
whenever it looks, and nothing that is appended later moves a border.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from reactor_memory.core.log.branches import earlier_end
from reactor_memory.models import LARGEST, LONGEST_TURN_SEGMENTS, BranchRange, Message, is_models, reasoned_runs
from reactor_memory.models.ledger import Segment
from reactor_memory.models.turns import begun_by

NO_STEPS: Mapping[int, int] = {}


def next_segment(
    messages: Sequence[Message], segment_message_count: int, steps: Mapping[int, int] = NO_STEPS
) -> int | None:
    """How many of `messages`, oldest unsealed first, form the next segment; None if it is not complete yet.

    It ends at the first border of all turns at or after `segment_message_count` messages. Positions count, so a
    withdrawn message, absent from `messages`, takes its place. `steps`: of messages, where their turn begins. A turn
    of which nothing came for `segment_message_count` messages is waited for no longer: it may be dead. Appending
    messages never changes an answer other than None.
    """
    most = LONGEST_TURN_SEGMENTS * segment_message_count
    for end, closes_turn in _borders(messages, steps, segment_message_count):
        size = _size(messages, end)
        if size > most:
            break
        if closes_turn and size >= segment_message_count:
            return end
    return _pair_border(messages, segment_message_count, steps) if _size(messages, len(messages)) > most else None


def _pair_border(messages: Sequence[Message], at_least: int, steps: Mapping[int, int]) -> int | None:
    """The first border between exchanges; where turns overlap without end, the first one in the order of the log."""
    most = 2 * LONGEST_TURN_SEGMENTS * at_least
    ends = (end for end, _ in _borders(messages, steps, at_least) if _size(messages, end) >= at_least)
    end = next(ends, None)
    if steps and _size(messages, len(messages) if end is None else end) > most:
        return _pair_border(messages, at_least, NO_STEPS)
    return end


def archived_segment(
    messages: Sequence[Message], until_seq: int, steps: Mapping[int, int] = NO_STEPS, patience: int = LARGEST
) -> int | None:
    """How many of `messages` form the segment that ends what was archived up to `until_seq`; None if there is none.

    What is archived has left the window, however short it is: its facts have to speak for it. It ends at the last
    border where no pair is open.
    """
    ends = (end for end, _ in _borders(messages, steps, patience) if (messages[end - 1].seq or 0) <= until_seq)
    return max(ends, default=None)


class _Turn(NamedTuple):
    """A turn behind its message at `last`: the calls that are open, and whether reasoning, or the turn, goes on."""

    last: int
    open_calls: frozenset[str]
    is_reasoning: bool
    goes_on: bool


def _borders(messages: Sequence[Message], steps: Mapping[int, int], patience: int) -> Iterator[tuple[int, bool]]:
    """Every count of messages after which no unit is open, and whether all turns end there too.

    A model that speaks again has given up the calls that are still unanswered, unless it speaks on: no provider accepts
    a result later. What came with reasoning ends where something else follows it. The next user message ends a turn
    that is not stored step by step.
    """
    turns = begun_by(messages, steps)
    within, behind = _going_on(messages, turns)
    running: dict[int, _Turn] = {}
    speaks_on: dict[int, bool] = {}
    for index, message in enumerate(messages):
        begun = turns[index]
        before = running[begun].open_calls if begun in running else frozenset[str]()
        if is_models(message):
            made = frozenset(call.id for call in message.tool_calls)
            before = before | made if speaks_on.get(begun) else made
        elif message.role == "tool":
            before -= {message.tool_call_id or ""}
        speaks_on[begun] = index in within
        is_reasoning = index in within or index in behind
        answers = is_models(message) and not message.tool_calls
        running[begun] = _Turn(index, before, is_reasoning, goes_on=not answers)
        user_next = index + 1 < len(messages) and messages[index + 1].role == "user"
        if user_next:
            ended = [at for at, each in running.items() if (messages[each.last].seq or 0) not in steps]
            for at in {*ended, turns[index + 1]}:
                running.pop(at, None)
        held = [each for each in running.values() if index - each.last < patience]
        if not any(each.open_calls or each.is_reasoning for each in held):
            yield index + 1, not any(each.goes_on for each in held) and (user_next or answers)


def _going_on(messages: Sequence[Message], turns: Sequence[int]) -> tuple[set[int], set[int]]:
    """The positions after which a run with reasoning goes on; and those after which it may, for the message that tells
    is not the next one.
    """
    own: dict[int, list[int]] = {}
    for index, begun in enumerate(turns):
        own.setdefault(begun, []).append(index)
    within: set[int] = set()
    behind: set[int] = set()
    for places in own.values():
        said = [messages[place] for place in places]
        ends = {place for place, after in pairwise(places) if after > place + 1} | {places[-1]}
        for run in reasoned_runs(said, range(len(said)), len(said)):
            within.update(places[at] for at in run[:-1])
            behind |= {places[run[-1]]} & ends
    return within, behind


def _size(messages: Sequence[Message], end: int) -> int:
    """How many positions of the log the first `end` messages take."""
    if not end:
        return 0
    first, last = messages[0].seq, messages[end - 1].seq
    return end if first is None or last is None else last - first + 1


def segments_of_branch(branch: Sequence[BranchRange], segments: Mapping[str, Sequence[Segment]]) -> tuple[Segment, ...]:
    """The segments that the branch shows, oldest first: they cover 1..n without gap or overlap.

    `segments` are those of each conversation of the branch, in any order. Of an ancestor only those count that end
    inside its range and before the first segment of a younger conversation: a fork's own first segment may begin
    before the fork, and what the ancestor seals there later is not the fork's.
    """
    chosen: list[Segment] = []
    next_start: int | None = None
    for part in reversed(branch):
        last_end = earlier_end(part.end_seq, None if next_start is None else next_start - 1)
        own = [s for s in segments.get(part.conversation_id, ()) if last_end is None or s.end_seq <= last_end]
        chosen += own
        next_start = min((s.start_seq for s in own), default=next_start)
    return _gap_free_prefix(sorted(chosen, key=lambda segment: segment.start_seq))


def _gap_free_prefix(ordered: Sequence[Segment]) -> tuple[Segment, ...]:
    prefix: list[Segment] = []
    covered = 0
    for segment in ordered:
        if segment.start_seq != covered + 1:
            break
        prefix.append(segment)
        covered = segment.end_seq
    return tuple(prefix)
