"""Errors of PostgreSQL and of its driver as errors of this library, in our own words."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl

from reactor_memory.database import driver_errors
from reactor_memory.database.driver_errors import BUSY, CORRUPT, FULL, TIMED_OUT
from reactor_memory.database.postgres_address import place_of
from reactor_memory.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

STORE_URL = "store.url"
REFUSED = "the database refused the login; check user, password and database name"
NO_DATABASE = "the database does not exist; create it, or correct its name"
NO_RIGHT = "does not let the user do that; grant SELECT, INSERT, UPDATE and DELETE on its tables (to migrate: CREATE)"
BROKEN = "the connection to the database broke; try again"

_CODES: dict[str, tuple[type[StoreError], str]] = {
    "08": (StoreUnavailableError, BROKEN),
    "28": (StoreUnavailableError, REFUSED),
    "3D": (StoreUnavailableError, NO_DATABASE),
    "42501": (StoreError, f"the database {NO_RIGHT}"),
    "42P01": (StoreError, "a table is missing, or lies in a schema that the user may not use; grant USAGE on it"),
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


_NO_LOGIN = {
    "28": ("refused the login", "check user and password, and what pg_hba.conf allows"),
    "3D": ("does not exist", "create it, or correct the name in store.url"),
    "42501": ("does not let the user connect", "grant CONNECT on it"),
    "53": ("has no connection or memory left", "try again, lower store.pool_size, or raise max_connections there"),
    "57": ("is stopping or starting", "try again"),
}
_SSL_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_NO_SSL_FILE = f"a file is not there that {', '.join(_SSL_FILES)} in store.url may name"
_MAY_WANT_SSL = ", which may want SSL (sslmode=require in store.url)"
_WANTS_SSL = re.compile(r"\b(?:ssl|tls)\b.{0,40}\brequired|\binsecure\b", re.IGNORECASE)
"""What poolers answer to a client without SSL, each with an SQLSTATE of its own liking."""
_UNENCRYPTED = "wants SSL", "set sslmode=require in store.url"
_STANDBY = "is a standby that takes no connections", "set hot_standby there, or name the primary in store.url"


def translate(error: BaseException) -> StoreError:
    """The error to raise instead of what the driver raised."""
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        return _from_sqlstate(sqlstate)
    if type(error).__module__.startswith("asyncpg"):
        return StoreUnavailableError(f"store: {BROKEN}")
    return driver_errors.translate(error)


def unconnected(
    error: Exception, dsn: str, seconds: float, *, what: str = "store: the database", address: str = STORE_URL
) -> StoreError:
    """The error of a connection that was not made to `what`: to where, why, and what helps. `address` is what the
    caller gave the address as.
    """
    sqlstate = getattr(error, "sqlstate", None)
    if not isinstance(sqlstate, str):
        names_files = any(f"{each}=" in dsn for each in _SSL_FILES)
        why = _NO_SSL_FILE if names_files and isinstance(error, FileNotFoundError) else _why(error, seconds)
        why = why.replace(STORE_URL, address)
        return StoreUnavailableError(f"{what} cannot be reached: {place_of(dsn)}: {why}")
    known = _told_by_text(str(error)) or _NO_LOGIN.get(sqlstate) or _NO_LOGIN.get(sqlstate[:2])
    if known is None:
        return placed(translate(error), dsn)
    problem, remedy = known
    if str(error).endswith(("no encryption", "SSL off")) and "[local]" not in str(error):
        remedy += _MAY_WANT_SSL
    return StoreUnavailableError(f"{what} {problem}: {place_of(dsn)}; {remedy.replace(STORE_URL, address)}")


def _told_by_text(text: str) -> tuple[str, str] | None:
    if "not accepting connections" in text:
        return _STANDBY
    return _UNENCRYPTED if _WANTS_SSL.search(text) else None


def is_refusal(error: Exception) -> bool:
    """Whether the server knew who came, and where to, and said no: it will again, and may bar who asks too often."""
    sqlstate = getattr(error, "sqlstate", None) or ""
    return sqlstate[:2] in ("28", "3D") or sqlstate == "42501" or _told_by_text(str(error)) is not None


def placed(error: StoreError, dsn: str) -> StoreError:
    """The error, saying of which database, if it does not say so already."""
    place = place_of(dsn)
    if place not in str(error):
        error.args = (f"{error} ({place})",)
    return error


def _why(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s; check host, port and firewall"
    if isinstance(error, socket.gaierror):
        return "the host is unknown; correct it in store.url"
    if isinstance(error, ssl.SSLError) or "SSL" in str(error):
        return "SSL failed; check the certificate of the server, or set sslmode in store.url"
    if isinstance(error, OSError) and _is_closed(error):
        return "the connection was refused; start PostgreSQL there, or correct host and port in store.url"
    if isinstance(error, FileNotFoundError):
        return "there is no socket; start PostgreSQL, or correct the host in store.url"
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return f"{reason}; check that it runs and that the address is right"


def _is_closed(error: OSError) -> bool:
    """Also of a host with several addresses, each of which was tried."""
    return error.errno == errno.ECONNREFUSED or f"[Errno {errno.ECONNREFUSED}]" in str(error)


def _from_sqlstate(sqlstate: str) -> StoreError:
    known = _CODES.get(sqlstate) or _CODES.get(sqlstate[:2])
    kind, problem = known or (StoreError, f"the database failed (SQLSTATE {sqlstate})")
    return kind(f"store: {problem}")
