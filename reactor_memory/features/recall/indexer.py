"""What was sealed becomes searchable: the index follows the log up to what the summary covers, under its lease."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio.to_thread

from reactor_memory.core.log.branches import is_fork
from reactor_memory.features.recall.passages import passages_of
from reactor_memory.features.redaction import redacted, unredacted
from reactor_memory.models import Message
from reactor_memory.models.index_requests import IndexPart, Passage
from reactor_memory.models.leases import Lease
from reactor_memory.models.turns import in_turns

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, RecallIndex, Redactor, SummaryStore

log = logging.getLogger(__name__)

MESSAGES_AT_A_TIME = 100
"""How many messages are indexed in one transaction: appends wait meanwhile."""


class Indexer:
    """Keeps the recall index at the heels of the summary. A fault of the index never holds summaries up: what it lacks
    is searched without it, and added when there is work for the session again.
    """

    def __init__(
        self, *, messages: MessageStore, summaries: SummaryStore, index: RecallIndex, redactor: Redactor
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._index = index
        self._redactor = redactor

    async def catch_up(self, lease: Lease) -> bool:
        """Index what the summary covers; whether there was anything."""
        try:
            summary = await self._summaries.get_summary_head(lease.session_id)
            until = await self._index.indexed_until(lease.session_id)
            if summary is None or until >= summary.covered_seq:
                return False
            return await self._index_after(lease, until, summary.covered_seq)
        except Exception as error:  # an index is anybody's code, and summaries do without it
            fields = {"session_id": lease.session_id, "reason": type(error).__name__}
            log.warning("not indexed", extra=fields)
            return False

    async def _index_after(self, lease: Lease, until: int, covered_seq: int) -> bool:
        after = until or await self._before_own(lease.session_id)
        indexed = False
        while after < covered_seq:
            rows = await self._messages.read_background(lease.session_id, after=after, limit=MESSAGES_AT_A_TIME)
            read = rows.messages
            end = _end_of_part(read, covered_seq) if len(read) == MESSAGES_AT_A_TIME else covered_seq
            part = IndexPart(
                conversation_id=lease.session_id,
                start_seq=after + 1,
                end_seq=end,
                passages=await self._passages(in_turns([each for each in read if (each.seq or 0) <= end], rows.steps)),
            )
            if not await self._index.extend(lease, part):
                break
            indexed, after = True, end
        return indexed

    async def _before_own(self, session_id: str) -> int:
        """The message before the first one that no ancestor of the session indexes: it inherits what they sealed."""
        if not is_fork(session_id):
            return 0
        session = (await self._messages.read_background(session_id, limit=1)).session
        ledger = await self._summaries.read_ledger(session.session_id, session.branch)
        own = [each.start_seq for each in ledger.segments if each.conversation_id == session.session_id]
        return min(own, default=session.branch[-1].start_seq) - 1

    async def _passages(self, messages: Sequence[Message]) -> tuple[Passage, ...]:
        def cut() -> tuple[Passage, ...]:
            clean = None if self._redactor is unredacted else redacted(messages, self._redactor)
            return tuple(sorted(passages_of(messages, clean), key=lambda each: each.place))

        return await anyio.to_thread.run_sync(cut, abandon_on_cancel=True)


def _end_of_part(messages: Sequence[Message], covered_seq: int) -> int:
    """Where a part ends: before its last turn, whose talk may go on, or with all of a longer one."""
    last = min(covered_seq, messages[-1].seq or 0)
    starts = [each.seq or 0 for each in messages[1:] if each.role == "user" and (each.seq or 0) <= last]
    return starts[-1] - 1 if starts and last < covered_seq else last
