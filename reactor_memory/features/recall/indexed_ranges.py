"""Which parts of an index a branch may search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reactor_memory.core.log.branches import earlier_end, ranges_between
from reactor_memory.models import BranchRange


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
        last_end = earlier_end(part.end_seq, None if next_start is None else next_start - 1)
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
