"""How a branch is put together: session ids, ranges of messages, and the segments that a branch shows.

Pure functions of values, for stores with and without a database.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reactor_memory.errors import LimitExceededError
from reactor_memory.models import BranchRange, Session
from reactor_memory.models.ledger import PostedSummary, Segment

FORK_SEPARATOR = "~"


def group_of(session_id: str) -> str:
    """The id of the group: of the root itself, or of the root that the fork descends from."""
    return session_id.partition(FORK_SEPARATOR)[0]


def is_fork(session_id: str) -> bool:
    return FORK_SEPARATOR in session_id


def root_branch(session_id: str) -> tuple[BranchRange, ...]:
    """The branch of a session that is no fork: all its messages are its own."""
    return (BranchRange(conversation_id=session_id, start_seq=1),)


def branch_for_fork(session: Session, fork_id: str, at_seq: int) -> tuple[BranchRange, ...]:
    """The branch that shares 1..`at_seq`-1 with `session` and continues with messages of its own."""
    shared = ranges_between(session.branch, 0, at_seq - 1)
    return (*shared, BranchRange(conversation_id=fork_id, start_seq=at_seq))


def check_fork_depth(session: Session, at_seq: int, limit: int, *, field: str = "at_seq") -> None:
    """Raises `LimitExceededError` if a fork of `session` would share messages of more conversations than `limit`."""
    depth = len(ranges_between(session.branch, 0, at_seq - 1))
    if depth > limit:
        raise LimitExceededError(
            field,
            actual=depth,
            limit=limit,
            unit="conversations to share messages of",
            setting="store.max_fork_depth",
            instead="fork at an earlier message",
        )


def ranges_between(branch: Sequence[BranchRange], after: int, until: int | None) -> tuple[BranchRange, ...]:
    """The parts of `branch` with `after` < seq <= `until`, oldest first; empty parts are left out.

    The last part ends with None if neither the branch nor `until` bounds it.
    """
    return tuple(part for _, part in clipped_between(branch, after, until))


def clipped_between(
    branch: Sequence[BranchRange], after: int, until: int | None
) -> Iterator[tuple[BranchRange, BranchRange]]:
    """As `ranges_between`, each part behind the one of `branch` that it was cut out of."""
    first = max(0, bisect_right(branch, after + 1, key=_start) - 1)
    end = None if until is None else bisect_right(branch, until, key=_start)
    for whole in branch[first:end]:
        part = _clip(whole, after, until)
        if part.end_seq is None or part.start_seq <= part.end_seq:
            yield whole, part


def _start(part: BranchRange) -> int:
    return part.start_seq


def _clip(part: BranchRange, after: int, until: int | None) -> BranchRange:
    if part.start_seq > after and (until is None or (part.end_seq is not None and part.end_seq <= until)):
        return part
    ends = [end for end in (part.end_seq, until) if end is not None]
    return BranchRange(
        conversation_id=part.conversation_id,
        start_seq=max(part.start_seq, after + 1),
        end_seq=min(ends) if ends else None,
    )


def ranges_shown(branch: Sequence[BranchRange], stored: Sequence[BranchRange]) -> tuple[tuple[int, int], ...]:
    """Which of the messages `stored`, by where they are stored, belong to the branch. No part of `stored` is open."""
    found: list[tuple[int, int]] = []
    for part in stored:
        for shown in branch:
            start = max(part.start_seq, shown.start_seq)
            end = _earlier(part.end_seq, shown.end_seq)
            if part.conversation_id == shown.conversation_id and end is not None and start <= end:
                found.append((start, end))
    return tuple(sorted(found))


def shows(branch: Sequence[BranchRange], conversation_id: str, seq: int) -> bool:
    """Whether the message `seq` that is stored under `conversation_id` belongs to the branch."""
    return any(
        part.conversation_id == conversation_id
        and part.start_seq <= seq
        and (part.end_seq is None or seq <= part.end_seq)
        for part in branch
    )


def segments_of_branch(branch: Sequence[BranchRange], segments: Mapping[str, Sequence[Segment]]) -> tuple[Segment, ...]:
    """The segments that the branch shows, oldest first: they cover 1..n without gap or overlap.

    `segments` are those of each conversation of the branch, in any order. Of an ancestor only those count that end
    inside its range and before the first segment of a younger conversation: a fork's own first segment may begin
    before the fork, and what the ancestor seals there later is not the fork's.
    """
    chosen: list[Segment] = []
    next_start: int | None = None
    for part in reversed(branch):
        last_end = _earlier(part.end_seq, None if next_start is None else next_start - 1)
        own = [s for s in segments.get(part.conversation_id, ()) if last_end is None or s.end_seq <= last_end]
        chosen += own
        next_start = min((s.start_seq for s in own), default=next_start)
    return _gap_free_prefix(sorted(chosen, key=lambda segment: segment.start_seq))


def posted_about(
    posted: Iterable[tuple[str, PostedSummary]], group: Iterable[Session], parts: Sequence[BranchRange]
) -> tuple[BranchRange, ...]:
    """Where the posted summaries are stored that tell of one of the messages `parts`, or are one of them. `posted` are
    those of the group with the conversations that they were posted in. No part of `parts` is open.

    One that tells of a posted summary tells of all that this one tells of. So none has to be looked for again.
    """
    branches = {session.session_id: session.branch for session in group}
    found: list[BranchRange] = []
    for owner, each in posted:
        shown = ranges_shown(branches[owner], parts)
        if any(start <= each.until_seq or start <= each.seq <= end for start, end in shown):
            found.append(BranchRange(conversation_id=owner, start_seq=each.seq, end_seq=each.seq))
    return tuple(found)


def called(titles: Iterable[str | None], group: Iterable[Session]) -> tuple[Session, ...]:
    """The sessions of the group that have one of these titles."""
    known = {title for title in titles if title is not None}
    return tuple(session for session in group if session.title in known)


def indexed_ranges(branch: Sequence[BranchRange], ranges: Mapping[str, tuple[int, int]]) -> tuple[BranchRange, ...]:
    """The parts of an index that the branch may search, oldest first: they hold 1..n without gap or overlap.

    `ranges` is what the index holds of each conversation. Of an ancestor only that counts which lies inside its range
    of the branch and before what a younger conversation of the branch has indexed itself.
    """
    chosen: list[BranchRange] = []
    next_start: int | None = None
    for part in reversed(branch):
        if part.conversation_id not in ranges:
            continue
        start, end = ranges[part.conversation_id]
        last_end = _earlier(part.end_seq, None if next_start is None else next_start - 1)
        end = end if last_end is None else min(end, last_end)
        if start <= end:
            chosen.insert(0, BranchRange(conversation_id=part.conversation_id, start_seq=start, end_seq=end))
            next_start = start
    covered = 0
    for index, part in enumerate(chosen):
        if part.start_seq != covered + 1:
            return tuple(chosen[:index])
        covered = part.end_seq or covered
    return tuple(chosen)


def outside(parts: Sequence[BranchRange], ranges: Sequence[tuple[int, int]]) -> tuple[BranchRange, ...]:
    """`parts`, none of them open, without what lies in these ranges of seq."""
    left = tuple(parts)
    for start, end in ranges:
        left = (*ranges_between(left, 0, start - 1), *ranges_between(left, end, None))
    return left


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _gap_free_prefix(ordered: Sequence[Segment]) -> tuple[Segment, ...]:
    prefix: list[Segment] = []
    covered = 0
    for segment in ordered:
        if segment.start_seq != covered + 1:
            break
        prefix.append(segment)
        covered = segment.end_seq
    return tuple(prefix)
