"""A store whose tables are distributed: where its rows go, and that a statement is sent for one group.

On one server, by functions that stand for those of Citus (`tests/scenes/clusters.py`).
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import asyncpg
import pytest

from reactor_memory.core.log.placement import KEYS, distribute
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.errors import ConfigurationError
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.models import ConversationsQuery
from reactor_memory.models import Message
from reactor_memory.testing import append_messages
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.clusters import PARTITIONS, make_cluster
from tests.scenes.stores import SqlStore, memory_store, postgres_store

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[SqlStore]:
    """With three sessions from before its tables were distributed."""
    await make_cluster(postgres_dsn)
    store = postgres_store(postgres_dsn, pool_size=4)
    await store.open()
    for number in range(3):
        await append_messages(store, f"s{number}", [Message.user(f"text of {number}")], user_id="ann")
    yield store
    await store.close()


class Sent:
    """What a store sends to its server."""

    def __init__(self, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.groups: list[list[str]] = []
        self.settings: list[str] = []
        assert isinstance(store.database, PostgresDatabase)
        fetch = store.database._fetch

        async def noted(connection: Any, step: Any) -> Any:
            self.names.append(getattr(step, "name", ""))
            return await fetch(_Listening(connection, self), step)

        monkeypatch.setattr(store.database, "_fetch", noted)


class _Listening:
    def __init__(self, connection: Any, sent: Sent) -> None:
        self._connection = connection
        self._sent = sent

    async def fetch(self, text: str, *values: Any) -> Any:
        self._sent.groups += [value for value in values if isinstance(value, list)]
        return await self._connection.fetch(text, *values)

    async def execute(self, text: str) -> Any:
        self._sent.settings.append(text)
        return await self._connection.execute(text)


async def test_every_table_is_placed_by_its_key(store: SqlStore, postgres_dsn: str) -> None:
    placed = dict(await distribute(store.database))
    assert placed["messages"] == placed["conversations"] == placed["memberships"] == "group_id"
    assert placed["items"] == "user_id"
    assert [placed[each] for each in ("api_keys", "reactor_memory_revision")] == [None, None]
    assert await distribute(store.database) == ()
    assert [message.content for message in await store.read("s1", "ann")] == ["text of 1"]
    connection = await asyncpg.connect(postgres_dsn)
    shards = await connection.fetch("SELECT relname, relrowsecurity FROM pg_class WHERE relkind = 'p'")
    await connection.close()
    assert all(is_secured for _, is_secured in shards)
    assert len(shards) == sum(key in KEYS for key in placed.values())


async def test_doctor_shows_the_placement(store: SqlStore) -> None:
    async def shown() -> str:
        return dict((await store.check()).details)["placement"]

    assert await shown() == "one server; Citus is there: reactor-memory migrate --distribute"
    await distribute(store.database)
    assert await shown() == (
        f"tables: 22 by group_id in {PARTITIONS} shards; 2 by user_id in {PARTITIONS} shards; "
        f"1 by principal_id in {PARTITIONS} shards; 4 copied to every node"
    )


async def test_interrupted_distribution_is_gone_on_with(store: SqlStore, postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute("SELECT create_distributed_table('conversations', 'group_id', colocate_with => 'none')")
    await connection.close()
    assert "not distributed: " in dict((await store.check()).details)["placement"]
    assert "conversations" not in dict(await distribute(store.database))
    assert "not distributed" not in dict((await store.check()).details)["placement"]


async def test_database_without_citus_is_refused(postgres_dsn: str) -> None:
    plain = postgres_store(postgres_dsn)
    for store in (plain, memory_store()):
        await store.open()
        with pytest.raises(ConfigurationError, match="CREATE EXTENSION citus"):
            await distribute(store.database)
        await store.close()


async def test_waiting_appends_are_a_statement_each(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await distribute(store.database)
    sent = Sent(store, monkeypatch)

    async def save(number: int) -> None:
        await append_messages(store, f"s{number}", [Message.user("more")], user_id="ann")

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(save, number)
    assert {*sent.names} == {"append"}
    assert [len(await store.read(f"s{number}", "ann")) for number in range(12)] == [2] * 3 + [1] * 9


async def test_several_groups_are_asked_for_alone(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ConversationsQuery(user_id="ann")
    before = await store.database.read(conversations.list_conversations, query)
    await distribute(store.database)
    sent = Sent(store, monkeypatch)
    assert await store.database.read(conversations.list_conversations, query) == before
    assert sorted(sent.groups) == [["s0"], ["s1"], ["s2"]]


@pytest.mark.parametrize("user_id", ["ann", "o'neill", "back\\slash", "E'", "'; DROP TABLE messages; --"])
async def test_who_reads_is_named_to_every_shard(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, user_id: str
) -> None:
    sent = Sent(store, monkeypatch)
    await store.database.read(conversations.list_conversations, ConversationsQuery(user_id=user_id))
    escaped = user_id.replace("\\", "\\\\").replace("'", "''")
    assert sent.settings == [f"SET LOCAL reactor_memory.user_id = E'{escaped}'"]


async def test_store_names_itself_in_every_transaction(store: SqlStore) -> None:
    assert isinstance(store.database, PostgresDatabase)
    pool = store.database._pool
    assert pool is not None

    async def told(connection: Any) -> list[str]:
        async with store.database._transaction(connection, anyio.current_time() + 9):
            names = ("citus.propagate_set_commands", "reactor_memory.service")
            return [await connection.fetchval("SELECT current_setting($1)", name) for name in names]

    assert await pool.run(told) == ["local", "yes"]


@pytest.mark.parametrize("is_partitioned", [False, True])
async def test_plans_are_kept_over_partitions_alone(store: SqlStore, postgres_dsn: str, is_partitioned: bool) -> None:
    """Otherwise each call plans anew: on the first connection of a store, and on later ones."""
    if is_partitioned:
        await distribute(store.database)
    database = PostgresDatabase(postgres_dsn, QUERIES, pool_size=2)
    await database.open()
    pool = database._pool
    assert pool is not None

    async def mode(connection: Any) -> str:
        await anyio.sleep(0.05)  # so that the other one needs a connection of its own
        return await connection.fetchval("SHOW plan_cache_mode")

    modes = await asyncio.gather(pool.run(mode), pool.run(mode))
    await database.close()
    assert modes == ["force_generic_plan" if is_partitioned else "auto"] * 2
