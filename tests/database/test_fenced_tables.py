"""Every table is fenced: a row of a group or of a user is out of reach for SQL that names another, or nobody."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.scenes.filled_tables import fill_tables

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

USERS = ("ann", "bob")
OF_THE_SERVICE = {"api_keys", "answered_requests", "service_secrets", "agent_settings"}
"""What is nobody's in particular is there for the store alone."""

CALLED = re.compile(r"\b(\w+)\(")
KNOWN = {"current_setting", "COALESCE", "NULLIF", "ANY", "IN"}


@pytest.fixture
async def tables(postgres_dsn: str) -> list[str]:
    """With a row of each user in every one."""
    return await fill_tables(postgres_dsn, USERS)


@asynccontextmanager
async def asking(dsn: str, **settings: str) -> AsyncGenerator[Any]:
    """A transaction with these settings that is undone."""
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    try:
        for name, value in settings.items():
            await connection.execute("SELECT set_config($1, $2, true)", f"reactor_memory.{name}", value)
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


async def whose(connection: Any, table: str) -> list[str]:
    """The users of the rows that can be read: the name stands in each."""
    rows = await connection.fetch(f"SELECT * FROM {table}")
    return ["ann" if "ann" in map(str, row.values()) or 1 in row.values() else "bob" for row in rows]


async def test_nobody_reads_or_changes_a_row(fenced_postgres_dsn: str, tables: list[str]) -> None:
    async with asking(fenced_postgres_dsn) as connection:
        for table in tables:
            assert await whose(connection, table) == [], table
            assert await connection.execute(f"DELETE FROM {table}") == "DELETE 0", table


async def test_nobody_writes_a_row(fenced_postgres_dsn: str, tables: list[str]) -> None:
    for table in tables:
        async with asking(fenced_postgres_dsn) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await connection.execute(f"INSERT INTO {table} SELECT (jsonb_populate_record(NULL::{table}, '{{}}')).*")


async def test_ann_reaches_rows_of_hers_alone(fenced_postgres_dsn: str, tables: list[str]) -> None:
    async with asking(fenced_postgres_dsn, user_id="ann", group_ids="{ann}") as connection:
        for table in tables:
            own = [] if table in OF_THE_SERVICE else ["ann"]
            assert await whose(connection, table) == own, table
            assert await connection.execute(f"DELETE FROM {table}") == f"DELETE {len(own)}", table


async def test_store_on_behalf_of_ann_reads_no_message_of_bob(fenced_postgres_dsn: str, tables: list[str]) -> None:
    assert "messages" in tables
    async with asking(fenced_postgres_dsn, service="yes", user_id="ann", group_ids="{ann}") as connection:
        for table in ("messages", "responses", "response_pieces", "entries", "items", "active_sessions", "memberships"):
            assert await whose(connection, table) == ["ann"], table


async def test_who_names_all_users_reaches_all(fenced_postgres_dsn: str, tables: list[str]) -> None:
    async with asking(fenced_postgres_dsn, all_users="yes") as connection:
        assert {table: len(await whose(connection, table)) for table in tables} == dict.fromkeys(tables, 2)


async def test_rules_compare_columns_with_settings_alone(postgres_dsn: str, tables: list[str]) -> None:
    """No subquery and no function that reads a table: a rule holds on every shard of a distributed table."""
    async with asking(postgres_dsn) as connection:
        rules = await connection.fetch("SELECT tablename, qual FROM pg_policies WHERE schemaname = 'public'")
    assert sorted(rule["tablename"] for rule in rules) == tables
    for table, rule in rules:
        assert "SELECT" not in rule.upper(), table
        assert set(CALLED.findall(rule)) <= KNOWN, table
