"""What was destroyed leaves the files of a SQLite database, too: as soon as nobody reads what was there before.

The transaction that destroys something notes that the files are to be scrubbed, once for the whole database, and the
note stays until a scrub that began behind it went through.
"""

from __future__ import annotations

from time import monotonic

from reactor_memory.core.log.hooks import hooks
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import within
from reactor_memory.database.operations import Query, Steps
from reactor_memory.models.requests import SCRUB

LONG_SECONDS = 86_400.0
"""What reads or writes the whole database may take a day."""

FILES = "files"
"""The name of what is left to do in the files of the database."""

CALL_SECONDS = 1.0
"""How long a call that deletes merges indexes of full text; background work does the rest."""

_AHEAD = 10_000_000
"""Microseconds in which a call that destroyed something scrubs itself; then background work does."""


def note_scrub(now: int) -> Steps[None]:
    """Something is destroyed in this transaction."""
    yield Query("note_scrub", {"due_at": now + _AHEAD})


async def scrub(database: Database, *, rewrite: bool = False, seconds: float = LONG_SECONDS) -> bool:
    """What was erased leaves the files of the database, too, as far as that takes little; with `rewrite` whatever it
    takes: all tables are written anew, each locked meanwhile. Whether it has left them; if not, background work goes
    on.

    Full-text indexes keep deleted terms until their parts are merged, for which there are so many `seconds`, and the
    log of SQLite what somebody still reads. PostgreSQL clears away dead rows in its own time; their bytes leave the
    files when tables are written anew.
    """
    with within(LONG_SECONDS):
        fence = await database.read(_noted) if database.engine == "sqlite" else None
        is_merged = await _merged(database, monotonic() + seconds)
        if rewrite:
            await database.one("rewrite", {})
        is_clean = await database.checkpoint() and is_merged
        if fence is not None:
            await database.one("finish_scrub" if is_clean else "scrub_soon", {"fence": fence})
    return is_clean


async def _merged(database: Database, ends: float) -> bool:
    merges = [merge for hook in hooks() for merge in hook.merges] if database.engine == "sqlite" else ()
    for merge in merges:
        while await database.write(_merge, merge):
            if monotonic() > ends:
                return False
    return True


def _merge(merge: str) -> Steps[bool]:
    """Merge a part of a full-text index; whether there may be more to merge."""
    before = yield Query("changed_rows", {})
    yield Query(merge, {})
    after = yield Query("changed_rows", {})
    return after[0][0] - before[0][0] > 1  # one, if nothing was left to merge


def _noted() -> Steps[int | None]:
    """How often a scrub was noted, if one is to be done."""
    rows = yield Query("noted_scrub", {"kind": SCRUB})
    return rows[0][0] if rows else None
