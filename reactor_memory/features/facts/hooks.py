"""What becomes of facts and summaries when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.facts import operations as facts
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class FactsHook(LogHook):
    def on_fork(self, parent: Session, fork_id: str, at_seq: int) -> Steps[None]:
        yield Query("copy_corrections", key_of(parent.session_id) | {"fork_id": fork_id, "at_seq": at_seq})

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        yield from facts.forget_messages(gone.branches, now=now, refold=refold, untold=gone.with_others)

    def on_memory_changed(
        self, session: Session, *, back_from: int | None, is_other: bool, now: int, refold: LedgerFold
    ) -> Steps[None]:
        if is_other:
            yield from facts.fold_again(session, now=now, refold=refold)
        else:
            yield from facts.renew_narrative(session, now=now, refold=refold)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield from facts.forget_derived(session_id)


HOOK = FactsHook()
