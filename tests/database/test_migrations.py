"""Migrations: one history, the same schema on both engines, safe when several processes begin at once."""

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from reactor_memory.database import migrations, schema, sqlite
from reactor_memory.database.migrations import migration_statements, schema_of_migrations
from reactor_memory.database.schema import REVISION_TABLE, newest_revision, prepared_schema
from reactor_memory.errors import SchemaError
from reactor_memory.testing import append_messages, numbered
from tests.conformance.suites.searching import alike, embed, say
from tests.scenes.postgres_server import PostgresServer, execute
from tests.scenes.stores import SqlStore, postgres_store, sqlite_store

pytestmark = pytest.mark.anyio

FULL_TEXT = ("recall_passages", "recall_terms", "recall_postings", "search_entries")
"""Full text is each engine's own."""


async def opened_and_closed(store: SqlStore) -> None:
    await store.open()
    await store.close()


def query(path: Path, sql: str) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql).fetchall()
    finally:
        connection.close()


class TestParity:
    """A column, key or index of one engine is there on the other."""

    @pytest.mark.postgres
    async def test_columns(self, tmp_path: Path, postgres_dsn: str) -> None:
        await opened_and_closed(sqlite_store(tmp_path / "memory.db"))
        ours = query(
            tmp_path / "memory.db",
            'SELECT tables.name, columns.name, columns.type, columns."notnull" FROM sqlite_master AS tables, '
            "pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%' "
            + "".join(f"AND tables.name NOT LIKE '{table}%' " for table in FULL_TEXT),
        )
        theirs = await self.fetch(
            postgres_dsn,
            "SELECT table_name, column_name, data_type, is_nullable = 'NO' FROM information_schema.columns "
            f"WHERE table_schema = current_schema() AND table_name NOT IN {FULL_TEXT}",
        )
        assert {(t, c, k.upper().split("(")[0], bool(n)) for t, c, k, n in ours} == {
            (t, c, re.sub("ARRAY|BYTEA", "BLOB", k.upper().replace("CHARACTER VARYING", "VARCHAR")), n)
            for t, c, k, n in theirs
        }
        assert {table for table, *_ in ours} == {
            "conversations",
            "messages",
            "entries",
            "segments",
            "facts",
            "fact_anchors",
            "conversation_summaries",
            "context_layouts",
            "summary_spending",
            "background_work",
            "recall_ranges",
            "active_sessions",
            "fact_corrections",
            "items",
            "load_records",
            "agent_settings",
            "memberships",
            "ownership_transfers",
            "audit_records",
            "api_keys",
            "answered_requests",
            "responses",
            "response_pieces",
            "search_progress",
            "embeddings",
            "service_secrets",
            REVISION_TABLE,
        }

    @pytest.mark.postgres
    async def test_keys_and_indexes(self, tmp_path: Path, postgres_dsn: str) -> None:
        await opened_and_closed(sqlite_store(tmp_path / "memory.db"))
        columns = query(
            tmp_path / "memory.db",
            "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns "
            "WHERE tables.type = 'table' AND columns.pk > 0 "
            + "".join(f"AND tables.name NOT LIKE '{table}%' " for table in FULL_TEXT)
            + "ORDER BY tables.name, columns.pk",
        )
        keys = {(table, ", ".join(column for other, column in columns if other == table)) for table, _ in columns}
        indexes = query(tmp_path / "memory.db", "SELECT name FROM sqlite_master WHERE type = 'index' AND sql <> ''")
        theirs = await self.fetch(
            postgres_dsn,
            "SELECT tablename, indexname, indexdef FROM pg_indexes "
            f"WHERE schemaname = current_schema() AND tablename NOT IN {FULL_TEXT}",
        )
        their_keys = {(t, d.split("(")[1].rstrip(")")) for t, name, d in theirs if name.endswith(("_pkey", "_pkc"))}
        assert keys == their_keys
        assert {name for (name,) in indexes} == {n for _, n, _ in theirs if not n.endswith(("_pkey", "_pkc"))}

    @pytest.mark.postgres
    async def test_the_full_text_tables(self, tmp_path: Path, postgres_dsn: str) -> None:
        await opened_and_closed(sqlite_store(tmp_path / "memory.db"))
        for table in ("recall_passages", "search_entries"):
            ours = query(tmp_path / "memory.db", f"SELECT name FROM pragma_table_info('{table}')")
            theirs = await self.fetch(
                postgres_dsn,
                f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' "
                "AND table_schema = current_schema() ORDER BY ordinal_position",
            )
            # on SQLite the place of a passage begins with its conversation, and its terms are in full text alone
            in_place = {"group_id", "conversation_id", "terms"} if table == "recall_passages" else set[str]()
            assert ours == [column for column in theirs if column[0] not in in_place]
            keys = await self.fetch(postgres_dsn, f"SELECT indexname FROM pg_indexes WHERE tablename = '{table}'")
            assert {f"{table}_pkey", f"{table}_by_term"} <= {name for (name,) in keys}

    @pytest.mark.postgres
    async def test_vectors_are_compared_with_the_extension_and_without_it(self, empty_postgres_dsn: str) -> None:
        store = postgres_store(empty_postgres_dsn, auto_migrate=True)
        await store.open()
        for session_id, text in (("a", "a cat"), ("b", "a zebra"), ("c", "a zoo")):
            await say(store, session_id, text)
            await embed(store, session_id)
        with_extension = await alike(store, "z")
        await asyncio.to_thread(execute, empty_postgres_dsn, "DROP EXTENSION vector")
        assert await alike(store, "z") == with_extension == [("b", 1), ("c", 1)]
        await store.close()

    @pytest.mark.postgres
    def test_a_role_that_may_not_create_the_extension_migrates_without(
        self, postgres_server: PostgresServer, empty_postgres_dsn: str
    ) -> None:
        with postgres_server.ordinary_role(empty_postgres_dsn) as dsn:
            execute(empty_postgres_dsn, "GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC")
            asyncio.run(opened_and_closed(postgres_store(dsn, auto_migrate=True)))
            assert asyncio.run(self.fetch(dsn, "SELECT extname FROM pg_extension WHERE extname = 'vector'")) == []

    async def fetch(self, dsn: str, sql: str) -> list[tuple[str, ...]]:
        connection = await asyncpg.connect(dsn)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()


