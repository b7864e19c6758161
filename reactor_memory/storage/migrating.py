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

Dialect: TypeAlias = Literal["sqlite", "postgresql"]

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


def is_behind(revision: str | None) -> bool:
    """Whether a database at `revision` (None: empty) needs migrations. `SchemaError` if it is ahead of the code."""
    if revision is not None and revision > newest_revision():
        raise SchemaError(
            f"schema: the database is at revision {revision}, this version of reactor-memory knows "
            f"{newest_revision()}; upgrade reactor-memory"
        )
    return revision != newest_revision()


def behind_error(revision: str | None) -> SchemaError:
    found = "has no schema" if revision is None else f"is at revision {revision}"
    return SchemaError(f"schema: the database {found}, {newest_revision()} is needed; run: reactor-memory migrate")


@cache
def migration_statements(dialect: Dialect, revision: str | None) -> tuple[str, ...]:
    """The statements that bring a database from `revision` to the newest one."""
    from alembic import command
    from alembic.config import Config

    buffer = io.StringIO()
    config = Config(output_buffer=buffer)
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("dialect", dialect)
    command.upgrade(config, f"{revision or 'base'}:head", sql=True)
    return tuple(_statements(buffer.getvalue()))


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
