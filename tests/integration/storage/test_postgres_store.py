"""What only the PostgreSQL store promises: its statements under races, its pool, its retries."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from reactor_memory.errors import (
    ConfigurationError,
    SessionNotFoundError,
    SessionOwnershipError,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)
from reactor_memory.models import Message
from reactor_memory.protocols import SUMMARIZE, AppendRequest, ContextQuery
from reactor_memory.storage.postgres import PostgresStore
from reactor_memory.storage.postgres_pool import PostgresPool
from reactor_memory.testing import append_messages, numbered, wall_clock

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_dsn, pool_size=6)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def others(postgres_dsn: str) -> AsyncIterator[Sequence[PostgresStore]]:
    """The stores of four other processes."""
    stores = [PostgresStore(postgres_dsn, pool_size=1) for _ in range(4)]
    for store in stores:
        await store.open()
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
async def operator(postgres_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of somebody else."""
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()


async def break_connections(operator: asyncpg.Connection) -> None:
    await operator.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def held_up(operator: asyncpg.Connection, number: int) -> None:
    """Wait until so many connections wait for a lock."""
    waiting = """SELECT COUNT(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"""
    async with asyncio.timeout(10):
        while await operator.fetchval(waiting) < number:
            await operator.execute("SELECT pg_stat_clear_snapshot()")


class TestRaces:
    async def test_the_same_key_from_many_at_once(
        self, store: PostgresStore, others: Sequence[PostgresStore], operator: asyncpg.Connection
    ) -> None:
        """All of them look for the key in vain: a lock on the session lets none store it before that."""
        await append_messages(store, "s", numbered(1))
        async with operator.transaction():
            await operator.execute("SELECT 1 FROM conversations FOR UPDATE")
            saves = [
                asyncio.create_task(append_messages(each, "s", numbered(2), idempotency_key="k"))
                for each in (store, *others)
            ]
            await held_up(operator, len(saves))
        answers = [(appended.first_seq, appended.last_seq) for appended in await asyncio.gather(*saves)]
        assert answers == [(2, 3)] * 5
        assert [message.seq for message in await store.read("s", None)] == [1, 2, 3]

    async def test_the_first_save_of_two_users(self, store: PostgresStore) -> None:
        results = await asyncio.gather(
            *(append_messages(store, "s", numbered(1), user_id=f"user {number}") for number in range(6)),
            return_exceptions=True,
        )
        assert sum(not isinstance(result, SessionOwnershipError) for result in results) == 1
        assert (await store.check()).problems == ()

    async def test_a_delete_against_forks_leaves_no_living_fork(self, store: PostgresStore) -> None:
        await append_messages(store, "s", numbered(4))
        forks = [store.fork("s", None, at_seq=3, fork_id=f"s~{number}", now=1) for number in range(8)]
        await asyncio.gather(*forks[:4], store.delete("s", None, now=2, purge=True), *forks[4:], return_exceptions=True)
        assert (await store.list_sessions(None)).sessions == ()

    async def test_an_append_against_a_withdrawal_keeps_the_numbers(self, store: PostgresStore) -> None:
        await append_messages(store, "s", numbered(2))
        for number in range(10):
            await asyncio.gather(
                append_messages(store, "s", numbered(2), idempotency_key=f"k{number}"),
                store.withdraw("s", None, seq=None, now=1, refold=lambda _: pytest.fail("nothing is covered")),
            )
        session = await store.get_session("s", None)
        assert session is not None
        assert session.last_seq == 22
        assert len(await store.read("s", None)) == 12
        assert (await store.check()).problems == ()


