"""The index of recall, in the database of the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from reactor_memory.database.database import Database
from reactor_memory.errors import StoreCorruptError, StoreReadOnlyError
from reactor_memory.features.recall import operations as recall
from reactor_memory.models import LARGEST
from reactor_memory.models.index_requests import IndexAnswer, IndexPart, RecallQuery
from reactor_memory.models.leases import Lease

log = logging.getLogger(__name__)

FEW_WORDS = 8
"""So many words are searched for in about a millisecond, whatever the index holds: most questions have no more."""


class SqlRecallIndex:
    """`RecallIndex` over the database of the log, which takes entries away together with their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def indexed_until(self, conversation_id: str) -> int:
        """What cannot be read goes, and is made again."""
        try:
            return await self._database.read(recall.indexed_until, conversation_id)
        except StoreCorruptError:
            await self._make_again([conversation_id])
            return 0

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        return await self._database.write_relaxed(recall.extend, lease, part)

    async def search(self, query: RecallQuery) -> IndexAnswer:
        """As if nothing were indexed yet, where the index cannot be read: it goes, and is made again."""
        operation = recall.search_few if len(query.words) <= FEW_WORDS else recall.search
        try:
            return await self._database.read(operation, query)
        except StoreCorruptError:
            await self._make_again([part.conversation_id for part in query.branch])
            return IndexAnswer(is_damaged=True)

    async def _make_again(self, session_ids: Sequence[str]) -> None:
        log.warning("the recall index is damaged and made again", extra={"session_id": session_ids[-1]})
        with suppress(StoreReadOnlyError):
            await self._database.write(recall.make_again, session_ids)

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        await self._database.write(recall.truncate, session_ids, seq=seq)

    async def forget(self, session_ids: Sequence[str]) -> None:
        await self._database.write(recall.forget, session_ids)


class NoRecallIndex:
    """`RecallIndex` that holds nothing: the newest messages are searched directly, fact lines not at all."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def indexed_until(self, conversation_id: str) -> int:
        return LARGEST

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        return False

    async def search(self, query: RecallQuery) -> IndexAnswer:
        return IndexAnswer()

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        """Nothing to forget."""

    async def forget(self, session_ids: Sequence[str]) -> None:
        """Nothing to forget."""
