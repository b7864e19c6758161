"""Stores for tests, on databases that the tests name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.database.database import Database
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.database.sqlite_memory import MemoryDatabase
from reactor_memory.features.facts.wiring import sql_summary_store
from reactor_memory.features.recall.database_index import SqlRecallIndex
from reactor_memory.wiring.queries import QUERIES


class SqlStore(SqlMessageStore):
    """The log, with the summaries and the recall index of its database beside it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.summaries = sql_summary_store(database)
        self.index = SqlRecallIndex(database)


def sqlite_database(path: str | Path, **options: Any) -> SqliteDatabase:
    return SqliteDatabase(path, QUERIES, **options)


def memory_database() -> MemoryDatabase:
    return MemoryDatabase(QUERIES)


def sqlite_store(path: str | Path, **options: Any) -> SqlStore:
    return SqlStore(SqliteDatabase(path, QUERIES, **options))


def postgres_store(dsn: str, **options: Any) -> SqlStore:
    return SqlStore(PostgresDatabase(dsn, QUERIES, **options))


def memory_store() -> SqlStore:
    return SqlStore(MemoryDatabase(QUERIES))
