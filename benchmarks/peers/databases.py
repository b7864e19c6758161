"""PostgreSQL: a server for a run, and a database for each contender. Durability is what PostgreSQL has by default."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from reactor_memory.evaluation.bench.servers import started_postgres

_driver: Any = asyncpg
"""It has no types."""


@contextmanager
def server(address: str) -> Generator[str]:
    """The server at `address`, or one out of a wheel in a temporary folder."""
    if address:
        yield address
        return
    with started_postgres() as embedded:
        yield embedded.get_uri()


@asynccontextmanager
async def databases(address: str, names: Sequence[str]) -> AsyncGenerator[list[str]]:
    """Addresses of empty databases, which are dropped afterwards."""
    await _execute(address, *(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in names))
    await _execute(address, *(f"CREATE DATABASE {name}" for name in names))
    try:
        yield [urlunsplit(urlsplit(address)._replace(path=f"/{name}")) for name in names]
    finally:
        await _execute(address, *(f"DROP DATABASE {name} WITH (FORCE)" for name in names))


async def vacuum(address: str) -> None:
    """What the server would do by itself in a while, and better not during a measurement."""
    await _execute(address, "VACUUM ANALYZE")


async def version(address: str) -> str:
    connection = await _driver.connect(address)
    try:
        return str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


async def _execute(address: str, *statements: str) -> None:
    connection = await _driver.connect(address)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
