"""The statements that bring an older database up to date, written by Alembic.

Alembic is imported only when something is missing, and never while a lock is held: `migration_statements` is called
before `reactor_memory.database.schema.upgrade` takes it.
"""

from __future__ import annotations

import io
import sqlite3
import sys
from contextlib import closing
from functools import cache
from typing import Literal, TypeAlias

from reactor_memory.database.schema import (
    REVISION_TABLE,
    migrations_folder,
    newest_revision,
    statements_of,
)

Dialect: TypeAlias = Literal["sqlite", "postgresql"]


@cache
def migration_statements(dialect: Dialect, revision: str | None) -> tuple[str, ...]:
    """What brings a database from `revision` to the newest one. Imports Alembic: call it before any lock is held."""
    from alembic import command
    from alembic.config import Config

    buffer = io.StringIO()
    config = Config(output_buffer=buffer)
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("dialect", dialect)
    config.set_main_option("version_table", REVISION_TABLE)
    command.upgrade(config, f"{revision or 'base'}:head", sql=True)
    return tuple(statements_of(buffer.getvalue()))


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
