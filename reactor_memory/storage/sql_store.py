"""The log with what is derived from it, in one database."""

from __future__ import annotations

from reactor_memory.database.database import Database
from reactor_memory.storage.message_store import SqlMessageStore
from reactor_memory.storage.recall_index import SqlRecallIndex
from reactor_memory.storage.summary_store import SqlSummaryStore


class SqlStore(SqlMessageStore):
    """The log, with the summaries and the recall index beside it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.summaries = SqlSummaryStore(database)
        self.index = SqlRecallIndex(database)
