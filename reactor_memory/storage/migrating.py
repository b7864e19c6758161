"""Bringing the schema of a database up to date.

Alembic writes the SQL of the missing migrations; the drivers of the stores run it in one transaction, under a lock,
so two processes may migrate at once and a broken migration leaves nothing behind. Alembic is imported only when
something is missing.
"""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from reactor_memory.errors import SchemaError
from reactor_memory.storage.steps import Statement, Step, Steps

Dialect: TypeAlias = Literal["sqlite", "postgresql"]

REVISION_TABLE = "reactor_memory_revision"
"""Named so that an application with an Alembic history of its own can share the database."""

_PACKAGE = Path(__file__).parents[1]
_REVISION_FILE = re.compile(r"^(\d{4})_\w+\.py$")


@cache
def migrations_folder() -> Path:
    """Inside the installed package, else in the checkout."""
    for folder in (_PACKAGE / "_migrations", _PACKAGE.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise SchemaError("schema: the folder of migrations is missing; install reactor-memory again")


@cache
def newest_revision() -> str:
    """Revisions are numbered, so their file names say which is the newest."""
    names = (_REVISION_FILE.match(path.name) for path in (migrations_folder() / "versions").iterdir())
    return max(match[1] for match in names if match)


def read_revision() -> Steps[str | None]:
    """The revision of the database; None if it has no schema of ours."""
    tables = {row[0] for row in (yield Step("tables", {}))}
    if REVISION_TABLE in tables:
        rows = yield Step("revision", {})
        return rows[0][0] if rows else None
    if tables & {"conversations", "messages"}:
        raise SchemaError("schema: the database holds tables of another program; choose another one")
    return None


def is_behind(revision: str | None) -> bool:
    """Whether a database at `revision` needs migrations. `SchemaError` if it is ahead of this code."""
    if revision is not None and revision > newest_revision():
        raise SchemaError(
            f"schema: the database is at revision {revision}, this version of reactor-memory knows "
            f"{newest_revision()}; upgrade reactor-memory"
        )
    return revision != newest_revision()


def require_newest() -> Steps[None]:
    """`SchemaError` unless the schema is the one of this code."""
    revision = yield from read_revision()
    if is_behind(revision):
        found = "has no schema" if revision is None else f"is at revision {revision}"
        raise SchemaError(f"schema: the database {found}, {newest_revision()} is needed; run: reactor-memory migrate")


def upgrade(dialect: Dialect) -> Steps[None]:
    """Bring the schema up to date; of several processes that try, one does it and the others find it done."""
    yield Step("lock_schema", {})
    revision = yield from read_revision()
    if is_behind(revision):
        for text in migration_statements(dialect, revision):
            yield Statement(text)


@cache
def migration_statements(dialect: Dialect, revision: str | None) -> tuple[str, ...]:
    """The statements that bring a database from `revision` to the newest one."""
    from alembic import command
    from alembic.config import Config

    buffer = io.StringIO()
    config = Config(output_buffer=buffer)
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("dialect", dialect)
    config.set_main_option("version_table", REVISION_TABLE)
    command.upgrade(config, f"{revision or 'base'}:head", sql=True)
    return tuple(_statements(buffer.getvalue()))


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
