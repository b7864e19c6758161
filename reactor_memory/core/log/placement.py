"""Which shards rows lie on, where PostgreSQL has the extension Citus: a group has one shard, and so has a user.

A table is distributed by what its primary key begins with; of a small one without such a key every shard has a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from reactor_memory.core.log.user_rows import name_all_users
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import within
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.database.schema import own_tables
from reactor_memory.errors import ConfigurationError

KEYS = ("group_id", "user_id", "principal_id")
"""What a table is distributed by, if its primary key begins with one of these."""

_NO_CITUS = (
    "has no Citus, so tables cannot be distributed: install the extension on all nodes and run CREATE EXTENSION citus "
    "in this database, or leave --distribute out; one server needs none of it"
)
_A_DAY = 86_400.0


class Placed(NamedTuple):
    """A table, and the column by which it is distributed; None: every node has a copy."""

    table: str
    key: str | None


async def distribute(database: Database) -> tuple[Placed, ...]:
    """Distribute each table that is not yet, with its rows, in a transaction of its own: what was done stays done, and
    another call goes on. Nobody should write meanwhile. The tables that this call distributed.

    Raises `ConfigurationError` unless the database is PostgreSQL with Citus.
    """
    if database.engine != "postgresql":
        raise ConfigurationError("store.url", _NO_CITUS)
    with within(_A_DAY):
        wanted = await database.read(_undistributed)
        for placed in wanted:
            await database.write(_place, placed, beside=_beside(placed))
    return wanted


def _undistributed() -> Steps[tuple[Placed, ...]]:
    if not (yield Query("has_citus", {}))[0][0]:
        raise ConfigurationError("store.url", _NO_CITUS)
    rows = yield Query("undistributed_tables", {"tables": own_tables()})
    found = [Placed(table, key if key in KEYS else None) for table, key in rows]
    return tuple(sorted(found, key=lambda each: (each.key not in KEYS, each.table != _beside(each), each.table)))


_FIRST = {"group_id": "conversations", "user_id": "active_sessions", "principal_id": "answered_requests"}
"""The table of each key that is distributed first: rows of one key in the others lie beside those in it."""


def _beside(placed: Placed) -> str:
    return _FIRST.get(placed.key or "", "")


def _place(placed: Placed, *, beside: str) -> Steps[None]:
    """Rows are copied, so all of them have to be seen."""
    yield from name_all_users()
    if placed.key is None:
        yield Query("place_copies", {"table": placed.table})
        return
    values = {"table": placed.table, "key": placed.key, "beside": "none" if placed.table == beside else beside}
    yield Query("place_shards", values)


def placement() -> Steps[str]:
    """Where the tables are, for a report of the store's health."""
    if not (yield Query("has_citus", {}))[0][0]:
        return "one server"
    rows = yield Query("distributed_tables", {"tables": own_tables()})
    if not rows:
        return "one server; Citus is there: reactor-memory migrate --distribute"
    left = yield Query("undistributed_tables", {"tables": own_tables()})
    told = _described(rows)
    if left:
        told.append(f"not distributed: {', '.join(sorted(row[0] for row in left))}")
    return f"tables: {'; '.join(told)}"


def _described(rows: Sequence[Row]) -> list[str]:
    counts: Counter[tuple[int, int]] = Counter()
    for _, key, shards in rows:
        counts[(KEYS.index(key), shards) if key in KEYS else (len(KEYS), 1)] += 1
    return [
        f"{tables} by {KEYS[place]} in {shards} shards" if place < len(KEYS) else f"{tables} copied to every node"
        for (place, shards), tables in sorted(counts.items())
    ]
