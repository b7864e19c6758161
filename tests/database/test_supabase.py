"""The tables of a chat on Supabase over ours: what ann, bob and nobody reach by SQL, and what both sides show."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.database.supabase import make_supabase_tables, whole_script
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.erasure.operations import forget_user
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.models import Message
from reactor_memory.testing import append_messages
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.filled_tables import fill_tables
from tests.scenes.stores import SqlStore, postgres_store
from tests.scenes.supabase import AUTH

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

ANN, BOB = "00000000-0000-4000-8000-0000000000aa", "00000000-0000-4000-8000-0000000000bb"
SESSION = "00000000-0000-4000-8000-000000000007"
SHOWN = ("user_agent_active_sessions", "agent_long_term_memory", "chat_message_history")
RELATIONS = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1
"""
UPSERT = """
INSERT INTO user_agent_active_sessions (user_id, agent_name, active_session_id, last_active_at)
SELECT user_id, agent_name, active_session_id, last_active_at
FROM json_populate_record(NULL::user_agent_active_sessions, $1)
ON CONFLICT (user_id, agent_name) DO UPDATE SET user_id = excluded.user_id, agent_name = excluded.agent_name,
    active_session_id = excluded.active_session_id, last_active_at = excluded.last_active_at
RETURNING *
"""
"""What PostgREST makes of the seed's `upsert(row, { onConflict: user_id and agent_name })`."""


@pytest.fixture
async def dsn(postgres_dsn: str) -> str:
    """A migrated database of Supabase, without the tables of the chat."""
    await run(postgres_dsn, AUTH, f"INSERT INTO auth.users VALUES ('{ANN}'), ('{BOB}')")
    return postgres_dsn


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[SqlStore]:
    store = postgres_store(dsn)
    await store.open()
    await store.database.write(make_supabase_tables)
    yield store
    await store.close()


async def run(dsn: str, *statements: str) -> None:
    connection = await connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@asynccontextmanager
async def asking(dsn: str, user_id: str | None, role: str = "authenticated") -> AsyncGenerator[Any]:
    """As PostgREST asks for a request: the role and the claims of its token hold for a transaction."""
    connection = await connect(dsn)
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL ROLE {role}")
            claims = json.dumps({"sub": user_id, "role": role}) if user_id else ""
            await connection.execute("SELECT set_config('request.jwt.claims', $1, true)", claims)
            yield connection
    finally:
        await connection.close()


async def attempt(connection: Any, statement: str, *values: object) -> list[Any]:
    """The rows; none for who may not even ask."""
    try:
        async with connection.transaction():
            return await connection.fetch(statement, *values)
    except asyncpg.InsufficientPrivilegeError:
        return []


WHO = [(ANN, "authenticated"), (BOB, "authenticated"), (None, "authenticated"), (None, "anon"), (ANN, "anon")]


@pytest.fixture
async def relations(store: SqlStore, dsn: str) -> list[str]:
    """All tables and views, with rows of Ann and of Bob in every one."""
    await run(
        dsn, *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in ("entries", "active_sessions", *SHOWN[:2]))
    )
    await run(dsn, "DROP VIEW chat_message_history", *(f"DROP TABLE {table}" for table in SHOWN[:2]))
    await fill_tables(dsn, (ANN, BOB))
    await run(
        dsn,
        "UPDATE entries SET kind = 'notes', conversation_id = ''",
        "UPDATE messages SET state = NULL, metadata = NULL, parts = NULL, tool_calls = NULL",
        "UPDATE conversations SET deleted_at = NULL",
    )
    await store.database.write(make_supabase_tables)
    await run(dsn, *(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in ("entries", "active_sessions")))
    connection = await connect(dsn)
    found = [row[0] for row in await connection.fetch(RELATIONS)]
    for relation in set(found) - {"reactor_memory_revision"}:
        assert await connection.fetchval(f"SELECT count(*) FROM {relation}") == 2, relation
    await connection.close()
    return found


