"""What becomes of the index of a session when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.walks import of_all_groups, of_groups, summed
from reactor_memory.database.operations import Steps
from reactor_memory.features.recall import operations as recall
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class RecallHook(LogHook):
    merges = ("merge_index",)
    derives = "recall index"

    def damaged(self, session_id: str | None) -> Steps[tuple[str, ...]]:
        if session_id is None:
            return tuple([row[0] for row in (yield from of_all_groups("damaged_recall_ranges"))])
        rows = yield from of_groups("damaged_recall_ranges", {}, [group_of(session_id)])
        return tuple([row[0] for row in rows if row[0] == session_id])

    def make_again(self, session_id: str) -> Steps[None]:
        yield from recall.make_again([session_id])

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        for branch in gone.branches:
            yield from recall.truncate([branch.session.session_id], seq=branch.ranges[0][0])

    def on_memory_changed(
        self, session: Session, *, back_from: int | None, is_other: bool, now: int, refold: LedgerFold
    ) -> Steps[None]:
        if back_from is not None:
            yield from recall.truncate([session.session_id], seq=back_from)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield from recall.forget([session_id])

    def health(self) -> Steps[tuple[tuple[str, str], ...]]:
        sessions, messages = summed((yield from of_all_groups("recall_state")))
        return (recall.state_detail(sessions, messages),)


HOOK = RecallHook()
