"""Every call of the protocols of stores, as one operation on a database each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.database.database import Database
from reactor_memory.models import (
    ActiveSession,
    Item,
    ItemChange,
    Message,
    Notes,
    RangeSummary,
    WorkState,
)
from reactor_memory.protocols import (
    StoredConversation,
    StoredMessage,
    StoredUser,
)
from reactor_memory.storage import (
    derived,
    erasing,
    health,
    items,
    log,
    range_summaries,
    transfer,
    user_rows,
)
from reactor_memory.storage.message_store import SqlMessageStore
from reactor_memory.storage.recall_index import SqlRecallIndex
from reactor_memory.storage.summary_store import SqlSummaryStore

RECOUNT_PAGE = 500
"""Messages that are counted again in one transaction: appends wait meanwhile."""


class SqlStore(SqlMessageStore):
    """The log, everything derived from it, and what belongs to users, in one database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.summaries = SqlSummaryStore(database)
        self.index = SqlRecallIndex(database)
        self._read = database.read
        self._write = database.write
        self._note = database.write_relaxed
        self._scan = database.read_long

    async def scrub(self, *, rewrite: bool = False) -> None:
        await health.scrub(self.database, rewrite=rewrite)

    # The log

    async def forget_user(self, user_id: str, *, now: int) -> int:
        return await self._write(erasing.forget_user, user_id, now=now)

    async def recount(self, tokenizer: str, count: Callable[[Message], int]) -> int:
        rewritten, after = 0, log.BEFORE_ALL
        while after is not None:
            page, after = await self._write(log.recount_page, tokenizer, count, after=after, limit=RECOUNT_PAGE)
            rewritten += page
        for recount in (log.recount_pins, range_summaries.recount_range_summaries):
            while await self._write(recount, tokenizer, count, limit=RECOUNT_PAGE):
                pass
        return rewritten

    # What is derived from it

    # Summaries of ranges

    async def read_range_summaries(
        self, session_id: str, user_id: str | None, *, live: bool = True
    ) -> tuple[RangeSummary, ...]:
        return await self._read(range_summaries.read_range_summaries, session_id, user_id, live=live)

    async def read_originals(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        return await self._read(
            range_summaries.read_originals, session_id, user_id, after=after, until=until, last=last, limit=limit
        )

    async def put_range_summaries(
        self, session_id: str, user_id: str | None, new: Sequence[RangeSummary], *, expected: Sequence[str], now: int
    ) -> bool:
        return await self._write(
            range_summaries.put_range_summaries, session_id, user_id, new, expected=expected, now=now
        )

    async def restore_range_summary(self, session_id: str, user_id: str | None, summary_id: str, *, now: int) -> bool:
        return await self._write(range_summaries.restore_range_summary, session_id, user_id, summary_id, now=now)

    # Recall

    # What belongs to a user

    async def get_active(self, user_id: str, agent_name: str) -> ActiveSession | None:
        return await self._read(user_rows.get_active, user_id, agent_name)

    async def get_or_create_active(self, user_id: str, agent_name: str, candidate: str, *, now: int) -> ActiveSession:
        return await self._write(user_rows.get_or_create_active, user_id, agent_name, candidate, now=now)

    async def switch_active(
        self, user_id: str, agent_name: str, *, expected: str | None, new: str | None, now: int
    ) -> ActiveSession | None:
        return await self._write(user_rows.switch_active, user_id, agent_name, expected=expected, new=new, now=now)

    async def touch_active(self, user_id: str, agent_name: str, session_id: str, *, now: int) -> bool:
        return await self._note(user_rows.touch_active, user_id, agent_name, session_id, now=now)

    async def list_active(self, user_id: str) -> tuple[ActiveSession, ...]:
        return await self._read(user_rows.list_active, user_id)

    async def deactivate_active(self, *, before: int) -> int:
        return await self._write(user_rows.deactivate_active, before=before)

    async def read_notes(self, user_id: str, agent_name: str, *, version: int | None = None) -> Notes:
        return await self._read(user_rows.read_notes, user_id, agent_name, version=version)

    async def put_notes(self, notes: Notes) -> bool:
        return await self._write(user_rows.put_notes, notes)

    async def list_notes(self, user_id: str, agent_name: str, *, limit: int = 50) -> tuple[Notes, ...]:
        return await self._read(user_rows.list_notes, user_id, agent_name, limit=limit)

    # Background work

    async def list_work(self, kind: str, *, limit: int = 100) -> tuple[WorkState, ...]:
        return await self._read(derived.list_work, kind, limit=limit)

    # What applications keep

    async def read_items(self, user_id: str, keys: Sequence[tuple[str, str]]) -> tuple[Item | None, ...]:
        return await self._read(items.read_items, user_id, keys)

    async def list_items(self, user_id: str, namespace: str, *, limit: int | None = None) -> tuple[Item, ...]:
        return await self._read(items.list_items, user_id, namespace, limit=limit)

    async def list_item_namespaces(self, user_id: str) -> tuple[str, ...]:
        return await self._read(items.list_item_namespaces, user_id)

    async def change_items(self, user_id: str, changes: Sequence[ItemChange], *, now: int) -> None:
        await self._write(items.change_items, user_id, changes, now=now)

    # Moving sessions to another store

    async def list_groups(self, *, owner_id: str | None = None, after: str = "", limit: int = 100) -> tuple[str, ...]:
        return await self._read(transfer.list_groups, owner_id, after=after, limit=limit)

    async def export_group(self, group_id: str) -> tuple[StoredConversation, ...]:
        return await self._read(transfer.export_group, group_id)

    async def export_messages(self, conversation_id: str, *, after: int, limit: int) -> tuple[StoredMessage, ...]:
        return await self._read(transfer.export_messages, conversation_id, after=after, limit=limit)

    async def import_conversation(self, stored: StoredConversation) -> bool:
        return await self._write(transfer.import_conversation, stored)

    async def import_messages(self, conversation_id: str, messages: Sequence[StoredMessage]) -> bool:
        return await self._write(transfer.import_messages, conversation_id, messages)

    async def finish_import(self, conversation_id: str, *, due_at: int | None) -> None:
        await self._write(transfer.finish_import, conversation_id, due_at=due_at)

    async def list_users(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        return await self._read(user_rows.list_users, after=after, limit=limit)

    async def export_user(self, user_id: str) -> StoredUser:
        return await self._read(transfer.export_user, user_id)

    async def import_user(self, stored: StoredUser) -> None:
        await self._write(transfer.import_user, stored)
