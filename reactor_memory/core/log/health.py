"""What ``doctor`` looks for in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from shlex import quote

from reactor_memory.core.log.hooks import hooks
from reactor_memory.core.log.placement import placement
from reactor_memory.core.log.scrubbing import FILES, LONG_SECONDS
from reactor_memory.core.log.walks import of_all_groups, summed
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import within
from reactor_memory.database.operations import Query, Row, Rows, Statement, Steps
from reactor_memory.database.schema import read_revision
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, SCRUB, StoreHealth

SAFE_WITH_SEVERAL_PROCESSES = (3, 51, 3)
"""Before this version of SQLite a checkpoint may, very rarely, race with the writer of another process."""

_MOST_PROBLEMS = 100
_MOST_GAPS = 20

_LEFT = {"scrub": SCRUB, "erase": ERASE, "forget": FORGET, "erase_user": ERASE_USER}
_PLACES = {
    SCRUB: f"{FILES} of the database, which hold erased text until nobody reads them",
    ERASE: "what is kept elsewhere of erased messages",
    FORGET: "what is kept elsewhere of deleted sessions",
    ERASE_USER: "sessions of erased users",
}


async def check(database: Database) -> StoreHealth:
    """Look for damage and known faults; reads only."""
    with within(LONG_SECONDS):
        damages = await database.read_long(_damages_of_file) if database.engine == "sqlite" else ()
        if damages:
            return StoreHealth(details=(("store", f"SQLite {sqlite3.sqlite_version}"),), problems=damages)
        return await database.read_long(_describe_sqlite if database.engine == "sqlite" else _describe_postgres)


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
    placed = yield from placement()
    return (yield from _describe((("store", f"PostgreSQL {version}"), ("database", str(name)), ("placement", placed))))


def _describe(*details: tuple[tuple[str, str], ...]) -> Steps[StoreHealth]:
    first, *rest = details
    revision = yield from read_revision()
    rows = yield from of_all_groups("examined", {"limit": _MOST_GAPS, **_LEFT})
    sessions, messages = summed(row[2:4] for row in rows if row[0] == 0)
    gaps = [row[1:] for row in rows if row[0] == 1][:_MOST_GAPS]
    left = _by_kind(row[1:] for row in rows if row[0] == 2)
    of_features: tuple[tuple[str, str], ...] = ()
    for hook in hooks():
        of_features += yield from hook.health()
    damages = yield from _damages()
    return StoreHealth(
        details=(
            *first,
            ("schema", revision or "none"),
            ("sessions", str(sessions)),
            ("messages", str(messages)),
            *of_features,
            *(("left to destroy", _left(row)) for row in left),
            *(detail for part in rest for detail in part),
        ),
        problems=(*gap_problems(gaps), *damages, *(f"left to destroy: {_left(row)}" for row in left if row[2])),
    )


def _damages() -> Steps[tuple[str, ...]]:
    """Of what features derive. A load or a search names it, too, and makes it again when it meets it."""
    told: list[str] = []
    for hook in hooks():
        damaged = yield from hook.damaged(None)
        told += [_damage(session_id, hook.derives) for session_id in damaged[:_MOST_PROBLEMS]]
    return tuple(told)


def _damage(session_id: str, what: str) -> str:
    return f"session {session_id!r}: its {what} is damaged; run: reactor-memory summarize {quote(str(session_id))}"


def make_again_what_is_damaged(session_id: str) -> Steps[None]:
    """Of what features derive of a session."""
    for hook in hooks():
        if (yield from hook.damaged(session_id)):
            yield from hook.make_again(session_id)


def _by_kind(rows: Iterable[Row]) -> list[Row]:
    """How many rows each kind has, the most attempts, and one of the last errors."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row[0], []).append(row)
    return [
        (
            kind,
            sum(row[1] for row in found),
            max(row[2] for row in found),
            max((row[3] for row in found if row[3] is not None), default=None),
        )
        for kind, found in sorted(kinds.items())
    ]


def _left(row: Row) -> str:
    """What an erasure or a deletion promised and has not done yet; background work goes on with it."""
    kind, count, attempts, error = row
    where = _PLACES[kind] if count == 1 or kind == SCRUB else f"{_PLACES[kind]} ({count})"
    return f"{where}, tried {attempts} times: {error}" if attempts else where


def _several_processes() -> str:
    if sqlite3.sqlite_version_info >= SAFE_WITH_SEVERAL_PROCESSES:
        return "may write to the file"
    safe = ".".join(map(str, SAFE_WITH_SEVERAL_PROCESSES))
    return f"better not write to the file at once: SQLite is older than {safe}"


def gap_problems(rows: Rows) -> tuple[str, ...]:
    """Sessions whose counter and messages disagree, in words."""
    return tuple(f"session {row[0]!r}: its counter and its messages disagree" for row in rows)