async def test_nobody_reaches_a_row_of_another(dsn: str, relations: list[str]) -> None:
    assert set(SHOWN) < set(relations)
    for user_id, role in WHO:
        other = {ANN: BOB, BOB: ANN}.get(user_id or "", "-")
        async with asking(dsn, user_id, role) as connection:
            for relation in relations:
                rows = await attempt(connection, f"SELECT * FROM {relation}")
                assert not any(other in str(dict(row)) for row in rows), (user_id, role, relation)
                if user_id is None:
                    assert rows == [], (user_id, role, relation)
                elif relation in SHOWN and role == "authenticated":
                    assert len(rows) == 1, (user_id, relation)


@pytest.mark.parametrize("name", ["user_id", "service", "all_users", "group_ids"])
async def test_settings_of_the_store_open_nothing(dsn: str, relations: list[str], name: str) -> None:
    """Nor does a grant that somebody gave once more."""
    await run(dsn, "GRANT ALL ON ALL TABLES IN SCHEMA public TO anon, authenticated")
    value = {"user_id": BOB, "group_ids": f"{{{BOB}}}"}.get(name, "yes")
    for user_id, role in WHO[:1] + WHO[2:]:
        async with asking(dsn, user_id, role) as connection:
            await connection.execute("SELECT set_config($1, $2, true)", f"reactor_memory.{name}", value)
            for relation in set(relations) - {"reactor_memory_revision"}:
                rows = await attempt(connection, f"SELECT * FROM {relation}")
                assert not any(BOB in str(dict(row)) for row in rows), (user_id, role, relation)


async def test_nobody_changes_a_row_of_another(dsn: str, relations: list[str]) -> None:
    everything = sorted(set(relations) - {"reactor_memory_revision"})
    connection = await connect(dsn)
    columns = {each: list((await connection.fetch(f"SELECT * FROM {each}"))[0].keys()) for each in everything}
    for user_id, role in WHO[:1] + WHO[2:]:
        for verb in ("UPDATE", "DELETE"):
            async with asking(dsn, user_id, role) as asker:
                for relation in everything:
                    column = columns[relation][0]
                    what = (
                        f"UPDATE {relation} SET {column} = {column}" if verb == "UPDATE" else f"DELETE FROM {relation}"
                    )
                    changed = await attempt(asker, f"{what} RETURNING *")
                    assert not any(BOB in str(dict(row)) for row in changed), (user_id, role, relation)
    for relation in everything:
        assert any(BOB in str(dict(row)) for row in await connection.fetch(f"SELECT * FROM {relation}")), relation
    await connection.close()


@pytest.mark.parametrize(
    ("statement", "role"),
    [
        (f"INSERT INTO user_agent_active_sessions VALUES ('{BOB}', 'a', 's')", "authenticated"),
        (
            f"INSERT INTO agent_long_term_memory (user_id, agent_name, notes) VALUES ('{BOB}', 'a', 's')",
            "authenticated",
        ),
        (f"UPDATE agent_long_term_memory SET user_id = '{BOB}'", "authenticated"),
        ("INSERT INTO chat_message_history (session_id, message) VALUES ('s', '{}')", "authenticated"),
        (f"INSERT INTO user_agent_active_sessions VALUES ('{ANN}', 'a', 's')", "anon"),
        ("INSERT INTO messages (group_id) VALUES ('x')", "authenticated"),
        ("UPDATE active_sessions SET active_session_id = 'x'", "authenticated"),
    ],
)
async def test_no_row_of_another_is_written(store: SqlStore, dsn: str, statement: str, role: str) -> None:
    await store.database.write(note_rows.put_notes, Notes(user_id=ANN, agent_name="a", version=1, text="x"))
    async with asking(dsn, ANN, role) as connection:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.RaiseError)):
            await connection.execute(statement)


OWN = ("active_sessions", "conversations", "entries", "items", "memberships", "ownership_transfers")
"""Tables of the store of which a signed-in user may read their rows."""

OPENING = {"user_id": BOB, "group_ids": f"{{{BOB}}}", "service": "yes", "all_users": "yes"}
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
LEAK = f"""
CREATE FUNCTION leak(told text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN
    IF told LIKE '%{BOB}%' THEN RAISE EXCEPTION 'leaked'; END IF;
    RETURN true;
END $$
"""


