"""What becomes of pins when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.features.pins.agent_notes import ANCHOR
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class PinsHook(LogHook):
    def on_fork(self, parent: Session, fork_id: str, at_seq: int) -> Steps[None]:
        yield Query("copy_pins", key_of(parent.session_id) | {"fork_id": fork_id, "at_seq": at_seq})

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        for branch in gone.branches:
            key = key_of(branch.session.session_id)
            values = [key | {"start_seq": start, "end_seq": end} for start, end in branch.ranges]
            yield Batch("delete_pins_of_messages", values)
            behind = [key | {"anchor": ANCHOR, "start_seq": start} for start, _ in branch.ranges]
            yield Batch("delete_notes_behind", behind)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_pins", key_of(session_id))


HOOK = PinsHook()
