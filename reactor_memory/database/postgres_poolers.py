"""Poolers between us and PostgreSQL, such as PgBouncer: a connection of ours has another backend in each transaction.

So nothing may be left on a backend: limits of time hold for a transaction only, and prepared statements are used where
the pooler carries them along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import asyncpg

Connection: TypeAlias = Any
"""An `asyncpg.Connection`; the driver has no types."""

READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_NOT_PREPARED = frozenset({"26000", "42P05"})
"""SQLSTATE of a statement that another backend has prepared, and of one that somebody else has prepared on this one.
Neither was run.
"""

SERVICE = "reactor_memory.service"
"""A setting that tells row-level security that the store asks, which checks access itself."""

_TRIAL = "reactor_memory_trial"
_OWN_BACKEND = f"SELECT pg_backend_pid(), current_setting('{SERVICE}', true)"
_TAKES_NAME = "SELECT count(*) FROM pg_prepared_statements WHERE name = $1"


def limits_of(seconds: float) -> dict[str, str]:
    """The server itself ends a statement, or the wait for a lock, that takes longer."""
    milliseconds = str(max(1, int(seconds * 1000)))
    return {"statement_timeout": milliseconds, "lock_timeout": milliseconds}


def set_to(settings: Mapping[str, str], *, within: str = "") -> str:
    """Statements that set these, on a connection or ``LOCAL`` in a transaction."""
    return "; ".join(f"SET {within}{name} = {value}" for name, value in settings.items())


def is_refused_setting(error: Exception) -> bool:
    """Whether a pooler, which would have to carry it along, refuses a setting at the start of a connection. The driver
    then tries without SSL, unless the address says otherwise, and tells what became of that.
    """
    told = ("startup parameter", "SSL required")
    return isinstance(error, asyncpg.ProtocolViolationError) and any(each in str(error) for each in told)


def is_unprepared(error: Exception) -> bool:
    return getattr(error, "sqlstate", None) in _NOT_PREPARED


async def is_pooled(connection: Connection) -> bool:
    """A pooler answers in the place of the server, with a number of its own for the backend, or drops a setting."""
    return tuple(await connection.fetchrow(_OWN_BACKEND)) != (connection.get_server_pid(), "yes")


async def carries_statements(connection: Connection) -> bool:
    """Whether the pooler knows whose prepared statements are whose: then they have other names on the backend."""
    async with connection.transaction():
        statement = await connection.prepare("SELECT 1", name=_TRIAL)
        is_bare = await connection.fetchval(_TAKES_NAME, _TRIAL)
        del statement
        if is_bare:
            await connection.execute(f"DEALLOCATE {_TRIAL}")
    return not is_bare


class LimitedTransaction:
    """A transaction with settings of its own, made on the way in which it begins, as is who asks."""

    def __init__(self, connection: Connection, begin: str, settings: Mapping[str, str]) -> None:
        self._connection = connection
        self._begin = f"{begin}; {set_to({**settings, SERVICE: 'yes'}, within='LOCAL ')}"

    async def start(self) -> None:
        await self._connection.execute(self._begin)

    async def commit(self) -> None:
        await self._connection.execute("COMMIT")

    async def rollback(self) -> None:
        await self._connection.execute("ROLLBACK")

    async def __aenter__(self) -> None:
        await self.start()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            await self.commit()
        elif not self._connection.is_closed():
            await self.rollback()