@asynccontextmanager
async def undone(connection: Any, *statements: str) -> AsyncGenerator[None]:
    inner = connection.transaction()
    await inner.start()
    try:
        for statement in statements:
            await connection.execute(statement)
        yield
    finally:
        await inner.rollback()


def spoken_for(user_id: str | None, role: str) -> str:
    claims = json.dumps({"sub": user_id, "role": role}) if user_id else ""
    return f"SELECT set_config('request.jwt.claims', '{claims}', true)"


async def breaches(connection: Any, relation: str) -> list[str]:
    """What is wrong with one table or view, found out by SQL as each of `WHO`, one line of defence at a time."""
    found: list[str] = []
    granted = "GRANT ALL ON ALL TABLES IN SCHEMA public TO anon, authenticated"
    settings = [f"SET LOCAL reactor_memory.{name} = '{value}'" for name, value in OPENING.items()]
    unrestricted = [] if relation in (*SHOWN, REVISION) else [f"DROP POLICY IF EXISTS not_for_others ON {relation}"]
    for name, before in (("as it is", []), ("granted", [granted, *settings]), ("unrestricted", unrestricted)):
        for user_id, role in WHO:
            async with undone(connection, *before, spoken_for(user_id, role), f"SET LOCAL ROLE {role}"):
                rows = await attempt(connection, f"SELECT * FROM {relation}")
                other = {ANN: BOB, BOB: ANN}.get(user_id or "", "0000")
                if (relation == REVISION and rows) or any(other in str(dict(row)) for row in rows):
                    found.append(f"{name}: {role} {user_id} reads {relation}")
                reads = relation in (*SHOWN, *OWN) and user_id is not None and role == "authenticated"
                if reads and len(rows) != 1:
                    found.append(f"{name}: {role} {user_id} reads nothing of theirs in {relation}")
                if relation in SHOWN[:2] and user_id == ANN:
                    found += [f"{name}: {role} {told}" for told in await writes_of_another(connection, relation)]
    scanned = "SET LOCAL enable_nestloop = off"
    async with undone(connection, LEAK, scanned, spoken_for(ANN, "authenticated"), "SET LOCAL ROLE authenticated"):
        try:
            told = "session_id" if relation == SHOWN[2] else "one::text"
            await connection.fetch(f"SELECT FROM {relation} AS one WHERE leak({told})")
        except asyncpg.RaiseError:
            found.append(f"a function of a query sees the rows of others in {relation}")
        except asyncpg.InsufficientPrivilegeError:
            pass
    return found + await privileges_too_many(connection, relation)


REVISION = "reactor_memory_revision"


async def writes_of_another(connection: Any, table: str) -> list[str]:
    columns = "user_id, agent_name, " + ("active_session_id" if table == SHOWN[0] else "notes")
    said = {
        "updates": f"UPDATE {table} SET {columns.split()[-1]} = 'changed' RETURNING *",
        "deletes": f"DELETE FROM {table} RETURNING *",
    }
    found: list[str] = []
    async with undone(connection):
        try:
            await connection.execute(f"INSERT INTO {table} ({columns}) VALUES ('{BOB}', 'another', 's')")
            found.append(f"inserts into {table}")
        except asyncpg.InsufficientPrivilegeError:
            pass
    for name, statement in said.items():
        async with undone(connection):
            changed = await attempt(connection, statement)
            found += [f"{name} {table}"] if any(BOB in str(dict(row)) for row in changed) else []
    return found


async def privileges_too_many(connection: Any, relation: str) -> list[str]:
    allowed = {("authenticated", "SELECT")} if relation in (*SHOWN, *OWN) else set[tuple[str, str]]()
    allowed |= {("anon", "SELECT")} if relation in SHOWN else set()
    allowed |= {("authenticated", verb) for verb in VERBS[1:4]} if relation in SHOWN[:2] else set()
    asked = "SELECT has_table_privilege($1, $2, $3)"
    return [
        f"{role} may {verb} {relation}"
        for role in ("anon", "authenticated")
        for verb in VERBS
        if await connection.fetchval(asked, role, relation, verb) and (role, verb) not in allowed
    ]


