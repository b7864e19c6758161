"""A PostgreSQL server for the tests: the one of `TEST_POSTGRES_URL`, else one from a wheel in a temporary folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from reactor_memory.database.schema import REVISION_TABLE, newest_revision
from reactor_memory.evaluation.bench.servers import started_postgres
from tests.scenes.stores import postgres_store

_SCHEMA = """
SELECT md5(string_agg(format('%s %s %s %s', relation.relname, attname, atttypid, attnum), ',' ORDER BY relname, attnum))
FROM pg_attribute JOIN pg_class AS relation ON relation.oid = attrelid
WHERE relation.relnamespace = 'public'::regnamespace OR relation.relname = 'pg_dist_partition'
"""
_TABLES = f"""
SELECT relname FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
  AND relname <> '{REVISION_TABLE}' ORDER BY relname
"""
_EMPTYING = {
    "application_name": "tests",
    "lock_timeout": "2s",
    "session_replication_role": "replica",  # so that the order of the tables does not matter
}


class PostgresServer:
    """Lends databases: empty ones, and migrated ones, which are copies of a template that is migrated once.

    A migrated one that comes back with its schema is emptied and lent again, through a connection that stays open: a
    thirtieth of the processor time of a copy. `prepare`: what is done to the template when it is migrated.
    """

    def __init__(self, admin_dsn: str, prepare: Callable[[str], Coroutine[Any, Any, None]] | None = None) -> None:
        self.admin_dsn = admin_dsn
        self._prepare = prepare
        self._prefix = f"test_{uuid4().hex[:12]}"
        self._numbers = count()
        self._template: str | None = None
        self._schema = ""
        self._tables: list[str] = []
        self._returned: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._emptying: dict[str, asyncpg.Connection] = {}

    @contextmanager
    def database(self, *, migrated: bool) -> Iterator[str]:
        """The address of a database without any rows."""
        name = self._returned.pop() if migrated and self._returned else self._made(migrated=migrated)
        try:
            yield self._dsn(name)
        finally:
            if migrated and self._loop.run_until_complete(self._emptied(name)):
                self._returned.append(name)
            else:
                self._drop(name)

    def _made(self, *, migrated: bool) -> str:
        name = f"{self._prefix}_{next(self._numbers)}"
        # Copying files is twice as fast as writing them through the log of the server.
        source = f" TEMPLATE {self._migrated_template()} STRATEGY = file_copy" if migrated else ""
        execute(self.admin_dsn, f"CREATE DATABASE {name}{source}")
        return name

    async def _emptied(self, name: str) -> bool:
        """Whether the database has the schema that it was lent with, and no rows any more."""
        for _ in range(2):  # the connection may have been broken by a test
            try:
                connection = self._emptying.get(name)
                if connection is None or connection.is_closed():
                    connection = await asyncpg.connect(self._dsn(name), server_settings=_EMPTYING)
                    self._emptying[name] = connection
                return await self._is_emptied(connection)
            except (asyncpg.ConnectionDoesNotExistError, asyncpg.AdminShutdownError, asyncpg.InterfaceError):
                continue
            except (asyncpg.PostgresError, OSError):
                return False
        return False

    async def _is_emptied(self, connection: asyncpg.Connection) -> bool:
        version = await connection.fetchval(f"SELECT version_num FROM {REVISION_TABLE}")
        if version != newest_revision() or await connection.fetchval(_SCHEMA) != self._schema:
            return False
        async with connection.transaction():
            # Waits for whoever still writes
            await connection.execute(f"LOCK TABLE {', '.join(self._tables)} IN EXCLUSIVE MODE")
            filled = await connection.fetchrow(
                "SELECT " + ", ".join(f"EXISTS (SELECT FROM {table})" for table in self._tables)
            )
            for table in (name for name, is_filled in zip(self._tables, filled, strict=True) if is_filled):
                await connection.execute(f"DELETE FROM {table}")  # in a tenth of the time of TRUNCATE: rows are few
        return True

    def _drop(self, name: str) -> None:
        execute(self.admin_dsn, f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def ordinary_role(self, dsn: str) -> Iterator[str]:
        """The address of the database for a role that may read and write its tables, and no more."""
        role = f"{self._prefix}_role_{next(self._numbers)}"
        execute(
            dsn,
            f"CREATE ROLE {role} LOGIN PASSWORD '{role}' NOSUPERUSER NOBYPASSRLS",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
        )
        parts = urlsplit(dsn)
        try:
            yield urlunsplit(parts._replace(netloc=f"{role}:{role}@{parts.netloc.rpartition('@')[2]}"))
        finally:
            execute(dsn, f"REASSIGN OWNED BY {role} TO CURRENT_USER", f"DROP OWNED BY {role}", f"DROP ROLE {role}")

    def _migrated_template(self) -> str:
        if self._template is None:
            self._template = f"{self._prefix}_template"
            execute(self.admin_dsn, f"CREATE DATABASE {self._template}")
            dsn = self._dsn(self._template)
            asyncio.run(_migrate(dsn))
            if self._prepare is not None:
                asyncio.run(self._prepare(dsn))
            self._schema, self._tables = asyncio.run(_schema_of(dsn))
        return self._template

    def _dsn(self, name: str) -> str:
        return urlunsplit(urlsplit(self.admin_dsn)._replace(path=f"/{name}"))

    def drop_all(self) -> None:
        for connection in self._emptying.values():
            connection.terminate()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
        for name in (*self._returned, *filter(None, [self._template])):
            self._drop(name)


def execute(dsn: str, *statements: str) -> None:
    asyncio.run(_execute(dsn, statements))


async def _execute(dsn: str, statements: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _migrate(dsn: str) -> None:
    store = postgres_store(dsn, auto_migrate=True)
    await store.open()
    await store.close()


async def _schema_of(dsn: str) -> tuple[str, list[str]]:
    """Identifies the schema, and names its tables."""
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(_SCHEMA), [row["relname"] for row in await connection.fetch(_TABLES)]
    finally:
        await connection.close()


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    with _admin_dsn() as dsn:
        server = PostgresServer(dsn)
        yield server
        server.drop_all()


@contextmanager
def _admin_dsn() -> Iterator[str]:
    given = os.environ.get("TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with started_postgres() as embedded:
        dsn = embedded.get_uri()
        # The data is thrown away, so nothing need survive a crash
        execute(
            dsn, "ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()"
        )
        yield dsn
