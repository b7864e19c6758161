"""What only the PostgreSQL store promises: its statements under races, its pool, its retries."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from reactor_memory.database.postgres_pool import PostgresPool
from reactor_memory.errors import (
    ConfigurationError,
    IdempotencyConflictError,
    OutcomeUnknownError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.requests import SUMMARIZE, Appended, AppendRequest, ContextQuery
from reactor_memory.testing import append_messages, numbered, wall_clock
from tests.scenes.stores import SqlStore, postgres_store

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[SqlStore]:
    store = postgres_store(postgres_dsn, pool_size=6)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def others(postgres_dsn: str) -> AsyncIterator[Sequence[SqlStore]]:
    """The stores of four other processes."""
    stores = [postgres_store(postgres_dsn, pool_size=1) for _ in range(4)]
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
        self, store: SqlStore, others: Sequence[SqlStore], operator: asyncpg.Connection
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

    async def test_the_first_save_of_two_users(self, store: SqlStore) -> None:
        results = await asyncio.gather(
            *(append_messages(store, "s", numbered(1), user_id=f"user {number}") for number in range(6)),
            return_exceptions=True,
        )
        assert sum(not isinstance(result, SessionOwnershipError) for result in results) == 1
        assert (await store.check()).problems == ()

    async def test_a_delete_against_forks_leaves_no_living_fork(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(4))
        forks = [store.fork("s", None, at_seq=3, fork_id=f"s~{number}", now=1) for number in range(8)]
        await asyncio.gather(*forks[:4], store.delete("s", None, now=2, purge=True), *forks[4:], return_exceptions=True)
        assert (await store.list_sessions(None)).sessions == ()

    async def test_an_append_against_a_withdrawal_keeps_the_numbers(self, store: SqlStore) -> None:
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


async def kept_waiting(operator: asyncpg.Connection, saves: Sequence[Awaitable[Appended]]) -> list[asyncio.Task[Any]]:
    """Begin `saves` together, and wait until they wait for a lock on the messages."""
    await operator.execute("BEGIN; LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
    tasks = [asyncio.ensure_future(save) for save in saves]
    await held_up(operator, 1)
    return tasks


class TestSharedCommits:
    async def test_appends_that_wait_share_a_transaction(self, store: SqlStore, operator: asyncpg.Connection) -> None:
        answers = await asyncio.gather(
            *(append_messages(store, f"s{number}", numbered(2), idempotency_key="k") for number in range(40))
        )
        assert answers == [Appended(first_seq=1, last_seq=2)] * 40
        assert await operator.fetchval("SELECT COUNT(DISTINCT xmin::text) FROM messages") == 1
        assert (await store.check()).problems == ()

    async def test_a_batch_stores_what_single_appends_store(self, store: SqlStore) -> None:
        full = [
            Message.user("x", parts=({"type": "image"},), metadata={"a": 1}, author_id="u", created_at=5),
            Message.assistant(tool_calls=[ToolCall(id="1", name="look")]),
            Message.tool("y", tool_call_id="1", name="look", visibility="agent"),
        ]
        await asyncio.gather(*(append_messages(store, session_id, full, now=7) for session_id in "ab"))
        await append_messages(store, "c", full, now=7)
        alone = [replace(message, message_id=None) for message in await store.read("c", None)]
        for session_id in "ab":
            assert [replace(message, message_id=None) for message in await store.read(session_id, None)] == alone

    async def test_one_that_is_refused_does_not_hurt_its_neighbours(self, store: SqlStore) -> None:
        await append_messages(store, "owned", numbered(1), user_id="u")
        await append_messages(store, "known", numbered(1), idempotency_key="k")
        await append_messages(store, "gone", numbered(1))
        await store.delete("gone", None, now=1, purge=False)
        results = await asyncio.gather(
            append_messages(store, "a", numbered(2)),
            append_messages(store, "owned", numbered(2), user_id="somebody else"),
            append_messages(store, "known", numbered(2), idempotency_key="k", fingerprint="other"),
            append_messages(store, "gone", numbered(2)),
            append_messages(store, "no~fork", numbered(2)),
            append_messages(store, "b", numbered(2)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [
            Appended,
            SessionOwnershipError,
            IdempotencyConflictError,
            SessionDeletedError,
            SessionNotFoundError,
            Appended,
        ]
        assert (await store.check()).problems == ()

    @pytest.mark.parametrize("text", ["canary \0", "canary \ud800"])
    async def test_one_that_the_database_refuses_fails_alone(self, store: SqlStore, text: str) -> None:
        results = await asyncio.gather(
            append_messages(store, "a", numbered(2)),
            append_messages(store, "b", [Message.user(text)]),
            append_messages(store, "c", numbered(2), idempotency_key="k"),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [Appended, StoreError, Appended]
        assert len(await store.read("a", None)) == len(await store.read("c", None)) == 2

    async def test_a_repetition_gets_its_first_answer(self, store: SqlStore) -> None:
        first = await append_messages(store, "s", numbered(2), idempotency_key="k")
        await append_messages(store, "s", numbered(2, start=3))
        again, other = await asyncio.gather(
            append_messages(store, "s", numbered(2), idempotency_key="k"), append_messages(store, "t", numbered(1))
        )
        assert again == replace(first, replayed=True)
        assert other == Appended(first_seq=1, last_seq=1)

    async def test_turns_of_one_session_follow_one_another(self, store: SqlStore) -> None:
        answers = await asyncio.gather(
            *(append_messages(store, session_id, numbered(2)) for session_id in ("s", "s", "t", "s"))
        )
        assert [appended.first_seq for appended in answers] == [1, 3, 1, 5]

    async def test_a_batch_makes_background_work_due(self, store: SqlStore) -> None:
        await asyncio.gather(
            append_messages(store, "a", numbered(4), work_every=4),
            append_messages(store, "b", numbered(3), work_every=4),
            append_messages(store, "c", numbered(4)),
            append_messages(store, "d", numbered(9), work_every=4),
        )
        assert set((await store.summaries.due([SUMMARIZE], now=wall_clock() + 1_000_000))[SUMMARIZE]) == {"a", "d"}

    async def test_one_that_left_while_it_waited_is_left_out(
        self, store: SqlStore, operator: asyncpg.Connection
    ) -> None:
        [first] = await kept_waiting(operator, [append_messages(store, "s", numbered(1))])
        second = asyncio.create_task(append_messages(store, "s", numbered(1)))
        await asyncio.sleep(0)
        second.cancel()
        await operator.execute("ROLLBACK")
        assert await first == Appended(first_seq=1, last_seq=1)
        assert (await append_messages(store, "s", numbered(1))).first_seq == 2

    async def test_one_that_left_while_it_was_written_is_stored(
        self, store: SqlStore, operator: asyncpg.Connection
    ) -> None:
        saves = await kept_waiting(operator, [append_messages(store, each, numbered(1)) for each in "ab"])
        saves[0].cancel()
        await operator.execute("ROLLBACK")
        assert await saves[1] == Appended(first_seq=1, last_seq=1)
        assert len(await store.read("a", None)) == 1

    async def test_a_lost_connection_reaches_all_that_wait(self, store: SqlStore, operator: asyncpg.Connection) -> None:
        saves = await kept_waiting(
            operator,
            [append_messages(store, f"s{number}", numbered(1)) for number in range(4)]
            + [append_messages(store, f"k{number}", numbered(1), idempotency_key="k") for number in range(4)],
        )
        await break_connections(operator)
        await held_up(operator, 1)
        await operator.execute("ROLLBACK")
        results = await asyncio.gather(*saves, return_exceptions=True)
        assert [type(result) for result in results] == [OutcomeUnknownError] * 4 + [Appended] * 4

    async def test_closing_waits_for_what_is_written(self, postgres_dsn: str, operator: asyncpg.Connection) -> None:
        store = postgres_store(postgres_dsn)
        await store.open()
        saves = await kept_waiting(operator, [append_messages(store, each, numbered(1)) for each in "ab"])
        saves.append(asyncio.create_task(append_messages(store, "a", numbered(1))))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        await operator.execute("ROLLBACK")
        await closing
        assert [task.result().last_seq for task in saves] == [1, 1, 2]

    async def test_batches_of_several_processes_do_not_lock_each_other_out(
        self, store: SqlStore, others: Sequence[SqlStore], operator: asyncpg.Connection
    ) -> None:
        sessions = [f"s{number}" for number in range(12)]
        dice = random.Random(3)
        for _ in range(8):
            await asyncio.gather(
                *(
                    append_messages(each, session_id, numbered(1))
                    for each in (store, *others)
                    for session_id in dice.sample(sessions, len(sessions))
                )
            )
        assert (await store.check()).problems == ()
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await operator.fetchval(deadlocks) == 0


class TestReadingTheWindow:
    """Until the window moves, a load reads no more than it shows."""

    QUERY = ContextQuery(
        session_id="s", user_id=None, last_count=3, trigger_message_count=4, max_messages=9, max_tokens=1000
    )

    async def seqs(self, store: SqlStore, **changes: Any) -> list[int | None]:
        return [message.seq for message in (await store.read_context(replace(self.QUERY, **changes))).messages]

    async def test_from_where_the_layout_says(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(10))
        await store.summaries.put_layout(
            "s", Layout(seq=10, window_start_seq=8), budget=self.QUERY.budget, settings_fingerprint=""
        )
        assert await self.seqs(store) == [8, 9, 10]
        assert await self.seqs(store, facts=True) == [2, 3, 4, 5, 6, 7, 8, 9, 10]
        assert await self.seqs(store, trigger_message_count=10, last_count=5) == [6, 7, 8, 9, 10]
        assert await self.seqs(store, max_messages=2) == [9, 10]

    @pytest.mark.parametrize("max_tokens", [80, 1000])
    async def test_without_a_layout_as_much_as_may_fit(self, store: SqlStore, max_tokens: int) -> None:
        await append_messages(store, "s", numbered(10))
        newest = await self.seqs(store, max_tokens=max_tokens, facts=True)
        assert await self.seqs(store, max_tokens=max_tokens) == newest
        assert newest[-1] == 10

    async def test_one_more_if_the_first_message_was_withdrawn(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(8))
        await store.withdraw("s", None, seq=8, now=1, refold=lambda _: pytest.fail("nothing is covered"))
        await append_messages(store, "s", numbered(2))
        await store.summaries.put_layout(
            "s", Layout(seq=10, window_start_seq=8), budget=self.QUERY.budget, settings_fingerprint=""
        )
        assert await self.seqs(store) == [7, 9, 10]


class TestBrokenConnections:
    async def test_loads_and_keyed_saves_go_on(self, store: SqlStore, operator: asyncpg.Connection) -> None:
        await append_messages(store, "s", numbered(2), idempotency_key="k1")
        await break_connections(operator)
        assert len((await store.read_context(ContextQuery(session_id="s", user_id=None, last_count=9))).messages) == 2
        await break_connections(operator)
        assert (await append_messages(store, "s", numbered(2), idempotency_key="k2")).first_seq == 3

    async def test_under_load_nothing_is_stored_twice(self, store: SqlStore, operator: asyncpg.Connection) -> None:
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
        self, store: SqlStore, operator: asyncpg.Connection
    ) -> None:
        await append_messages(store, "s", numbered(1))
        await operator.execute("BEGIN; LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        save = asyncio.create_task(append_messages(store, "s", numbered(1)))
        while not await operator.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await break_connections(operator)
        with pytest.raises(OutcomeUnknownError):
            await save
        await operator.execute("ROLLBACK")

    async def test_what_a_first_try_may_have_stored_stays_unknown(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The connection breaks after the statement was sent, and the server cannot be reached any more."""
        await append_messages(store, "s", numbered(1))

        async def refuses(*_: Any) -> None:
            raise ConnectionRefusedError

        async def breaks(*_: Any) -> None:
            monkeypatch.setattr(store.database, "_once", refuses)
            raise ConnectionResetError

        monkeypatch.setattr(store.database, "_run", breaks)
        with pytest.raises(OutcomeUnknownError):
            await append_messages(store, "s", numbered(1), idempotency_key="k")


