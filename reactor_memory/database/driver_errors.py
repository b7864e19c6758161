"""Errors of SQLite and of the system as errors of this library; those of PostgreSQL are in `postgres_errors`.

The texts are our own: a driver's text may hold parameters (message text, keys) or the address of the database.
"""

from __future__ import annotations

import errno
import sqlite3
from contextlib import AbstractContextManager

import msgspec

from reactor_memory.errors import (
    OutcomeUnknownError,
    ReactorMemoryError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

FULL = "the disk or the quota of the database is full; free space and save again"
NO_DATABASE = "the file is no SQLite database, or its header is damaged; name another one, or restore a backup"
DAMAGED_ROW = "a row holds what this library never wrote; restore a backup, or delete what it belongs to"
NO_TEXT = "a value holds half a character (a lone surrogate), which no database stores; replace it"
CORRUPT = "the database is damaged; restore a backup"
BUSY = "the database is locked by another process; try again"
UNREACHABLE = "the database cannot be reached; check that it runs and that the address is right"
TIMED_OUT = "the database did not answer in time (store.timeout_seconds); nothing was stored, try again"
READ_ONLY = "the database cannot be written; check the rights on the file and its folder, and how its disk is mounted"

DAMAGE = (StoreCorruptError, TypeError, ValueError, LookupError, AttributeError, OverflowError, msgspec.MsgspecError)
"""What reading a row raises that holds what this library never wrote."""

_SQLITE_CODES: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreUnavailableError, BUSY),
    sqlite3.SQLITE_LOCKED: (StoreUnavailableError, BUSY),
    sqlite3.SQLITE_INTERRUPT: (StoreUnavailableError, TIMED_OUT),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailableError, "the database file cannot be opened; check path and rights"),
    sqlite3.SQLITE_IOERR: (StoreUnavailableError, "the disk under the database reports errors"),
    sqlite3.SQLITE_READONLY: (StoreReadOnlyError, READ_ONLY),
    sqlite3.SQLITE_FULL: (StoreFullError, FULL),
    sqlite3.SQLITE_CORRUPT: (StoreCorruptError, CORRUPT),
    sqlite3.SQLITE_NOTADB: (StoreCorruptError, NO_DATABASE),
}


def translate(error: BaseException) -> StoreError:
    """The error to raise instead of what a driver raised."""
    if isinstance(error, sqlite3.Error):
        return _from_sqlite(error)
    if isinstance(error, UnicodeEncodeError):  # of what was to be stored: no row raises it
        return StoreError(f"store: {NO_TEXT}")
    if isinstance(error, DAMAGE):
        return StoreCorruptError(f"store: {DAMAGED_ROW}")
    return _from_connection(error)


def timed_out() -> StoreUnavailableError:
    """The error of a call that was not done by its deadline, and will not be."""
    return StoreUnavailableError(f"store: {TIMED_OUT}")


def read_only() -> StoreReadOnlyError:
    """The error of a write to a database that was opened for reading."""
    return StoreReadOnlyError(f"store: {READ_ONLY}")


def outcome_unknown() -> OutcomeUnknownError:
    """The error of a write of which nobody knows whether it was done: its deadline came, or its connection broke."""
    return OutcomeUnknownError()


def is_busy(error: sqlite3.Error) -> bool:
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: sqlite3.Error) -> int:
    """The code without its extension; 0 for what the driver itself raises."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _from_sqlite(error: sqlite3.Error) -> StoreError:
    if not _primary_code(error) and "decode to UTF-8" in str(error):
        return StoreCorruptError(f"store: {DAMAGED_ROW}")
    kind, problem = _SQLITE_CODES.get(
        _primary_code(error), (StoreError, f"the database failed ({type(error).__name__})")
    )
    return kind(f"store: {problem}")


def _from_connection(error: BaseException) -> StoreError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"store: {FULL}")
    if isinstance(error, TimeoutError):
        return timed_out()
    if isinstance(error, OSError):
        return StoreUnavailableError(f"store: {UNREACHABLE}")
    return StoreError(f"store: the database failed ({type(error).__name__})")


class _Translation:
    """A class rather than a generator: it surrounds every call of a store, and costs a third of one."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, ReactorMemoryError):
            return
        raise translate(error) from (error if isinstance(error, sqlite3.Error) else None)


_TRANSLATION = _Translation()


def translated() -> AbstractContextManager[None]:
    """Translate the errors of drivers that the block raises; errors of this library pass unchanged.

    The driver's error stays the cause where its text cannot hold parameters: SQLite's never does.
    """
    return _TRANSLATION
