"""Database operations as plain generators.

An operation yields `Step`s (a named statement and its values), receives their rows, and returns its result. It is
written once; each store runs it with its own driver: SQLite inside one closure on the thread of a connection,
PostgreSQL statement by statement in one transaction. What an operation raises undoes all it did.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

Row: TypeAlias = Sequence[Any]
Rows: TypeAlias = Sequence[Row]
Values: TypeAlias = Mapping[str, Any]

T = TypeVar("T")
P = ParamSpec("P")


class Step(NamedTuple):
    """Run the query `name` of `queries.sql` with `values`."""

    name: str
    values: Values


class Batch(NamedTuple):
    """Run the query `name`, which returns no rows, once for each of `values`.

    SQLite's driver refuses the second of `values` after a row that nobody fetched.
    """

    name: str
    values: Sequence[Values]


class Statement(NamedTuple):
    """Run the SQL of a migration. Gives no rows."""

    text: str


Steps: TypeAlias = Generator[Step | Batch | Statement, Rows, T]
