"""What becomes of the texts that stand for ranges of messages when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.tiers.operations import forget_ranges
from reactor_memory.models import LARGEST

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class TiersHook(LogHook):
    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        for part in gone.parts:
            yield from forget_ranges(part.conversation_id, part.start_seq, part.end_seq or LARGEST)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_range_summaries", key_of(session_id))


HOOK = TiersHook()
