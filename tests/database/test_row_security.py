"""The rows of a user are out of reach for everybody else, also for SQL that forgets to ask for the user."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import asyncpg
import pytest

from reactor_memory.core.validation import new_message_id
from reactor_memory.database.operations import T
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.models import (
    AuditRecord,
    ConversationsQuery,
    Membership,
    MessagesQuery,
    OwnershipTransfer,
)
from reactor_memory.models import Message
from reactor_memory.testing import append_messages
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.postgres_server import execute
from tests.scenes.stores import SqlStore, postgres_store

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

TABLES = ("active_sessions", "entries")


@asynccontextmanager
async def connected(dsn: str) -> AsyncGenerator[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


NAME_GROUPS = """
SELECT set_config('reactor_memory.group_ids', CAST(ARRAY(
    SELECT group_id FROM conversations UNION SELECT group_id FROM memberships) AS text), true)
"""
"""Those that the user who is named owns or is a member of: who names a user sees no others in these tables."""


@asynccontextmanager
async def named(dsn: str, user_id: str) -> AsyncGenerator[Any]:
    """A transaction that names a user and the groups of this user, as those of the store do."""
    async with connected(dsn) as connection, connection.transaction():
        await connection.execute("SELECT set_config('reactor_memory.user_id', $1, true)", user_id)
        await connection.execute(NAME_GROUPS)
        yield connection


@pytest.fixture
async def store(fenced_postgres_dsn: str) -> AsyncIterator[SqlStore]:
    """With a row of two users in each table, on one connection."""
    store = postgres_store(fenced_postgres_dsn, pool_size=1)
    await store.open()
    for user_id in ("ann", "bob"):
        await store.database.write(active_rows.get_or_create_active, user_id, "agent", f"of {user_id}", now=1)
        await store.database.write(
            note_rows.put_notes, Notes(user_id=user_id, agent_name="agent", version=1, text=f"of {user_id}")
        )
    yield store
    await store.close()


@pytest.fixture
def owned_postgres_dsn(postgres_dsn: str, fenced_postgres_dsn: str) -> str:
    """As the role that owns the tables, as it does when the application migrates its own database."""
    role = fenced_postgres_dsn.partition("://")[2].partition(":")[0]
    execute(postgres_dsn, *(f"ALTER TABLE {table} OWNER TO {role}" for table in TABLES))
    return fenced_postgres_dsn


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("table", TABLES)
class TestHandWrittenSql:
    async def test_sees_no_row_without_naming_a_user(self, fenced_postgres_dsn: str, table: str) -> None:
        async with connected(fenced_postgres_dsn) as connection:
            assert await connection.fetch(f"SELECT * FROM {table}") == []
            assert await connection.execute(f"DELETE FROM {table}") == "DELETE 0"

    async def test_nor_as_the_owner_of_the_tables(self, owned_postgres_dsn: str, table: str) -> None:
        async with connected(owned_postgres_dsn) as connection:
            assert await connection.fetch(f"SELECT * FROM {table}") == []

    async def test_sees_the_rows_of_the_named_user_only(self, fenced_postgres_dsn: str, table: str) -> None:
        async with named(fenced_postgres_dsn, "ann") as connection:
            assert [row["user_id"] for row in await connection.fetch(f"SELECT * FROM {table}")] == ["ann"]
            assert await connection.fetch(f"SELECT * FROM {table} WHERE user_id = 'bob'") == []

    async def test_changes_the_rows_of_the_named_user_only(self, fenced_postgres_dsn: str, table: str) -> None:
        async with named(fenced_postgres_dsn, "ann") as connection:
            assert await connection.execute(f"UPDATE {table} SET created_at = 7") == "UPDATE 1"
            assert await connection.execute(f"DELETE FROM {table} WHERE user_id = 'bob'") == "DELETE 0"
            assert await connection.execute(f"DELETE FROM {table}") == "DELETE 1"
        async with named(fenced_postgres_dsn, "bob") as connection:
            assert await connection.fetchval(f"SELECT count(*) FROM {table} WHERE created_at <> 7") == 1

    async def test_cannot_give_a_row_to_another_user(self, fenced_postgres_dsn: str, table: str) -> None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with named(fenced_postgres_dsn, "ann") as connection:
                await connection.execute(f"UPDATE {table} SET user_id = 'eve'")

    async def test_cannot_write_a_row_of_another_user(self, fenced_postgres_dsn: str, table: str) -> None:
        columns = {
            "active_sessions": "(user_id, agent_name, active_session_id, last_active_at, created_at) "
            "VALUES ('eve', 'agent', 's', 1, 1)",
            "entries": "(group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq, "
            "created_at, text) VALUES ('eve', '', 'eve', 'notes', 'agent', 1, 0, 0, 0, 1, 'x')",
        }
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with named(fenced_postgres_dsn, "ann") as connection:
                await connection.execute(f"INSERT INTO {table} {columns[table]}")


OTHERS = ("messages", "responses", "response_pieces", "memberships", "ownership_transfers")


class TestConversations:
    """Of conversations, who is named sees what they own and what is shared with them."""

    @pytest.fixture
    async def shared(self, fenced_postgres_dsn: str) -> AsyncIterator[SqlStore]:
        """Ann owns two conversations, with Bob as a reader of the first; Eve owns one. On one connection."""
        store = postgres_store(fenced_postgres_dsn, pool_size=1)
        await store.open()
        for owner, group_id, member in (("ann", "g1", "bob"), ("ann", "g2", "dan"), ("eve", "g3", "dan")):
            await append_messages(store, group_id, [Message.user(f"canary of {group_id}")], user_id=owner)
            member_row = Membership(group_id=group_id, user_id=member, access_level="reader", created_at=1)
            await store.database.write(member_operations.put_membership, member_row, audit(group_id), creating=True)
            offer = OwnershipTransfer(
                transfer_id=f"t-{group_id}", group_id=group_id, from_user_id=owner, to_user_id=member, created_at=1
            )
            await store.database.write(member_operations.offer_ownership, offer, audit(group_id))
        yield store
        await store.close()

    @pytest.mark.parametrize(
        ("who", "groups"), [("ann", ["g1", "g2"]), ("bob", ["g1"]), ("dan", ["g2", "g3"]), ("eve", ["g3"]), ("fay", [])]
    )
    @pytest.mark.usefixtures("shared")
    async def test_sql_that_forgets_to_ask_sees_no_more(
        self, fenced_postgres_dsn: str, who: str, groups: list[str]
    ) -> None:
        async with named(fenced_postgres_dsn, who) as connection:
            assert sorted(row["group_id"] for row in await connection.fetch("SELECT * FROM messages")) == groups
            offers = await connection.fetch("SELECT * FROM ownership_transfers")
            assert sorted(row["group_id"] for row in offers) == groups
            members = await connection.fetch("SELECT * FROM memberships")
            assert {row["user_id"] for row in members} <= {who}

    @pytest.mark.usefixtures("shared")
    async def test_sql_that_forgets_to_ask_changes_no_more(self, fenced_postgres_dsn: str) -> None:
        async with named(fenced_postgres_dsn, "bob") as connection:
            assert await connection.execute("UPDATE messages SET content = 'x'") == "UPDATE 1"
            assert await connection.execute("DELETE FROM messages WHERE group_id <> 'g1'") == "DELETE 0"
            assert await connection.execute("DELETE FROM memberships WHERE user_id <> 'bob'") == "DELETE 0"

    @pytest.mark.usefixtures("shared")
    @pytest.mark.parametrize("table", ["conversations", *OTHERS])
    async def test_sql_that_names_nobody_sees_nothing(self, fenced_postgres_dsn: str, table: str) -> None:
        async with connected(fenced_postgres_dsn) as connection:
            assert await connection.fetch(f"SELECT * FROM {table}") == []

    async def test_the_log_names_nobody_and_sees_all(self, shared: SqlStore) -> None:
        for group_id, owner in (("g1", "ann"), ("g2", "ann"), ("g3", "eve")):
            assert len(await shared.read(group_id, owner)) == 1

    async def test_store_sees_no_message_of_a_group_unnamed(self, shared: SqlStore) -> None:
        """Who names a user and no group, or another one, reads no message, the store included."""

        async def seen(connection: Any) -> int:
            async with connection.transaction():
                await connection.execute("SELECT set_config('reactor_memory.user_id', 'ann', true)")
                return await connection.fetchval("SELECT count(*) FROM messages")

        assert await once(shared, seen) == 0

    async def test_listing_names_the_groups_it_found(self, shared: SqlStore) -> None:
        """In the statement that reads their previews: no further round trip."""
        listed = await shared.database.read(conversations.list_conversations, ConversationsQuery(user_id="dan"))
        assert {each.preview for each in listed} == {"canary of g2", "canary of g3"}
        group = await shared.database.read(conversations.list_group, "g1", "fay")
        assert [each.preview for each in group] == [""]

    async def test_query_of_the_store_that_forgets_its_group_stays_harmless(
        self, shared: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after a slip of the pen: the statement reads whatever it may."""
        session = await shared.get_session("g1", "ann")
        assert session is not None
        query = QUERIES.postgres["visible_messages"]
        careless = query.text.replace("group_id = $1 AND conversation_id = $2", "$1 || $2 IS NOT NULL")
        assert careless != query.text
        forgotten = {**QUERIES.postgres, "visible_messages": query._replace(text=careless)}
        monkeypatch.setattr(QUERIES, "postgres", forgotten)
        seen = await shared.database.read(conversations.read_visible, MessagesQuery(session=session, user_id="bob"))
        assert [message.content for message in seen] == ["canary of g1"]
        seen = await shared.database.read(conversations.read_visible, MessagesQuery(session=session))
        assert len(seen) == 3  # so the fence it was

    async def test_a_conversation_that_is_read_for_a_user_names_them(
        self, shared: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is told of it, its preview too, is behind the fence, whatever access is checked afterwards."""
        found = await shared.database.read(conversations.get_conversation, "g1", "bob", described=True)
        assert found is not None
        assert (found.access_level, found.preview) == ("reader", "canary of g1")
        stranger = await shared.database.read(conversations.get_conversation, "g1", "fay", described=True)
        assert stranger is not None
        assert (stranger.access_level, stranger.preview) == (None, "")

    async def test_no_name_is_left_on_the_connection(self, shared: SqlStore) -> None:
        """The store has one: the next operation must not see with the eyes of the one before."""
        session = await shared.get_session("g3", "eve")
        assert session is not None
        for _ in range(2):
            await shared.database.read(conversations.list_conversations, ConversationsQuery(user_id="bob"))
            await shared.database.read(conversations.read_visible, MessagesQuery(session=session, user_id="bob"))
            assert len(await shared.read("g3", "eve")) == 1
            await shared.database.read(member_operations.list_memberships, "g1")

            async def rows(connection: Any) -> list[int]:
                return [await connection.fetchval(f"SELECT count(*) FROM {table}") for table in OTHERS]

            assert await once(shared, rows) == [3, 0, 0, 0, 0]


async def once(store: SqlStore, work: Callable[[Any], Awaitable[T]]) -> T:
    """`work` with a connection of the pool."""
    assert isinstance(store.database, PostgresDatabase)
    assert store.database._pool is not None
    return await store.database._pool.run(work)


def audit(group_id: str) -> AuditRecord:
    return AuditRecord(
        record_id=new_message_id(1),
        group_id=group_id,
        conversation_id=group_id,
        actor_id="ann",
        action="x",
        created_at=1,
    )


class TestThePool:
    async def test_a_connection_does_not_carry_a_user_over(self, store: SqlStore) -> None:
        """The store has one connection: what an operation named must be gone when the next one begins."""
        await store.database.read(note_rows.read_notes, "ann", "agent")

        async def named(connection: Any) -> list[str | None]:
            settings = ("reactor_memory.user_id", "reactor_memory.all_users")
            return [await connection.fetchval("SELECT current_setting($1, true)", each) for each in settings]

        assert not any(await once(store, named))
        await store.database.write(active_rows.deactivate_active, before=0)
        assert not any(await once(store, named))

    async def test_users_who_share_a_pool_at_once_do_not_meet(self, fenced_postgres_dsn: str) -> None:
        store = postgres_store(fenced_postgres_dsn, pool_size=3)
        await store.open()

        async def use(user_id: str) -> None:
            for number in range(1, 6):
                notes = Notes(user_id=user_id, agent_name="agent", version=number, text=user_id)
                assert await store.database.write(note_rows.put_notes, notes)
                assert (await store.database.read(note_rows.read_notes, user_id, "agent")).text == user_id
                assert (
                    await store.database.write(active_rows.get_or_create_active, user_id, "agent", user_id, now=1)
                ).session_id == user_id

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(use, f"user {number}")
        await store.close()


async def test_a_superuser_is_not_bound(postgres_dsn: str, store: SqlStore) -> None:
    """Which the documentation says: the fence needs a role of its own."""
    async with connected(postgres_dsn) as connection:
        assert await connection.fetchval("SELECT current_setting('is_superuser')") == "on"
        assert await connection.fetchval("SELECT count(*) FROM entries") == 2
