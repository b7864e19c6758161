"""A row of each user in every table, made from the schema: tables of a new feature are filled without being named."""

from collections.abc import Sequence

import asyncpg

from reactor_memory.database.schema import REVISION_TABLE

_COLUMNS = f"""
SELECT table_name, column_name, udt_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name <> '{REVISION_TABLE}' ORDER BY table_name, ordinal_position
"""
_VALUES = {
    "text": "'{user}'",
    "bytea": "'{user}'",
    "int8": "{number}",
    "tsvector": "'{user}'",
    "_float4": "'{{{number}}}'",
}
"""Everything that is a text, the group of the row included, is the name of the user; every number is theirs, too."""


async def fill_tables(dsn: str, users: Sequence[str]) -> list[str]:
    """The names of the tables."""
    connection = await asyncpg.connect(dsn)
    try:
        columns: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind in await connection.fetch(_COLUMNS):
            columns.setdefault(table, []).append((column, kind))
        for table in columns:
            for number, user in enumerate(users, 1):
                await connection.execute(insert(table, columns[table], user, number))
    finally:
        await connection.close()
    return list(columns)


def insert(table: str, columns: Sequence[tuple[str, str]], user: str, number: int) -> str:
    names = ", ".join(f'"{column}"' for column, _ in columns)
    values = ", ".join(_VALUES[kind].format(user=user, number=number) for _, kind in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({values})"
