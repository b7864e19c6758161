"""The rows of a user are out of reach for everybody else, also for SQL that forgets to ask for the user."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import asyncpg
import pytest

from reactor_memory.models import Notes
from reactor_memory.storage.postgres import PostgresStore
from tests.postgres_server import execute

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

TABLES = ("active_sessions", "long_term_notes")


@asynccontextmanager
async def connected(dsn: str) -> AsyncGenerator[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def named(dsn: str, user_id: str) -> AsyncGenerator[Any]:
    """A transaction that names a user, as every operation of the store does."""
    async with connected(dsn) as connection, connection.transaction():
        await connection.execute("SELECT set_config('reactor_memory.user_id', $1, true)", user_id)
        yield connection


@pytest.fixture
async def store(fenced_postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    """With a row of two users in each table, on one connection."""
    store = PostgresStore(fenced_postgres_dsn, pool_size=1)
    await store.open()
    for user_id in ("ann", "bob"):
        await store.get_or_create_active(user_id, "agent", f"of {user_id}", now=1)
        await store.put_notes(Notes(user_id=user_id, agent_name="agent", version=1, text=f"of {user_id}"))
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
            "long_term_notes": "(user_id, agent_name, version, notes, created_at) VALUES ('eve', 'agent', 1, 'x', 1)",
        }
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with named(fenced_postgres_dsn, "ann") as connection:
                await connection.execute(f"INSERT INTO {table} {columns[table]}")


class TestThePool:
    async def test_a_connection_does_not_carry_a_user_over(self, store: PostgresStore) -> None:
        """The store has one connection: what an operation named must be gone when the next one begins."""
        await store.read_notes("ann", "agent")

        async def named(connection: Any) -> list[str | None]:
            settings = ("reactor_memory.user_id", "reactor_memory.all_users")
            return [await connection.fetchval("SELECT current_setting($1, true)", each) for each in settings]

        assert not any(await store._once(named))  # pyright: ignore[reportPrivateUsage]
        await store.deactivate_active(before=0)
        assert not any(await store._once(named))  # pyright: ignore[reportPrivateUsage]

    async def test_users_who_share_a_pool_at_once_do_not_meet(self, fenced_postgres_dsn: str) -> None:
        store = PostgresStore(fenced_postgres_dsn, pool_size=3)
        await store.open()

        async def use(user_id: str) -> None:
            for number in range(1, 6):
                notes = Notes(user_id=user_id, agent_name="agent", version=number, text=user_id)
                assert await store.put_notes(notes)
                assert (await store.read_notes(user_id, "agent")).text == user_id
                assert (await store.get_or_create_active(user_id, "agent", user_id, now=1)).session_id == user_id

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(use, f"user {number}")
        await store.close()


async def test_a_superuser_is_not_bound(postgres_dsn: str, store: PostgresStore) -> None:
    """Which the documentation says: the fence needs a role of its own."""
    async with connected(postgres_dsn) as connection:
        assert await connection.fetchval("SELECT current_setting('is_superuser')") == "on"
        assert await connection.fetchval("SELECT count(*) FROM long_term_notes") == 2
