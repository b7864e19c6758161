"""Behind PgBouncer in transaction mode everything works, and nothing of ours reaches its other clients."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from reactor_memory import Message, Settings, open_memory
from reactor_memory.database.postgres import PostgresDatabase
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
"""

MODES = {
    "by transaction": ("transaction", "extra_float_digits"),
    "that ignores settings": ("transaction", "extra_float_digits,statement_timeout,lock_timeout"),
    "by session": ("session", "extra_float_digits"),
}


@contextmanager
def pooled(dsn: str, folder: Path, mode: str, ignored: str) -> Iterator[str]:
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
        size=4 if mode == "transaction" else 30,
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


async def test_a_pooler_that_is_put_between_later_costs_no_call(
    postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing showed it at the opening: a lost statement does."""
    with pooled(postgres_dsn, tmp_path, *MODES["that ignores settings"]) as dsn:

        async def nowhere(connection: Any) -> bool:
            return False

        monkeypatch.setattr("reactor_memory.database.postgres.is_pooled", nowhere)
        databases = [PostgresDatabase(dsn, QUERIES, pool_size=4, timeout_seconds=60) for _ in range(3)]
        stores = list(map(SqlStore, databases))
        for store in stores:
            await store.open()
        for _ in range(4):
            await asyncio.gather(*(store.list_sessions(None, limit=5, cursor=None) for store in stores * 10))
        for store in stores:
            await store.close()
        assert any(not database._statement_cache_size for database in databases)
