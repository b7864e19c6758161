"""What becomes of load records when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Batch, Query, Steps

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class ReplayHook(LogHook):
    """A fork takes no records along: its inherited turns are found under the conversation that stores them."""

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        """Every context since may tell of these messages, and so may the one whose turn said the first of them."""
        values = [
            key_of(branch.session.session_id) | {"from_seq": min(start for start, _ in branch.ranges) - 1}
            for branch in gone.branches
            if branch.ranges
        ]
        yield Batch("delete_load_records", values)
        yield Batch("forget_queries", [key_of(branch.session.session_id) for branch in gone.branches])

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_load_records", key_of(session_id) | {"from_seq": 0})


HOOK = ReplayHook()