async def removals(connection: Any, relations: list[str]) -> list[tuple[str, str]]:
    """Each guard that the script sets up, by the table or view that it is for, with what takes it away."""
    found: list[tuple[str, str]] = []
    for relation in relations:
        found += [(relation, f"GRANT ALL ON {relation} TO {role}") for role in ("anon", "authenticated", "PUBLIC")]
        if relation != "chat_message_history":
            found.append((relation, f"ALTER TABLE {relation} DISABLE ROW LEVEL SECURITY"))
    policies = "SELECT tablename::text, policyname::text, with_check IS NOT NULL FROM pg_policies"
    for table, policy, has_check in await connection.fetch(policies):
        if policy != "own_rows":  # of the store: `test_policies_removed`
            found.append((table, f"DROP POLICY {policy} ON {table}"))
            found.append((table, f"ALTER POLICY {policy} ON {table} USING (true)"))
            found += [(table, f"ALTER POLICY {policy} ON {table} WITH CHECK (true)")] if has_check else []
    view = SHOWN[2]
    shown = await connection.fetchval(f"SELECT pg_get_viewdef('{view}'::regclass)")
    for piece in ("own.owner_id = (auth.uid())::text", "NOT row_security_active('messages'::text)"):
        assert shown.count(piece) == 1, shown
        changed = f"CREATE OR REPLACE VIEW {view} WITH (security_barrier) AS {shown.replace(piece, 'true')}"
        found.append((view, changed))
    return [*found, (view, f"ALTER VIEW {view} RESET (security_barrier)")]


@pytest.mark.slow
async def test_no_guard_of_supabase_goes_unnoticed(dsn: str, relations: list[str]) -> None:
    connection = await connect(dsn)
    async with connection.transaction():
        assert [each for relation in relations for each in await breaches(connection, relation)] == []
        survivors: list[str] = []
        tried = await removals(connection, relations)
        for relation, removal in tried:
            async with undone(connection, removal):
                survivors += [] if await breaches(connection, relation) else [removal]
    await connection.close()
    assert survivors == []
    assert len(tried) > 150


class TestActiveSessions:
    async def test_hooks_of_the_client_find_and_set_it(self, store: SqlStore, dsn: str) -> None:
        """The seed's `useFetchActiveChatSession` and `useUpsertActiveChatSession`."""
        row = {
            "user_id": ANN,
            "agent_name": "a",
            "active_session_id": SESSION,
            "last_active_at": "2025-05-21T10:00:00Z",
        }
        async with asking(dsn, ANN) as connection:
            (told,) = await connection.fetch(UPSERT, json.dumps(row))
            assert told["active_session_id"] == SESSION
            later = {"active_session_id": "s2", "last_active_at": "2025-05-21T10:00:01Z"}
            await connection.execute(UPSERT, json.dumps(row | later))
            fetch = "SELECT active_session_id, last_active_at FROM user_agent_active_sessions WHERE user_id = $1"
            (found,) = await connection.fetch(
                f"{fetch} AND agent_name = $2 ORDER BY last_active_at DESC LIMIT 1", ANN, "a"
            )
            assert found["active_session_id"] == "s2"
        active = await store.database.read(active_rows.get_active, ANN, "a")
        assert active is not None
        assert (active.session_id, active.last_active_at) == ("s2", 1747821601_000000)

    async def test_what_the_store_sets_is_shown(self, store: SqlStore, dsn: str) -> None:
        await store.database.write(active_rows.get_or_create_active, ANN, "a", "s1", now=1_000_001)
        async with asking(dsn, ANN) as connection:
            (row,) = await connection.fetch("SELECT * FROM user_agent_active_sessions")
        assert (str(row["user_id"]), row["agent_name"], row["active_session_id"]) == (ANN, "a", "s1")
        assert row["created_at"].timestamp() == 1.000001
        await store.database.write(active_rows.switch_active, ANN, "a", expected="s1", new=None, now=2_000_000)
        async with asking(dsn, ANN) as connection:
            assert await connection.fetch("SELECT * FROM user_agent_active_sessions") == []

    async def test_time_moves_with_an_update_that_names_none(self, store: SqlStore, dsn: str) -> None:
        await store.database.write(active_rows.get_or_create_active, ANN, "a", "s1", now=1)
        async with asking(dsn, ANN) as connection:
            await connection.execute("UPDATE user_agent_active_sessions SET active_session_id = 's2'")
            assert (await connection.fetchval("SELECT last_active_at FROM user_agent_active_sessions")).year > 2000

    async def test_user_who_is_not_of_supabase_is_left_out(self, store: SqlStore, dsn: str) -> None:
        for user_id in ("ann", "00000000-0000-4000-8000-0000000000cc"):
            await store.database.write(active_rows.get_or_create_active, user_id, "a", "s1", now=1)
        assert await whole(dsn, "user_agent_active_sessions") == []