class TestBrokenConnections:
    async def test_loads_and_keyed_saves_go_on(self, store: PostgresStore, operator: asyncpg.Connection) -> None:
        await append_messages(store, "s", numbered(2), idempotency_key="k1")
        await break_connections(operator)
        assert len((await store.read_context(ContextQuery(session_id="s", user_id=None, last_count=9))).messages) == 2
        await break_connections(operator)
        assert (await append_messages(store, "s", numbered(2), idempotency_key="k2")).first_seq == 3

    async def test_under_load_nothing_is_stored_twice(self, store: PostgresStore, operator: asyncpg.Connection) -> None:
        async def save(number: int) -> None:
            await append_messages(store, "s", numbered(2), idempotency_key=f"k{number}")

        saves = [asyncio.create_task(save(number)) for number in range(60)]
        await break_connections(operator)
        await asyncio.wait(saves)
        failed = [number for number, each in enumerate(saves) if each.exception() is not None]
        assert all(isinstance(saves[number].exception(), StoreUnavailableError) for number in failed)
        await asyncio.gather(*(save(number) for number in failed))
        assert [message.seq for message in await store.read("s", None)] == list(range(1, 121))

    async def test_without_a_key_an_unknown_outcome_is_said(
        self, store: PostgresStore, operator: asyncpg.Connection
    ) -> None:
        await append_messages(store, "s", numbered(1))
        await operator.execute("BEGIN; LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        save = asyncio.create_task(append_messages(store, "s", numbered(1)))
        while not await operator.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await break_connections(operator)
        with pytest.raises(StoreUnavailableError):
            await save
        await operator.execute("ROLLBACK")


class TestPool:
    async def test_a_storm_of_cancellations(self, store: PostgresStore, operator: asyncpg.Connection) -> None:
        dice = random.Random(7)
        for wave in range(15):
            tasks = [
                asyncio.create_task(append_messages(store, f"s{number}", numbered(2), idempotency_key=f"{wave}"))
                for number in range(6)
            ]
            tasks.append(asyncio.create_task(store.list_sessions(None)))
            for task in tasks:
                if dice.random() < 0.5:
                    await asyncio.sleep(dice.random() / 300)
                    task.cancel()
            await asyncio.wait(tasks)
        assert len((await store.list_sessions(None)).sessions) <= 6
        assert (await store.check()).problems == ()
        stuck = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        assert await operator.fetchval(stuck) == 0

    async def test_at_most_as_many_connections_as_allowed(
        self, store: PostgresStore, operator: asyncpg.Connection
    ) -> None:
        await asyncio.gather(*(append_messages(store, f"s{number}", numbered(1)) for number in range(40)))
        assert await operator.fetchval(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'reactor-memory'"
        ) in range(1, 7)

    async def test_one_that_is_left_inside_a_transaction_is_thrown_away(self, postgres_dsn: str) -> None:
        pool = PostgresPool(lambda: asyncpg.connect(postgres_dsn), 1)

        async def begin(connection: asyncpg.Connection) -> asyncpg.Connection:
            await connection.execute("BEGIN")
            return connection

        async def look(connection: asyncpg.Connection) -> asyncpg.Connection:
            assert not connection.is_in_transaction()
            return connection

        assert await pool.run(begin) is not await pool.run(look)
        assert await pool.run(look) is await pool.run(look)
        await pool.close()

    async def test_a_statement_cache_of_zero(self, postgres_dsn: str) -> None:
        store = PostgresStore(postgres_dsn, statement_cache_size=0)
        await store.open()
        await append_messages(store, "s", numbered(2))
        assert len(await store.read("s", None)) == 2
        await store.close()

    async def test_closed_in_another_task_and_twice(self, postgres_dsn: str) -> None:
        store = PostgresStore(postgres_dsn)
        await store.close()
        await asyncio.create_task(store.open())
        await asyncio.create_task(store.close())
        await store.close()
        with pytest.raises(StoreClosedError):
            await store.get_session("s", None)


class TestLeases:
    async def test_the_clock_of_the_database_counts(self, store: PostgresStore) -> None:
        await append_messages(store, "s", numbered(1))
        first = await store.claim("s", SUMMARIZE, now=1, lease_microseconds=60_000_000)
        assert first is not None
        assert first.lease_until > wall_clock()
        assert await store.claim("s", SUMMARIZE, now=2**62, lease_microseconds=60_000_000) is None


class TestSecrets:
    """What a driver says may hold passwords and text of messages; what we say does not."""

    @pytest.mark.parametrize(
        "dsn",
        [
            "postgresql://user:canary@127.0.0.1:1/name",
            "postgresql://user:canary@[broken/name",
            "canary",
            "postgresql://user:canary@host.invalid/name?canary=1&port=canary",
        ],
    )
    async def test_the_address(self, dsn: str) -> None:
        with pytest.raises((StoreUnavailableError, ConfigurationError)) as caught:
            await PostgresStore(dsn).open()
        assert "canary" not in everything_said(caught.value)

    @pytest.mark.parametrize("text", ["canary \0", "canary \ud800"])
    async def test_the_text_of_a_message(self, store: PostgresStore, text: str) -> None:
        with pytest.raises(StoreError) as caught:
            await append_messages(store, "s", [Message.user(text)])
        assert "canary" not in everything_said(caught.value)

    async def test_a_value_of_the_wrong_kind(self, store: PostgresStore) -> None:
        wrong: Sequence[Message] = (Message.user("x", created_at="canary"),)
        request = AppendRequest(session_id="s", user_id=None, messages=tuple(wrong), now=1)
        with pytest.raises(StoreError) as caught:
            await store.append(request)
        assert "canary" not in everything_said(caught.value)

    async def test_an_unknown_fork_is_no_fault(self, store: PostgresStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await append_messages(store, "s~unknown", numbered(1))


def everything_said(error: BaseException | None) -> str:
    """What a logged traceback would show."""
    said = ""
    while error is not None:
        said += f"{error} {error!r} "
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return said