class TestSqlite:
    async def test_many_at_once(self, tmp_path: Path) -> None:
        stores = [sqlite_store(tmp_path / "memory.db", timeout_seconds=30) for _ in range(6)]
        await asyncio.gather(*(store.open() for store in stores))
        await asyncio.gather(*(append_messages(store, "s", numbered(1)) for store in stores))
        assert len(await stores[0].read("s", None)) == 6
        for store in stores:
            await store.close()

    async def test_a_database_that_is_ahead(self, tmp_path: Path) -> None:
        await opened_and_closed(sqlite_store(tmp_path / "memory.db"))
        query(tmp_path / "memory.db", f"UPDATE {REVISION_TABLE} SET version_num = '9999'")
        with pytest.raises(SchemaError, match="upgrade reactor-memory"):
            await sqlite_store(tmp_path / "memory.db").open()

    async def test_a_migration_that_fails_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        statements = migration_statements("sqlite", None)
        broken = (*statements[:5], "CREATE TABLE conversations (oops TEXT)", *statements[5:])
        monkeypatch.setattr(sqlite, "missing_statements", lambda *_: broken)
        with pytest.raises(Exception, match="database failed"):
            await sqlite_store(tmp_path / "memory.db").open()
        assert query(tmp_path / "memory.db", "SELECT name FROM sqlite_master") == []
        monkeypatch.undo()
        await opened_and_closed(sqlite_store(tmp_path / "memory.db"))

    @pytest.mark.parametrize("is_new", [True, False])
    async def test_a_new_or_current_database_needs_no_alembic(self, tmp_path: Path, is_new: bool) -> None:
        if not is_new:
            await opened_and_closed(sqlite_store(tmp_path / "memory.db"))
        program = (
            "import sys, anyio\nfrom reactor_memory.database.sqlite import SqliteDatabase\n"
            "from reactor_memory.wiring.queries import QUERIES\n"
            "async def main():\n    database = SqliteDatabase(sys.argv[1], QUERIES)\n"
            "    await database.open()\n    await database.close()\n"
            "anyio.run(main)\nprint(sorted({'alembic', 'sqlalchemy'} & set(sys.modules)))"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "memory.db")]
        result = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "[]"


