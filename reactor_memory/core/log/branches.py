"""How a branch is put together: session ids, and ranges of messages.

Pure functions of values, for stores with and without a database.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from reactor_memory.models import BranchRange

FORK_SEPARATOR = "~"


def group_of(session_id: str) -> str:
    """The id of the group: of the root itself, or of the root that the fork descends from."""
    return session_id.partition(FORK_SEPARATOR)[0]


def is_fork(session_id: str) -> bool:
    return FORK_SEPARATOR in session_id


def root_branch(session_id: str) -> tuple[BranchRange, ...]:
    """The branch of a session that is no fork: all its messages are its own."""
    return (BranchRange(conversation_id=session_id, start_seq=1),)


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


def ranges_in_branch(branch: Sequence[BranchRange], stored: Sequence[BranchRange]) -> tuple[tuple[int, int], ...]:
    """Which of the messages `stored`, by where they are stored, belong to the branch. No part of `stored` is open."""
    found: list[tuple[int, int]] = []
    for part in stored:
        for shown in branch:
            start = max(part.start_seq, shown.start_seq)
            end = earlier_end(part.end_seq, shown.end_seq)
            if part.conversation_id == shown.conversation_id and end is not None and start <= end:
                found.append((start, end))
    return tuple(sorted(found))


def earlier_end(one: int | None, other: int | None) -> int | None:
    """The end that comes first; None is no end."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