class TestPool:
    async def test_a_storm_of_cancellations(self, store: SqlStore, operator: asyncpg.Connection) -> None:
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

    async def test_at_most_as_many_connections_as_allowed(self, store: SqlStore, operator: asyncpg.Connection) -> None:
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
        store = postgres_store(postgres_dsn, statement_cache_size=0)
        await store.open()
        await append_messages(store, "s", numbered(2))
        assert len(await store.read("s", None)) == 2
        await store.close()

    async def test_closed_in_another_task_and_twice(self, postgres_dsn: str) -> None:
        store = postgres_store(postgres_dsn)
        await store.close()
        await asyncio.create_task(store.open())
        await asyncio.create_task(store.close())
        await store.close()
        with pytest.raises(StoreClosedError):
            await store.get_session("s", None)


class TestLeases:
    async def test_the_clock_of_the_database_counts(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(1))
        first = await store.summaries.claim("s", SUMMARIZE, now=1, lease_microseconds=60_000_000)
        assert first is not None
        assert first.lease_until > wall_clock()
        assert await store.summaries.claim("s", SUMMARIZE, now=2**62, lease_microseconds=60_000_000) is None


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
            await postgres_store(dsn).open()
        assert "canary" not in everything_said(caught.value)

    @pytest.mark.parametrize("text", ["canary \0", "canary \ud800"])
    async def test_the_text_of_a_message(self, store: SqlStore, text: str) -> None:
        with pytest.raises(StoreError) as caught:
            await append_messages(store, "s", [Message.user(text)])
        assert "canary" not in everything_said(caught.value)

    async def test_a_value_of_the_wrong_kind(self, store: SqlStore) -> None:
        wrong: Sequence[Message] = (Message.user("x", created_at="canary"),)
        request = AppendRequest(session_id="s", user_id=None, messages=tuple(wrong), now=1)
        with pytest.raises(StoreError) as caught:
            await store.append(request)
        assert "canary" not in everything_said(caught.value)

    async def test_an_unknown_fork_is_no_fault(self, store: SqlStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await append_messages(store, "s~unknown", numbered(1))


def everything_said(error: BaseException | None) -> str:
    """What a logged traceback would show."""
    said = ""
    while error is not None:
        said += f"{error} {error!r} "
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return said
