"""The revision of a database's schema, and the one transaction that brings it up to date.

A new SQLite database gets the prepared schema, which is the newest one as text (``migrations/sqlite.sql``). What an
older one needs comes from `reactor_memory.database.migrations`. The drivers run it under a lock: two processes may
migrate at once, and a broken migration leaves nothing behind.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from reactor_memory.database.operations import Query, Statement, Steps
from reactor_memory.errors import SchemaError

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


def own_tables() -> list[str]:
    """The names of all tables of the newest schema, on either engine."""
    return [*_CREATED.findall(prepared_schema()), REVISION_TABLE]


def read_revision() -> Steps[str | None]:
    """The revision of the database; None if it has no schema of ours."""
    tables = {row[0] for row in (yield Query("tables", {}))}
    if REVISION_TABLE in tables:
        rows = yield Query("revision", {})
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


class BehindError(SchemaError):
    """The database needs migrations: it is at `revision`, None without a schema of ours."""

    def __init__(self, text: str, revision: str | None) -> None:
        super().__init__(text)
        self.revision = revision


def require_newest() -> Steps[None]:
    """`SchemaError` unless the schema is the one of this code."""
    revision = yield from read_revision()
    if is_behind(revision):
        found = "has no schema" if revision is None else f"is at revision {revision}"
        wanted = f"{newest_revision()} is needed; run: reactor-memory migrate"
        raise BehindError(f"schema: the database {found}, {wanted}", revision)


def upgrade(revision: str | None, statements: Sequence[str]) -> Steps[str | None]:
    """Run `statements` if the database still is at `revision`; its revision when that was looked at under the lock.

    Of several processes that try, one does it, and the others find it done.
    """
    yield Query("lock_schema", {})
    found = yield from read_revision()
    if found == revision:
        for text in statements:
            yield Statement(text)
    return found


def statements_of(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