@pytest.mark.postgres
class TestPostgres:
    async def test_a_database_that_is_behind_names_the_command(self, empty_postgres_dsn: str) -> None:
        store = postgres_store(empty_postgres_dsn)
        with pytest.raises(SchemaError, match="run: reactor-memory migrate"):
            await store.open()
        await opened_and_closed(postgres_store(empty_postgres_dsn, auto_migrate=True))
        await opened_and_closed(store)

    async def test_many_at_once(self, empty_postgres_dsn: str) -> None:
        stores = [postgres_store(empty_postgres_dsn, auto_migrate=True) for _ in range(6)]
        await asyncio.gather(*(store.open() for store in stores))
        await asyncio.gather(*(append_messages(store, "s", numbered(1)) for store in stores))
        assert len(await stores[0].read("s", None)) == 6
        for store in stores:
            await store.close()

    async def test_an_application_with_tables_of_its_own(self, empty_postgres_dsn: str) -> None:
        tables = ("CREATE TABLE alembic_version (version_num TEXT)", "CREATE TABLE users (id TEXT)")
        await asyncio.to_thread(execute, empty_postgres_dsn, *tables)
        await opened_and_closed(postgres_store(empty_postgres_dsn, auto_migrate=True))

    async def test_tables_with_our_names(self, empty_postgres_dsn: str) -> None:
        await asyncio.to_thread(execute, empty_postgres_dsn, "CREATE TABLE messages (id TEXT)")
        with pytest.raises(SchemaError, match="another program"):
            await postgres_store(empty_postgres_dsn, auto_migrate=True).open()


LATER = '''"""What a later version adds."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("items", sa.Column("colour", sa.Text(), nullable=False, server_default="red"))
'''
KEPT = """INSERT INTO items (user_id, namespace, key, value, created_at, updated_at, terms)
VALUES ('u', '', 'k', '{}', 1, 1, '')"""
COLOURS = "SELECT key, colour FROM items"


class TestAnOlderDatabase:
    """What is in it stays, and gets what a later migration adds."""

    @pytest.fixture
    def later(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
        folder = tmp_path / "migrations"
        shutil.copytree(schema.migrations_folder(), folder)
        (folder / "versions" / "0002_colours.py").write_text(LATER)

        def come() -> None:
            monkeypatch.setattr(migrations, "migrations_folder", lambda: folder)
            for module in (schema, migrations):
                monkeypatch.setattr(module, "newest_revision", lambda: "0002")
            migration_statements.cache_clear()

        yield come
        migration_statements.cache_clear()

    async def test_on_sqlite(self, tmp_path: Path, later: Callable[[], None]) -> None:
        path = tmp_path / "memory.db"
        await opened_and_closed(sqlite_store(path))
        query(path, KEPT)
        later()
        await opened_and_closed(sqlite_store(path))
        assert query(path, COLOURS) == [("k", "red")]

    @pytest.mark.postgres
    async def test_on_postgres(self, postgres_dsn: str, later: Callable[[], None]) -> None:
        await asyncio.to_thread(execute, postgres_dsn, KEPT)
        later()
        await opened_and_closed(postgres_store(postgres_dsn, auto_migrate=True))
        connection = await asyncpg.connect(postgres_dsn)
        try:
            assert [tuple(row) for row in await connection.fetch(COLOURS)] == [("k", "red")]
        finally:
            await connection.close()


def test_the_prepared_schema_is_the_one_that_the_migrations_make() -> None:
    """If not: make schema."""
    assert prepared_schema() == schema_of_migrations()


def test_the_newest_revision_is_the_last_one_of_the_history() -> None:
    assert f"'{newest_revision()}'" in migration_statements("sqlite", None)[-1]
