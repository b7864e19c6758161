"""Errors of PostgreSQL and of its driver as errors of this library, in our own words."""

from __future__ import annotations

from reactor_memory.database import driver_errors
from reactor_memory.database.driver_errors import BUSY, CORRUPT, FULL, TIMED_OUT
from reactor_memory.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

REFUSED = "the database refused the login; check user, password and database name"
BROKEN = "the connection to the database broke; try again"

_CODES: dict[str, tuple[type[StoreError], str]] = {
    "08": (StoreUnavailableError, BROKEN),
    "28": (StoreUnavailableError, REFUSED),
    "3D": (StoreUnavailableError, REFUSED),
    "40": (StoreUnavailableError, "the transaction collided with another one; try again"),
    "53": (StoreUnavailableError, "the database has no connection or memory left; try again later"),
    "53100": (StoreFullError, FULL),
    "55": (StoreUnavailableError, BUSY),
    "57014": (StoreUnavailableError, TIMED_OUT),
    "57": (StoreUnavailableError, "the database is stopping or starting; try again"),
    "25006": (StoreReadOnlyError, "the database is read-only: it is a replica or was set so"),
    "XX001": (StoreCorruptError, CORRUPT),
    "XX002": (StoreCorruptError, CORRUPT),
}


def translate(error: BaseException) -> StoreError:
    """The error to raise instead of what the driver raised."""
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        return _from_sqlstate(sqlstate)
    if type(error).__module__.startswith("asyncpg"):
        return StoreUnavailableError(f"store: {BROKEN}")
    return driver_errors.translate(error)


def _from_sqlstate(sqlstate: str) -> StoreError:
    known = _CODES.get(sqlstate) or _CODES.get(sqlstate[:2])
    kind, problem = known or (StoreError, f"the database failed (SQLSTATE {sqlstate})")
    return kind(f"store: {problem}")
