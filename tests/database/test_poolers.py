"""Behind PgBouncer in transaction mode everything works, and nothing of ours reaches its other clients."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from reactor_memory import Message, Settings, open_memory
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.database.postgres_poolers import SERVICE
from reactor_memory.errors import SessionDeletedError, SessionNotFoundError
from reactor_memory.models.requests import AppendRequest, ContextQuery
from reactor_memory.testing import stored_form
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.stores import SqlStore

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.skipif(PROGRAM is None, reason="there is no pgbouncer (apt-get install pgbouncer)"),
]

CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
ignore_startup_parameters = {ignored}
unix_socket_dir =
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
{more}
"""

MODES = {
    "by transaction": ("transaction", "extra_float_digits"),
    "that ignores settings": ("transaction", f"extra_float_digits,statement_timeout,lock_timeout,{SERVICE}"),
    "by session": ("session", "extra_float_digits"),
}


@contextmanager
def pooled(dsn: str, folder: Path, mode: str, ignored: str, *, size: int = 4, more: str = "") -> Iterator[str]:
    """The address of the database behind PgBouncer, which refuses to run as root."""
    parts = urlsplit(dsn)
    host = parse_qs(parts.query).get("host", [parts.hostname or "localhost"])[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = free.getsockname()[1]
    user = parts.username or "postgres"
    given = CONFIG.format(
        host=host,
        port=parts.port or 5432,
        user=user,
        listen=listen,
        mode=mode,
        ignored=ignored,
        folder=folder,
        more=more,
        size=size if mode == "transaction" else 30,
    )
    (folder / "pgbouncer.ini").write_text(given)
    owner = Path(host).stat().st_uid if host.startswith("/") else os.getuid()
    command, options = [str(PROGRAM), "-q", str(folder / "pgbouncer.ini")], dict[str, Any]()
    if os.getuid() == 0:
        owner = owner or 65534
        for path in (folder, folder / "pgbouncer.ini"):
            os.chown(path, owner, -1)
        options = {"user": owner}
        for above in folder.parents:
            if above.stat().st_uid == 0 and above.stat().st_mode & 0o001 == 0:
                above.chmod(above.stat().st_mode | 0o011)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **options) as process:
        try:
            for _ in range(200):
                with socket.socket() as trial:
                    if trial.connect_ex(("127.0.0.1", listen)) == 0:
                        break
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
            yield f"postgresql://{user}@127.0.0.1:{listen}{parts.path}"
        finally:
            process.terminate()


@pytest.fixture(params=MODES)
def pooler(request: pytest.FixtureRequest, postgres_dsn: str, tmp_path: Path) -> Iterator[str]:
    mode, ignored = MODES[request.param]
    with pooled(postgres_dsn, tmp_path, mode, ignored) as dsn:
        yield dsn


@pytest.fixture
async def other(pooler: str) -> AsyncIterator[Any]:
    """Another client of the same pool."""
    connection = await asyncpg.connect(pooler, statement_cache_size=0)
    yield connection
    await connection.close()


async def test_240_of_240_operations_work(pooler: str, other: Any) -> None:
    async with open_memory(Settings(store={"url": pooler, "pool_size": 6, "timeout_seconds": 60})) as memory:

        async def turns(number: int) -> None:
            session = f"s{number % 20}"
            await memory.save_history(session, [f"My order number is {number}.", Message.assistant("Noted.")])
            context = await memory.load_history(session, message="What is my order number?")
            assert context.messages
            await memory.recall(session, "order number")
            await memory.pins.add(session, seq=1)

        await asyncio.gather(*map(turns, range(60)))
        await memory.drain()
        seen = {
            await other.fetchval(f"SHOW {name}") for _ in range(20) for name in ("statement_timeout", "lock_timeout")
        }
        assert seen == {"0"}
        assert await other.fetchval("SELECT count(*) FROM messages") == 120


