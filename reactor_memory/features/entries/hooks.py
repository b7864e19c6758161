"""What becomes of entries when the log changes: one rule for all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class EntriesHook(LogHook):
    def on_fork(self, parent: Session, fork_id: str, at_seq: int) -> Steps[None]:
        yield Query("copy_entries", key_of(parent.session_id) | {"fork_id": fork_id, "at_seq": at_seq})

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        """What was made of one of the messages goes."""
        for branch in gone.branches:
            scope = entries.of_session(branch.session.session_id)
            for start, end in branch.ranges:
                for row in (yield Query("entries_made_of", scope | {"start_seq": start, "end_seq": end})):
                    yield from entries.undo_row(scope, row)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_entries", key_of(session_id))

    def on_user_forgotten(self, user_id: str, now: int) -> Steps[int]:
        """An empty version stays behind each text, so that what was to follow an older one is refused."""
        scope = entries.of_user(user_id)
        texts = yield Query("texts_of_user", scope)
        for kind, name, newest, _ in texts:
            yield from entries.remove(scope, kind, name)
            yield from entries.put(scope, Entry(kind=kind, name=name, version=newest + 1, created_at=now))
        return sum(row[-1] for row in texts)


HOOK = EntriesHook()
