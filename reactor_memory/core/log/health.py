"""What ``doctor`` looks for in a database, and the scrubbing of what was erased."""

from __future__ import annotations

import sqlite3

from reactor_memory.core.log.hooks import HOOKS
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import within
from reactor_memory.database.operations import Query, Rows, Statement, Steps
from reactor_memory.database.schema import read_revision
from reactor_memory.models.requests import StoreHealth

SAFE_WITH_SEVERAL_PROCESSES = (3, 51, 3)
"""Before this version of SQLite a checkpoint may, very rarely, race with the writer of another process."""

LONG_SECONDS = 86_400.0
"""What reads or writes the whole database may take a day."""

_MOST_PROBLEMS = 100


async def check(database: Database) -> StoreHealth:
    """Look for damage and known faults; reads only."""
    with within(LONG_SECONDS):
        damages = await database.read_long(_damages_of_file) if database.engine == "sqlite" else ()
        if damages:
            return StoreHealth(details=(("store", f"SQLite {sqlite3.sqlite_version}"),), problems=damages)
        return await database.read_long(_describe_sqlite if database.engine == "sqlite" else _describe_postgres)


async def scrub(database: Database, *, rewrite: bool = False) -> None:
    """What was erased leaves the files of the database, too, as far as that takes little; with `rewrite` whatever it
    takes: all tables are written anew, each locked meanwhile.

    Full-text indexes keep deleted terms until their parts are merged, and the log of SQLite what it is not rid of yet.
    PostgreSQL clears away dead rows in its own time; their bytes leave the files when tables are written anew.
    """
    with within(LONG_SECONDS):
        for merge in HOOKS.merge_statements if database.engine == "sqlite" else ():
            while await database.write(_merge, merge):
                pass
        if rewrite:
            await database.one("rewrite", {})
        await database.one("checkpoint", {})


def _merge(merge: str) -> Steps[bool]:
    """Merge a part of a full-text index; whether there may be more to merge."""
    before = yield Query("changed_rows", {})
    yield Query(merge, {})
    after = yield Query("changed_rows", {})
    return after[0][0] - before[0][0] > 1  # one, if nothing was left to merge


def _damages_of_file() -> Steps[tuple[str, ...]]:
    found = yield Statement(f"PRAGMA integrity_check({_MOST_PROBLEMS})")
    return tuple(f"damaged: {text}" for (text,) in found if text != "ok")


def _describe_sqlite() -> Steps[StoreHealth]:
    (pages,), (page_size,) = (yield Statement("PRAGMA page_count"))[0], (yield Statement("PRAGMA page_size"))[0]
    file = (yield Statement("PRAGMA database_list"))[0][2] or "none: it is in memory"
    engine = (("store", f"SQLite {sqlite3.sqlite_version}"), ("file", file))
    size = (("size", f"{pages * page_size} bytes"), ("several processes", _several_processes()))
    return (yield from _describe(engine, size))


def _describe_postgres() -> Steps[StoreHealth]:
    version, name = (yield Query("server", {}))[0]
    return (yield from _describe((("store", f"PostgreSQL {version}"), ("database", str(name)))))


def _describe(*details: tuple[tuple[str, str], ...]) -> Steps[StoreHealth]:
    first, *rest = details
    revision = yield from read_revision()
    sessions, messages = (yield Query("totals", {}))[0]
    of_features = yield from HOOKS.health()
    gaps = yield Query("gaps", {"limit": 20})
    return StoreHealth(
        details=(
            *first,
            ("schema", revision or "none"),
            ("sessions", str(sessions)),
            ("messages", str(messages)),
            *of_features,
            *(detail for part in rest for detail in part),
        ),
        problems=gap_problems(gaps),
    )


def _several_processes() -> str:
    if sqlite3.sqlite_version_info >= SAFE_WITH_SEVERAL_PROCESSES:
        return "may write to the file"
    safe = ".".join(map(str, SAFE_WITH_SEVERAL_PROCESSES))
    return f"better not write to the file at once: SQLite is older than {safe}"


def gap_problems(rows: Rows) -> tuple[str, ...]:
    """The answer of the query `gaps` in words."""
    return tuple(f"session {row[0]!r}: its counter and its messages disagree" for row in rows)