class TestNotes:
    async def test_what_the_store_writes_is_shown(self, store: SqlStore, dsn: str) -> None:
        for version, text in enumerate(("first", "second"), 1):
            notes = Notes(user_id=ANN, agent_name="a", version=version, text=text, created_at=version)
            await store.database.write(note_rows.put_notes, notes)
        async with asking(dsn, ANN) as connection:
            (row,) = await connection.fetch("SELECT * FROM agent_long_term_memory")
        assert (str(row["user_id"]), row["agent_name"], row["notes"]) == (ANN, "a", "second")

    async def test_what_a_client_writes_is_read(self, store: SqlStore, dsn: str) -> None:
        for said in (
            f"insert into agent_long_term_memory (user_id, agent_name, notes) values ('{ANN}', 'a', 'first')",
            "update agent_long_term_memory set notes = 'second'",
        ):
            async with asking(dsn, ANN) as connection:
                await connection.execute(said)
        read = await store.database.read(note_rows.read_notes, ANN, "a")
        assert (read.version, read.text) == (2, "second")
        async with asking(dsn, ANN) as connection:
            await connection.execute("DELETE FROM agent_long_term_memory")
        assert (await store.database.read(note_rows.read_notes, ANN, "a")).text == ""

    async def test_erased_notes_are_gone(self, store: SqlStore, dsn: str) -> None:
        await store.database.write(note_rows.put_notes, Notes(user_id=ANN, agent_name="a", version=1, text="canary"))
        await store.database.write(forget_user, ANN, now=5)
        assert await whole(dsn, "agent_long_term_memory") == []


class TestMessages:
    async def test_owner_alone_reads_them(self, store: SqlStore, dsn: str) -> None:
        await append_messages(store, SESSION, [Message.user("hello"), Message.assistant("hi")], user_id=ANN)
        for user_id, count in ((ANN, 2), (BOB, 0)):
            async with asking(dsn, user_id) as connection:
                assert len(await connection.fetch("SELECT * FROM chat_message_history ORDER BY id")) == count
        (first, second) = await whole(dsn, "chat_message_history")
        assert (first["id"], first["session_id"], second["id"]) == (1, SESSION, 2)
        message = json.loads(first["message"])
        assert (message["type"], message["data"]["content"]) == ("human", "hello")
        assert json.loads(second["message"])["type"] == "ai"

    async def test_session_is_found_by_the_key(self, store: SqlStore, dsn: str) -> None:
        """A condition on the session reaches the key of the table, which begins with the group."""
        assert store.database.engine == "postgresql"
        connection = await connect(dsn)
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetch(
            "EXPLAIN SELECT message FROM chat_message_history WHERE session_id = 'x' ORDER BY id"
        )
        await connection.close()
        assert any("Index Cond: ((group_id = 'x'::text" in row[0] for row in plan)

    async def test_server_appends_in_the_name_of_the_active_user(self, store: SqlStore, dsn: str) -> None:
        await store.database.write(active_rows.get_or_create_active, ANN, "a", SESSION, now=1)
        async with asking(dsn, None, "service_role") as connection:
            for kind, said in (("human", "hello"), ("ai", "hi")):
                message = json.dumps({"type": kind, "data": {"content": said}})
                await connection.execute(
                    "INSERT INTO chat_message_history (session_id, message) VALUES ($1, $2)", SESSION, message
                )
        assert [(each.role, each.content) for each in await store.read(SESSION, ANN)] == [
            ("user", "hello"),
            ("assistant", "hi"),
        ]

    @pytest.mark.parametrize(
        ("session_id", "message"), [(SESSION, {}), (SESSION, {"type": "ai", "data": {}}), ("a~b", {"type": "ai"})]
    )
    async def test_what_is_no_message_is_refused(
        self, store: SqlStore, dsn: str, session_id: str, message: dict[str, Any]
    ) -> None:
        assert store.database.engine == "postgresql"
        async with asking(dsn, None, "service_role") as connection:
            with pytest.raises(asyncpg.RaiseError):
                await connection.execute(
                    "INSERT INTO chat_message_history (session_id, message) VALUES ($1, $2)",
                    session_id,
                    json.dumps(message),
                )

    async def test_messages_are_not_changed_from_there(self, store: SqlStore, dsn: str) -> None:
        await append_messages(store, SESSION, [Message.user("hello")], user_id=ANN)
        async with asking(dsn, None, "service_role") as connection:
            with pytest.raises(asyncpg.RaiseError, match="stay as they are"):
                await connection.execute("DELETE FROM chat_message_history")


