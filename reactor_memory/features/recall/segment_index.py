"""What was sealed becomes searchable: the index follows the segments, under the same lease, after they are stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import anyio.to_thread

from reactor_memory.features.recall.entries import part_of
from reactor_memory.features.redaction import redacted
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Fact, Ledger, Segment

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, RecallIndex, Redactor, SummaryStore

log = logging.getLogger(__name__)

SEGMENTS_AT_A_TIME = 20
"""How many segments are indexed before the lease is renewed."""


class Indexer:
    """Keeps the recall index at the heels of the ledger. A fault of the index never holds summaries up: what it lacks
    is searched without it, and added when there is work for the session again.
    """

    def __init__(
        self, *, messages: MessageStore, summaries: SummaryStore, index: RecallIndex, redactor: Redactor
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._index = index
        self._redactor = redactor

    async def follow(self, lease: Lease, segment: Segment, messages: Sequence[Message], facts: Sequence[Fact]) -> None:
        """Index a segment that was just stored, if it is the next one. Else `catch_up` finds it.

        `messages` are redacted.
        """
        try:
            if await self._index.indexed_until(segment.conversation_id) == segment.start_seq - 1:
                await self._index.extend(lease, part_of(segment, messages, facts))
        except Exception as error:  # an index is anybody's code, and summaries do without it
            _warn(lease, error)

    async def begin_again(self, session_id: str) -> None:
        """What the segments of the session state has changed: forget them, so that `catch_up` reads them again."""
        try:
            await self._index.truncate([session_id], seq=1)
        except Exception as error:
            fields = {"session_id": session_id, "reason": type(error).__name__}
            log.warning("index not truncated", extra=fields)

    async def catch_up(self, lease: Lease) -> bool:
        """Index segments that were stored and not indexed; whether there were any."""
        try:
            summary = await self._summaries.get_summary_head(lease.session_id)
            until = await self._index.indexed_until(lease.session_id)
            if summary is None or until >= summary.covered_seq:
                return False
            return await self._index_after(lease, until)
        except Exception as error:
            _warn(lease, error)
            return False

    async def _index_after(self, lease: Lease, until: int) -> bool:
        session, _ = await self._messages.read_background(lease.session_id, limit=1)
        ledger = await self._summaries.read_ledger(lease.session_id, session.branch)
        indexed = False
        for segment in islice(_ready(ledger, lease.session_id, until), SEGMENTS_AT_A_TIME):
            count = segment.end_seq - segment.start_seq + 1
            _, read = await self._messages.read_background(lease.session_id, after=segment.start_seq - 1, limit=count)
            messages = [message for message in read if (message.seq or 0) <= segment.end_seq]
            clean = await anyio.to_thread.run_sync(redacted, messages, self._redactor, abandon_on_cancel=True)
            facts = [fact for fact in ledger.facts if segment.start_seq <= fact.source_seq <= segment.end_seq]
            if not await self._index.extend(lease, part_of(segment, clean, facts)):
                break
            indexed = True
        return indexed


def _ready(ledger: Ledger, conversation_id: str, until: int) -> list[Segment]:
    """The conversation's own segments behind `until`, up to the first one that has to be read again."""
    own = [each for each in ledger.segments if each.conversation_id == conversation_id and each.start_seq > until]
    stale = next((position for position, segment in enumerate(own) if segment.stale), len(own))
    return own[:stale]


def _warn(lease: Lease, error: Exception) -> None:
    fields = {"session_id": lease.session_id, "reason": type(error).__name__}
    log.warning("not indexed", extra=fields)
