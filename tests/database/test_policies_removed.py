"""Every rule of row-level security, piece by piece: who sees which rows with it, and that its absence is noticed.

What each kind of table shows is written down here a second time, by hand.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.database.test_fenced_tables import OF_THE_SERVICE
from tests.scenes.filled_tables import fill_tables

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

ANN, BOB = "ann", "bob"
OF_USERS = {"active_sessions", "items", "memberships", "ownership_transfers"}
OF_READERS = {"messages", "responses", "response_pieces"}
UNFORCED = {"recall_passages", "search_entries"}
"""Their owner is not bound: PostgreSQL asks no index for terms where a fence may hide a row."""

MORE_ROWS = """
INSERT INTO entries SELECT (jsonb_populate_record(old, '{"user_id": "", "name": "of the session"}')).*
    FROM entries AS old;
INSERT INTO ownership_transfers SELECT (jsonb_populate_record(old, jsonb_build_object(
        side, 'cid', 'group_id', side || old.group_id, 'transfer_id', side || old.group_id))).*
    FROM ownership_transfers AS old, unnest(ARRAY['from_user_id', 'to_user_id']) AS side
"""
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"user_id": "", "group_ids": ""},
    {"user_id": ANN},
    {"user_id": ANN, "group_ids": "{ann}"},
    {"group_ids": "{ann}"},
    {"service": "yes"},
    {"service": "yes", "user_id": ANN},
    {"service": "yes", "user_id": ANN, "group_ids": "{ann}"},
    {"service": "yes", "group_ids": "{ann}"},
    {"all_users": "yes"},
)
PIECES = re.compile(
    r"\(COALESCE\(current_setting\([^()]*\), ''::text\) = ''::text\)"
    r"|\(current_setting\('reactor_memory\.\w+'::text, true\) = (?:'yes'::text|\w+)\)"
    r"|\(group_id = ANY \(\(NULLIF\(current_setting\([^()]*\), ''::text\)\)::text\[\]\)\)"
    r"|\(owner_id = NULLIF\(current_setting\([^()]*\), ''::text\)\)"
    r"|\(user_id = current_setting\([^()]*\)\)"
)


class Stored(NamedTuple):
    """A row as the tests know it: where it is, whose, and the user that it names by a column of its own."""

    place: str
    owner: str
    user_id: str | None


def may_see(table: str, row: Stored, said: dict[str, str]) -> bool:
    """By the documentation of the fences, and not by their text."""
    if said.get("all_users"):
        return True
    is_service, is_named = bool(said.get("service")), bool(said.get("user_id"))
    in_groups, is_own = row.owner in said.get("group_ids", ""), row.owner == said.get("user_id")
    if table in OF_THE_SERVICE:
        return is_service
    if table in OF_USERS or (table == "entries" and row.user_id):
        return is_own
    if table in OF_READERS or table == "entries":
        return in_groups if is_named else is_service
    return is_service or in_groups or (table == "conversations" and is_own)


class Fences:
    """The tables with rows of Ann and of Bob, looked at by a role that they bind."""

    def __init__(self, connection: Any, role: str, rows: dict[str, list[Stored]]) -> None:
        self.connection = connection
        self.role = role
        self.rows = rows

    async def differences(self, table: str) -> list[str]:
        """What somebody sees and should not, or the other way round."""
        found: list[str] = []
        for said in SETTINGS:
            wanted = {row.place for row in self.rows[table] if may_see(table, row, said)}
            seen = await self._seen(table, said)
            if seen != wanted:
                found.append(f"{table}, {said}: {seen} for {wanted}")
        return found

    async def _seen(self, table: str, said: dict[str, str]) -> set[str] | str:
        async with self.undone():
            for name in ("user_id", "group_ids", "service", "all_users"):
                if name in said:
                    await self.connection.execute(f"SET LOCAL reactor_memory.{name} = '{said[name]}'")
            await self.connection.execute(f"SET LOCAL ROLE {self.role}")
            try:
                return {str(row[0]) for row in await self.connection.fetch(f"SELECT ctid FROM {table}")}
            except asyncpg.PostgresError as error:
                return type(error).__name__

    @asynccontextmanager
    async def undone(self, *statements: str) -> AsyncGenerator[None]:
        inner = self.connection.transaction()
        await inner.start()
        try:
            for statement in statements:
                await self.connection.execute(statement)
            yield
        finally:
            await inner.rollback()


@pytest.fixture
async def fences(postgres_dsn: str, fenced_postgres_dsn: str) -> AsyncGenerator[Fences]:
    tables = await fill_tables(postgres_dsn, (ANN, BOB))
    connection = await asyncpg.connect(postgres_dsn)
    rows: dict[str, list[Stored]] = {}
    await connection.execute(MORE_ROWS)
    for table in tables:
        found = await connection.fetch(f"SELECT ctid, * FROM {table}")
        rows[table] = [_stored(row) for row in found]
        assert {each.owner for each in rows[table]} == {ANN, BOB}, table
    yield Fences(connection, urlsplit(fenced_postgres_dsn).username or "", rows)
    await connection.close()


def _stored(row: Any) -> Stored:
    owner = ANN if ANN in map(str, row.values()) or 1 in row.values() else BOB
    return Stored(str(row["ctid"]), owner, row.get("user_id"))


async def test_everybody_sees_what_the_documentation_says(fences: Fences) -> None:
    assert [each for table in fences.rows for each in await fences.differences(table)] == []
    for table in fences.rows.keys() - UNFORCED:
        async with fences.undone(f"ALTER TABLE {table} OWNER TO {fences.role}"):
            assert await fences.differences(table) == []


@pytest.mark.slow
async def test_no_rule_goes_unnoticed(fences: Fences) -> None:
    rules = dict(await fences.connection.fetch("SELECT tablename::text, qual FROM pg_policies"))
    assert rules.keys() == fences.rows.keys()
    survivors: list[str] = []
    tried = 0
    for table, rule in rules.items():
        owned = f"ALTER TABLE {table} OWNER TO {fences.role}"
        removals = [(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",), (f"DROP POLICY own_rows ON {table}",)]
        removals += [] if table in UNFORCED else [(owned, f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")]
        removals += [(f"ALTER POLICY own_rows ON {table} USING ({changed})",) for changed in changes_of(rule)]
        tried += len(removals)
        for removal in removals:
            async with fences.undone(*removal):
                survivors += [] if await fences.differences(table) else [removal[-1]]
    assert survivors == []
    assert tried > 200


def changes_of(rule: str) -> Iterator[str]:
    """The rule with one of its pieces always, and never, true."""
    places = list(PIECES.finditer(rule))
    assert len(places) == rule.count("current_setting"), rule
    for place in places:
        for value in ("true", "false"):
            yield f"{rule[: place.start()]}{value}{rule[place.end() :]}"