async def whole(dsn: str, table: str) -> list[Any]:
    connection = await connect(dsn)
    try:
        return await connection.fetch(f"SELECT * FROM {table} ORDER BY created_at")
    finally:
        await connection.close()


class TestMaking:
    async def test_empty_database_gets_all_by_hand(self, empty_postgres_dsn: str) -> None:
        await run(empty_postgres_dsn, AUTH, whole_script(None))
        database = PostgresDatabase(empty_postgres_dsn, QUERIES)
        await database.open()
        await database.close()
        assert await whole(empty_postgres_dsn, "chat_message_history") == []

    async def test_used_database_shows_what_both_sides_had(self, dsn: str) -> None:
        store = postgres_store(dsn)
        await store.open()
        await store.database.write(active_rows.get_or_create_active, ANN, "a", "s1", now=1)
        await store.database.write(note_rows.put_notes, Notes(user_id=ANN, agent_name="a", version=1, text="ours"))
        await run(
            dsn,
            "CREATE TABLE agent_long_term_memory (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, "
            "agent_name text, notes text, created_at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now(), "
            "UNIQUE (user_id, agent_name))",
            f"INSERT INTO agent_long_term_memory (user_id, agent_name, notes) VALUES ('{BOB}', 'a', 'theirs')",
        )
        for _ in range(2):  # the second time changes nothing
            await store.database.write(make_supabase_tables)
            assert [row["active_session_id"] for row in await whole(dsn, "user_agent_active_sessions")] == ["s1"]
            assert {row["notes"] for row in await whole(dsn, "agent_long_term_memory")} == {"ours", "theirs"}
            notes = await store.database.read(note_rows.read_notes, BOB, "a")
            assert (notes.version, notes.text) == (1, "theirs")
        await store.close()

    async def test_user_who_leaves_takes_their_rows_along(self, store: SqlStore, dsn: str) -> None:
        await store.database.write(active_rows.get_or_create_active, ANN, "a", "s1", now=1)
        await store.database.write(note_rows.put_notes, Notes(user_id=ANN, agent_name="a", version=1, text="x"))
        await run(dsn, f"DELETE FROM auth.users WHERE id = '{ANN}'")
        for table in SHOWN[:2]:
            assert await whole(dsn, table) == []
        assert (await store.database.read(note_rows.read_notes, ANN, "a")).text == ""

    async def test_table_in_the_place_of_the_view_is_named(self, dsn: str) -> None:
        await run(dsn, "CREATE TABLE chat_message_history (id serial)")
        with pytest.raises(asyncpg.RaiseError, match="rename it, run this, and import it"):
            await run(dsn, whole_script("0001"))

    async def test_database_without_auth_is_refused(self, postgres_dsn: str) -> None:
        with pytest.raises(asyncpg.RaiseError, match="is not one of Supabase"):
            await run(postgres_dsn, whole_script("0001"))
