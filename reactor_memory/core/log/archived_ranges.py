"""Which messages of a branch are archived, as runs."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import to_json
from reactor_memory.database.operations import Query, Steps
from reactor_memory.models import LARGEST, BranchRange, Value


class ArchivedRanges(Value, frozen=True, kw_only=True):
    """The runs of messages of a branch that callers archived, oldest first: `kept` with their facts shown, `cleared`
    without.
    """

    kept: tuple[tuple[int, int], ...] = ()
    cleared: tuple[tuple[int, int], ...] = ()

    @property
    def until_seq(self) -> int:
        """The last message that is archived; 0 without one."""
        return max((end for _, end in (*self.kept, *self.cleared)), default=0)


def read_archived(branch: Sequence[BranchRange]) -> Steps[ArchivedRanges]:
    """What callers archived of the branch. Costs what there is of it."""
    parts = [[part.conversation_id, part.start_seq, part.end_seq or LARGEST] for part in branch]
    values = {"group_id": group_of(branch[0].conversation_id), "parts": to_json(parts)}
    rows = yield Query("archived_ranges", values)
    return ArchivedRanges(
        kept=tuple((start, end) for state, start, end in rows if state == "archived"),
        cleared=tuple((start, end) for state, start, end in rows if state == "cleared"),
    )
