"""Where the log is cut into segments, and which of them a branch shows.

A border depends only on the messages up to it and the one after it. So every process cuts a log at the same places,
whenever it looks, and nothing that is appended later moves a border.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reactor_memory.core.log.branches import earlier_end
from reactor_memory.models import LONGEST_TURN_SEGMENTS, BranchRange, Message, is_models, reasoned_runs
from reactor_memory.models.ledger import Segment


def next_segment(messages: Sequence[Message], segment_message_count: int) -> int | None:
    """How many of `messages`, oldest unsealed first, form the next segment; None if it is not complete yet.

    It ends at the first turn border at or after `segment_message_count` messages. Positions count, so a withdrawn
    message, absent from `messages`, takes its place. Appending messages never changes an answer other than None.
    """
    for end, closes_turn in _borders(messages):
        size = _size(messages, end)
        if size < segment_message_count:
            continue
        if size > LONGEST_TURN_SEGMENTS * segment_message_count:
            return _first_pair_border(messages, segment_message_count)
        if closes_turn:
            return end
    if _size(messages, len(messages)) > LONGEST_TURN_SEGMENTS * segment_message_count:
        return _first_pair_border(messages, segment_message_count)
    return None


def archived_segment(messages: Sequence[Message], until_seq: int) -> int | None:
    """How many of `messages` form the segment that ends what was archived up to `until_seq`; None if there is none.

    What is archived has left the window, however short it is: its facts have to speak for it. It ends at the last
    border where no pair is open.
    """
    return max((end for end, _ in _borders(messages) if (messages[end - 1].seq or 0) <= until_seq), default=None)


def _first_pair_border(messages: Sequence[Message], at_least: int) -> int | None:
    return next((end for end, _ in _borders(messages) if _size(messages, end) >= at_least), None)


def _borders(messages: Sequence[Message]) -> Iterator[tuple[int, bool]]:
    """Every count of messages after which no unit is open, and whether a turn ends there too.

    A model that speaks again has given up the calls that are still unanswered, unless it speaks on: no provider accepts
    a result later. What came with reasoning ends where something else follows it.
    """
    going_on = set(_going_on(messages))
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if is_models(message):
            made = {call.id for call in message.tool_calls}
            open_calls = open_calls | made if index - 1 in going_on else made
        elif message.role == "tool":
            open_calls.discard(message.tool_call_id or "")
        user_next = index + 1 < len(messages) and messages[index + 1].role == "user"
        if user_next or not (open_calls or index in going_on):
            yield index + 1, user_next or (is_models(message) and not message.tool_calls)


def _going_on(messages: Sequence[Message]) -> Iterator[int]:
    """The positions after which a run with reasoning goes on, or may still go on."""
    for run in reasoned_runs(messages, range(len(messages)), len(messages)):
        yield from run if run.stop == len(messages) else run[:-1]


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
