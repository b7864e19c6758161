"""Every fault of a driver becomes the right kind of error, in our own words."""

import errno
import sqlite3

import asyncpg
import msgspec
import pytest

from reactor_memory.database import postgres_errors
from reactor_memory.database.driver_errors import translate, translated
from reactor_memory.errors import (
    SessionNotFoundError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from tests.scenes.tables import each_row


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("canary")
    error.sqlite_errorcode = code
    return error


FAULTS: list[tuple[Exception, type[StoreError]]] = [
    (sqlite_error(sqlite3.SQLITE_BUSY), StoreUnavailableError),
    (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), StoreUnavailableError),
    (sqlite_error(sqlite3.SQLITE_CANTOPEN), StoreUnavailableError),
    (sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), StoreUnavailableError),
    (sqlite_error(sqlite3.SQLITE_READONLY), StoreReadOnlyError),
    (sqlite_error(sqlite3.SQLITE_FULL), StoreFullError),
    (sqlite_error(sqlite3.SQLITE_CORRUPT), StoreCorruptError),
    (sqlite_error(sqlite3.SQLITE_NOTADB), StoreCorruptError),
    (sqlite_error(sqlite3.SQLITE_CONSTRAINT_UNIQUE), StoreError),
    (sqlite3.ProgrammingError("canary"), StoreError),
    (ConnectionRefusedError(errno.ECONNREFUSED, "canary"), StoreUnavailableError),
    (OSError(errno.ENOSPC, "canary"), StoreFullError),
    (TimeoutError("canary"), StoreUnavailableError),
    (msgspec.DecodeError("canary"), StoreCorruptError),
    (ValueError("canary"), StoreCorruptError),
    (UnicodeEncodeError("utf-8", "canary", 0, 1, "canary"), StoreError),
]

FAULTS_OF_POSTGRES: list[tuple[Exception, type[StoreError]]] = [
    (asyncpg.ConnectionDoesNotExistError("canary"), StoreUnavailableError),
    (asyncpg.InvalidPasswordError("canary"), StoreUnavailableError),
    (asyncpg.InvalidCatalogNameError("canary"), StoreUnavailableError),
    (asyncpg.SerializationError("canary"), StoreUnavailableError),
    (asyncpg.TooManyConnectionsError("canary"), StoreUnavailableError),
    (asyncpg.DiskFullError("canary"), StoreFullError),
    (asyncpg.CannotConnectNowError("canary"), StoreUnavailableError),
    (asyncpg.ReadOnlySQLTransactionError("canary"), StoreReadOnlyError),
    (asyncpg.DataCorruptedError("canary"), StoreCorruptError),
    (asyncpg.UniqueViolationError("canary"), StoreError),
    (asyncpg.InterfaceError("canary"), StoreUnavailableError),
]


@each_row(("fault", "kind"), FAULTS)
def test_kind_and_words(fault: Exception, kind: type[StoreError]) -> None:
    error = translate(fault)
    assert type(error) is kind
    assert "canary" not in repr(error)
    assert str(error).startswith("store: ")


@each_row(("fault", "kind"), [*FAULTS, *FAULTS_OF_POSTGRES])
def test_kind_and_words_where_the_database_is_postgres(fault: Exception, kind: type[StoreError]) -> None:
    error = postgres_errors.translate(fault)
    assert type(error) is kind
    assert "canary" not in repr(error)
    assert str(error).startswith("store: ")


def test_errors_of_our_own_pass() -> None:
    with pytest.raises(SessionNotFoundError), translated():
        raise SessionNotFoundError("s")


def test_the_cause_is_kept_where_it_is_harmless() -> None:
    with pytest.raises(StoreError) as kept, translated():
        raise sqlite_error(sqlite3.SQLITE_IOERR)
    assert isinstance(kept.value.__cause__, sqlite3.Error)
    with pytest.raises(StoreError) as dropped, translated():
        raise asyncpg.DataError("canary")
    assert dropped.value.__cause__ is None
    assert dropped.value.__suppress_context__
