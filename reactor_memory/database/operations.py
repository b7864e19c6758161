"""Operations on a database as plain generators.

An operation yields `Query`s (a named statement and its values), receives their rows, and returns its result. It is
written once; each database runs it with its own driver: SQLite inside one closure on the thread of a connection,
PostgreSQL statement by statement in one transaction. What an operation raises undoes all it did. An operation may be
run again from its beginning, so it has no effect but its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec

Row: TypeAlias = Sequence[Any]
Rows: TypeAlias = Sequence[Row]
Values: TypeAlias = Mapping[str, Any]

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Query(msgspec.Struct, frozen=True):
    """Run the statement `name` with `values`."""

    name: str
    values: Values


class Batch(msgspec.Struct, frozen=True):
    """Run the statement `name`, which returns no rows, once for each of `values`.

    SQLite's driver refuses the second of `values` after a row that nobody fetched.
    """

    name: str
    values: Sequence[Values]


class Statement(msgspec.Struct, frozen=True):
    """Run this SQL: of a migration, or a PRAGMA."""

    text: str


Steps: TypeAlias = Generator[Query | Batch | Statement, Rows, T]


class GroupedWrite(NamedTuple, Generic[R, T]):
    """A write that shares its commit with others of its kind.

    `alone` is the operation for one request. It refuses before its first write, so a refusal leaves nothing behind in
    a transaction that it shares. `many` is the same for several requests in at most one statement, for a database
    where a statement is a round trip; it answers None for a request that has to be done alone. Requests for which
    `group` gives the same value are never in one statement. `is_repeatable`: doing the request twice is doing it once.
    """

    alone: Callable[[R], Steps[T]]
    many: Callable[[Sequence[R]], Steps[Sequence[T | None]]]
    group: Callable[[R], Hashable]
    is_repeatable: Callable[[R], bool]


def bounded(operation: Callable[P, Steps[T]]) -> Callable[P, Steps[T]]:
    """Marks an operation that reads little whatever the database holds: it may run on the thread of the event loop."""
    operation.is_bounded = True  # type: ignore[attr-defined]
    return operation


def single(operation: Callable[P, Steps[T]]) -> Callable[P, Steps[T]]:
    """Marks a bounded operation that reads tables with one statement on SQLite, which then needs no transaction."""
    operation.is_single = True  # type: ignore[attr-defined]
    return bounded(operation)
