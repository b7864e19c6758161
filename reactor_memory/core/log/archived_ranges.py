"""Which messages of a branch are archived, as runs."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import to_json
from reactor_memory.database.operations import Step, Steps
from reactor_memory.models import ArchivedRanges, BranchRange

_OPEN_END = 2**63 - 1


def read_archived(branch: Sequence[BranchRange]) -> Steps[ArchivedRanges]:
    """What callers archived of the branch. Costs what there is of it."""
    parts = [[part.conversation_id, part.start_seq, part.end_seq or _OPEN_END] for part in branch]
    values = {"group_id": group_of(branch[0].conversation_id), "parts": to_json(parts)}
    rows = yield Step("archived_ranges", values)
    return ArchivedRanges(
        kept=tuple((start, end) for state, start, end in rows if state == "archived"),
        cleared=tuple((start, end) for state, start, end in rows if state == "cleared"),
    )
