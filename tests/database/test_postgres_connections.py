"""Whoever leaves early, or is late, leaves no connection behind on the server."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import anyio
import asyncpg
import pytest

from reactor_memory.database.deadlines import within
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.errors import StoreError, StoreUnavailableError
from reactor_memory.testing import append_messages, numbered
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.stores import SqlStore

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

POOL = 4
CALLERS = 12
LEAVING = 500

_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reactor-memory' AND datname = current_database()
"""


@pytest.fixture
async def loud_loop(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """Whatever the event loop complains about fails the test."""
    complaints: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    with caplog.at_level(logging.WARNING, logger="asyncio"):
        yield
        gc.collect()
        await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert complaints == []
    assert [record for record in caplog.records if record.name == "asyncio"] == []


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[SqlStore]:
    store = SqlStore(PostgresDatabase(postgres_dsn, QUERIES, pool_size=POOL, timeout_seconds=30))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def observer(postgres_dsn: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()


@asynccontextmanager
async def locked(dsn: str) -> AsyncGenerator[None]:
    connection = await asyncpg.connect(dsn)
    await connection.execute("BEGIN; LOCK TABLE messages, conversations IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        await connection.close()


Call = Callable[[], Awaitable[Any]]


async def cancelled_soon(call: Call, seconds: float) -> None:
    task = asyncio.ensure_future(call())
    await asyncio.sleep(seconds)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def within_asyncio(call: Call, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await call()


async def within_anyio(call: Call, seconds: float) -> None:
    with anyio.move_on_after(seconds) as scope:
        await call()
    assert scope.cancelled_caught


async def late(call: Call, seconds: float) -> None:
    with pytest.raises(StoreUnavailableError), within(seconds):
        await call()


WAYS_TO_LEAVE = (cancelled_soon, within_asyncio, within_anyio, late)


@pytest.mark.usefixtures("loud_loop")
@pytest.mark.slow
async def test_500_who_leave_leave_no_connection(store: SqlStore, postgres_dsn: str, observer: Any) -> None:
    await append_messages(store, "s", numbered(2))
    most = 0
    numbers = iter(range(LEAVING))
    spread = random.Random(1)

    async def leave_again_and_again() -> None:
        for number in numbers:
            leave = WAYS_TO_LEAVE[number % len(WAYS_TO_LEAVE)]
            calls: tuple[Call, ...] = (
                lambda: store.read("s", None),
                lambda number=number: append_messages(store, f"s{number}", numbered(1)),
                lambda: store.delete("s", None, now=0, purge=True),
            )
            await leave(calls[number % len(calls)], spread.uniform(0.0, 0.2))

    async with locked(postgres_dsn):
        leaving = asyncio.gather(*(leave_again_and_again() for _ in range(CALLERS)))
        while not leaving.done():
            most = max(most, await observer.fetchval(_CONNECTIONS))
            await asyncio.sleep(0.02)
        await leaving
    # a backend that was let go may need a moment to end, while its successor begins
    assert most <= 2 * POOL
    await settled(lambda: observer.fetchval(_CONNECTIONS), POOL)
    assert len(await store.read("s", None)) == 2
    assert (await append_messages(store, "s", numbered(1))).first_seq == 3


async def settled(ask: Callable[[], Awaitable[int]], most: int) -> None:
    ends = monotonic() + 10
    while await ask() > most:
        assert monotonic() < ends
        await asyncio.sleep(0.05)


@pytest.mark.usefixtures("loud_loop")
async def test_closing_leaves_nothing(postgres_dsn: str, observer: Any) -> None:
    store = SqlStore(PostgresDatabase(postgres_dsn, QUERIES, pool_size=POOL, timeout_seconds=0.5))
    await store.open()
    async with locked(postgres_dsn):
        late = [asyncio.create_task(store.read("s", None)) for _ in range(CALLERS)]
        await asyncio.sleep(0.1)
        await store.close()
        answers = await asyncio.gather(*late, return_exceptions=True)
    assert all(isinstance(answer, StoreError) for answer in answers)
    await settled(lambda: observer.fetchval(_CONNECTIONS), 0)


@pytest.mark.usefixtures("loud_loop")
async def test_closing_cut_off_throws_away_what_is_in_use(store: SqlStore, postgres_dsn: str, observer: Any) -> None:
    """A call may have a later deadline than the end of the store."""
    async with locked(postgres_dsn):
        with within(60):
            patient = asyncio.create_task(store.read("s", None))
        await asyncio.sleep(0.2)
        with within(0.2):
            await store.close()
        with pytest.raises(StoreError):
            await patient
    await settled(lambda: observer.fetchval(_CONNECTIONS), 0)


async def test_the_server_itself_ends_what_takes_too_long(postgres_dsn: str) -> None:
    database = PostgresDatabase(postgres_dsn, QUERIES, pool_size=1, timeout_seconds=0.3)
    await database.open()
    assert database._pool is not None
    with pytest.raises(asyncpg.QueryCanceledError):
        await database._pool.run(lambda connection: connection.execute("SELECT pg_sleep(20)"))
    async with locked(postgres_dsn):
        with pytest.raises((asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)):
            await database._pool.run(lambda connection: connection.fetch("SELECT * FROM messages"))
    shown = await database._pool.run(lambda connection: connection.fetchval("SHOW lock_timeout"))
    assert shown == "300ms"
    await database.close()


async def test_call_with_more_time_gets_it_from_the_server_too(store: SqlStore) -> None:
    limits: list[str] = []

    async def note(connection: Any) -> None:
        limits.append(await connection.fetchval("SHOW statement_timeout"))

    database = store.database
    assert isinstance(database, PostgresDatabase)
    with within(600):
        await database._once(note, monotonic() + 600)
    await database._once(note, monotonic() + 10)
    assert limits[0] in ("10min", "599s", "599999ms")
    assert limits[1] == "30s"


async def test_a_longer_call_that_fails_leaves_no_longer_limits(store: SqlStore) -> None:
    database = store.database
    assert isinstance(database, PostgresDatabase)

    async def fail(connection: Any) -> None:
        await connection.fetchval("SELECT 1 / 0")

    async def shown(connection: Any) -> str:
        return await connection.fetchval("SHOW statement_timeout")

    for _ in range(8):
        with pytest.raises(asyncpg.DivisionByZeroError):
            await database._once(fail, monotonic() + 600)
    assert {await database._once(shown, monotonic() + 10) for _ in range(8)} == {"30s"}


@asynccontextmanager
async def by_tcp(dsn: str) -> AsyncGenerator[str]:
    """The address over TCP of a server that listens on a socket in a folder: a driver first asks there for TLS."""
    parts = urlsplit(dsn)
    (folder,) = parse_qs(parts.query).get("host", [""])
    if not folder.startswith("/"):
        yield dsn
        return

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        await asyncio.gather(copy(reader, to_server), copy(from_server, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = parts.netloc.partition("@")[0]
    async with server:
        yield urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}", query=""))


@pytest.mark.slow
@pytest.mark.usefixtures("loud_loop")
async def test_300_cancelled_openings_leave_no_error_unheard(postgres_dsn: str, observer: Any) -> None:
    spread = random.Random(2)
    async with by_tcp(postgres_dsn) as dsn:
        for _ in range(300):
            database = PostgresDatabase(dsn, QUERIES, pool_size=2, timeout_seconds=30)
            opening = asyncio.create_task(database.open())
            for _ in range(spread.randrange(40)):
                await asyncio.sleep(0 if spread.random() < 0.9 else 0.0005)
            opening.cancel()
            with suppress(asyncio.CancelledError):
                await opening
            await database.close()
        await nobody_connected(observer)


@pytest.mark.slow
@pytest.mark.usefixtures("loud_loop")
async def test_300_cancelled_first_calls_leave_no_error_unheard(postgres_dsn: str, observer: Any) -> None:
    spread = random.Random(3)
    async with by_tcp(postgres_dsn) as dsn:
        for number in range(100):
            store = SqlStore(PostgresDatabase(dsn, QUERIES, pool_size=POOL, timeout_seconds=30))
            await store.open()
            calls = [
                asyncio.create_task(append_messages(store, f"s{number}", numbered(1))),
                asyncio.create_task(store.read("s", None)),
                asyncio.create_task(store.list_sessions(None, limit=5, cursor=None)),
            ]
            for call in calls:
                for _ in range(spread.randrange(20)):
                    await asyncio.sleep(0 if spread.random() < 0.9 else 0.0005)
                call.cancel()
            await asyncio.wait(calls)
            await store.close()
        await nobody_connected(observer)


async def nobody_connected(observer: Any) -> None:
    with anyio.fail_after(30):
        while await observer.fetchval(_CONNECTIONS):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