async def test_two_processes_share_a_pool(pooler: str) -> None:
    """Their drivers give statements the same names."""
    stores = [SqlStore(PostgresDatabase(pooler, QUERIES, pool_size=3, timeout_seconds=60)) for _ in range(3)]
    for store in stores:
        await store.open()
    reads = [store.read(f"s{number}", None) for number in range(30) for store in stores]
    lists = [store.list_sessions(None, limit=5, cursor=None) for _ in range(30) for store in stores]
    await asyncio.gather(*reads, *lists)
    for store in stores:
        await store.close()


async def nowhere(connection: Any) -> bool:
    """What shows a pooler at the opening, for one that is put between later."""
    return False


@pytest.fixture
def hidden(postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a pooler of two backends that nothing but a lost statement shows."""
    monkeypatch.setattr("reactor_memory.database.postgres.is_pooled", nowhere)
    with pooled(postgres_dsn, tmp_path, *MODES["that ignores settings"], size=2) as dsn:
        yield dsn


class Holders:
    """Two clients of a pool of two backends: who else comes gets the backend that is not held."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = first, second

    async def leave_one(self) -> None:
        await self._first.execute("BEGIN; SELECT 1")

    async def leave_the_other(self) -> None:
        await self._second.execute("BEGIN; SELECT 1")
        await self._first.execute("COMMIT")

    async def leave_both(self) -> None:
        await self._second.execute("COMMIT")


@pytest.fixture
async def holders(hidden: str) -> AsyncIterator[Holders]:
    connections = [await asyncpg.connect(hidden, statement_cache_size=0) for _ in range(2)]
    yield Holders(*connections)
    for connection in connections:
        await connection.close()


def said(words: str) -> AppendRequest:
    return AppendRequest(session_id="s", user_id=None, messages=(stored_form(Message.user(words), now=1),), now=1)


CALLS: dict[str, Callable[[SqlStore], Awaitable[Any]]] = {
    "reads": lambda store: store.list_sessions(None, limit=5, cursor=None),
    "loads": lambda store: store.read_context(ContextQuery(session_id="s", user_id=None, last_count=5)),
    "appends": lambda store: store.append(said("x")),
    "writes": lambda store: store.delete("s", None, now=1, purge=False),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_statement_lost_on_the_way_costs_no_call(hidden: str, holders: Holders, call: str) -> None:
    database = PostgresDatabase(hidden, QUERIES, pool_size=1, timeout_seconds=60)
    store = SqlStore(database)
    await holders.leave_one()
    await store.open()
    await store.append(said("kept"))
    with suppress(SessionNotFoundError, SessionDeletedError):
        await CALLS[call](store)
    assert database._statement_cache_size, "the pooler lost nothing yet"
    await holders.leave_the_other()
    with suppress(SessionNotFoundError, SessionDeletedError):
        await CALLS[call](store)
    assert not database._statement_cache_size
    await holders.leave_both()
    await store.list_sessions(None, limit=5, cursor=None)
    await store.close()


async def test_a_name_that_another_process_took_costs_no_call(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes number their statements alike."""
    databases = [PostgresDatabase(hidden, QUERIES, pool_size=1, timeout_seconds=60) for _ in range(2)]
    first, second = map(SqlStore, databases)
    begun = asyncpg.connection._uid
    await first.open()
    await first.append(said("x"))
    monkeypatch.setattr(asyncpg.connection, "_uid", begun)
    await second.open()
    await second.append(said("y"))
    assert len(await second.read("s", None)) == 2
    assert not databases[1]._statement_cache_size
    for store in (first, second):
        await store.close()


async def test_a_pooler_that_is_put_between_later_costs_no_call(hidden: str) -> None:
    databases = [PostgresDatabase(hidden, QUERIES, pool_size=4, timeout_seconds=60) for _ in range(3)]
    stores = list(map(SqlStore, databases))
    for store in stores:
        await store.open()
    for _ in range(4):
        await asyncio.gather(*(store.list_sessions(None, limit=5, cursor=None) for store in stores * 10))
    for store in stores:
        await store.close()
