"""How many statements and rows the drivers really carried.

Counting costs time, so it is done before anything is measured, on connections that are opened while it is switched on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from asyncpg.connection import Connection
from asyncpg.prepared_stmt import PreparedStatement


class Carried:
    """Statements that were sent, the begin and the end of transactions included, and rows that came back."""

    def __init__(self) -> None:
        self.queries = 0
        self.rows = 0


@contextmanager
def counted() -> Generator[Carried]:
    """Counts what connections carry that are opened inside the block."""
    carried = Carried()
    with ExitStack() as swaps:
        swaps.enter_context(_swapped(sqlite3, "connect", _counting_connect(carried)))
        for owner, name in (
            (Connection, "fetch"),
            (PreparedStatement, "fetch"),
            (Connection, "execute"),
            (Connection, "executemany"),
        ):
            swaps.enter_context(_swapped(owner, name, _counting_call(getattr(owner, name), carried)))
        yield carried


@contextmanager
def _swapped(owner: Any, name: str, replacement: Callable[..., Any]) -> Generator[None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _counting_connect(carried: Carried) -> Callable[..., sqlite3.Connection]:
    connect = sqlite3.connect

    def statement(_: str) -> None:
        carried.queries += 1

    def row(_: sqlite3.Cursor, values: Any) -> Any:
        carried.rows += 1
        return values

    def connect_and_count(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(statement)
        connection.row_factory = row
        return connection

    return connect_and_count


def _counting_call(call: Callable[..., Any], carried: Carried) -> Callable[..., Any]:
    async def call_and_count(*arguments: Any, **options: Any) -> Any:
        answer = await call(*arguments, **options)
        carried.queries += 1
        carried.rows += _rows_in(answer)
        return answer

    return call_and_count


def _rows_in(answer: object) -> int:
    """Rows come as a list; a statement without rows answers with its status or nothing."""
    return len(cast("list[object]", answer)) if isinstance(answer, list) else 0
