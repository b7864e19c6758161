"""Bringing the schema of a database up to date.

A new SQLite database gets the prepared schema, which is the newest one as text (``migrations/sqlite.sql``). For an
older one Alembic writes the SQL of the missing migrations, and the drivers run it in one transaction, under a lock: two
processes may migrate at once, and a broken migration leaves nothing behind. Alembic is imported only when something is
missing, and never while the lock is held.
"""

from __future__ import annotations

import io
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from reactor_memory.database.operations import Statement, Step, Steps
from reactor_memory.errors import SchemaError

Dialect: TypeAlias = Literal["sqlite", "postgresql"]

REVISION_TABLE = "reactor_memory_revision"
"""Named so that an application with an Alembic history of its own can share the database."""

PREPARED = "sqlite.sql"

_PACKAGE = Path(__file__).parents[1]
_REVISION_FILE = re.compile(r"^(\d{4})_\w+\.py$")
_CREATED = re.compile(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", re.MULTILINE)


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


@cache
def prepared_schema() -> str:
    """The newest schema of SQLite as one script, its revision included."""
    return (migrations_folder() / PREPARED).read_text(encoding="utf-8")


def read_revision() -> Steps[str | None]:
    """The revision of the database; None if it has no schema of ours."""
    tables = {row[0] for row in (yield Step("tables", {}))}
    if REVISION_TABLE in tables:
        rows = yield Step("revision", {})
        return rows[0][0] if rows else None
    if not tables.isdisjoint(_CREATED.findall(prepared_schema())):
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


def missing_statements(dialect: Dialect, revision: str | None) -> Sequence[str]:
    """What brings a database from `revision` to the newest one. May import Alembic: call it before any lock is held."""
    if not is_behind(revision):
        return ()
    if revision is None and dialect == "sqlite":
        return tuple(statements_of(prepared_schema()))
    return migration_statements(dialect, revision)


def upgrade(revision: str | None, statements: Sequence[str]) -> Steps[str | None]:
    """Run `statements` if the database still is at `revision`; its revision when that was looked at under the lock.

    Of several processes that try, one does it, and the others find it done.
    """
    yield Step("lock_schema", {})
    found = yield from read_revision()
    if found == revision:
        for text in statements:
            yield Statement(text)
    return found


@cache
def migration_statements(dialect: Dialect, revision: str | None) -> tuple[str, ...]:
    """The statements of Alembic that bring a database from `revision` to the newest one."""
    from alembic import command
    from alembic.config import Config

    buffer = io.StringIO()
    config = Config(output_buffer=buffer)
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("dialect", dialect)
    config.set_main_option("version_table", REVISION_TABLE)
    command.upgrade(config, f"{revision or 'base'}:head", sql=True)
    return tuple(statements_of(buffer.getvalue()))


def statements_of(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""


def schema_of_migrations() -> str:
    """What `prepared_schema` has to be: the schema that all migrations make, as one script."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in migration_statements("sqlite", None):
            connection.execute(statement)
        created: list[tuple[str, str]] = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
    virtual = tuple(f"{name}_" for name, sql in created if sql.startswith("CREATE VIRTUAL"))
    own = [sql for name, sql in created if not name.startswith(virtual)]
    own.append(f"INSERT INTO {REVISION_TABLE} VALUES ('{newest_revision()}')")  # noqa: S608 (names of our own)
    return "".join(f"{sql};\n\n" for sql in own)


if __name__ == "__main__":
    sys.stdout.write(schema_of_migrations())
