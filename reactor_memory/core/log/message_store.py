"""The log in a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core import log
from reactor_memory.core.log.branches import group_of
from reactor_memory.database.database import Database
from reactor_memory.database.operations import GroupedWrite, Steps
from reactor_memory.models import Message, Session
from reactor_memory.models.requests import (
    Appended,
    AppendRequest,
    BackgroundRows,
    ContextQuery,
    ContextRows,
    StoreHealth,
    Withdrawn,
)

if TYPE_CHECKING:
    from reactor_memory.core.log.hot_heads import HotHeads
    from reactor_memory.core.ports import LedgerFold
    from reactor_memory.models.session_pages import SessionPage


class SqlMessageStore:
    """`MessageStore` over a database: what is derived from messages that go goes in the same transaction.

    `forget_in`: microseconds after which what is kept elsewhere of a session that was removed is taken away by whoever
    finds that it was not (None: nothing is kept elsewhere). `heads` keep what loads read.
    """

    def __init__(self, database: Database, *, forget_in: int | None = None, heads: HotHeads | None = None) -> None:
        self._database = database
        self._forget_in = forget_in
        self._heads = heads

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def append(self, request: AppendRequest) -> Appended:
        appended = await self._database.write_grouped(APPENDS, request)
        if self._heads is not None:
            self._heads.appended(request, appended)
        return appended

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        return await self._database.read(log.operations.find, session_id, user_id)

    async def read(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        return await self._database.read(
            log.operations.read, session_id, user_id, after=after, until=until, last=last, limit=limit
        )

    async def read_context(self, query: ContextQuery) -> ContextRows:
        if self._heads is not None:
            rows = await self._heads.read_context(query)
        elif self._database.engine == "postgresql":
            rows = await log.postgres_contexts.read_context(self._database, query)
        else:
            rows = await self._database.read(log.operations.read_context, query)
        if rows.session is None or query.before_seq is None or query.before_seq > rows.session.last_seq:
            return rows
        messages, steps = await self._database.read(log.operations.read_before, rows.session.branch, query)
        return replace(rows, messages=messages, steps=steps)

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        return await self._database.read(log.operations.read_ranges, session_id, user_id, ranges)

    async def read_background(self, session_id: str, *, after: int = 0, limit: int = 1000) -> BackgroundRows:
        return await self._database.read(log.operations.read_background, session_id, after=after, limit=limit)

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        return await self._database.read(log.listing.list_sessions, user_id, limit=limit, cursor=cursor)

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        return await self._database.write(log.forks.fork, session_id, user_id, at_seq=at_seq, fork_id=fork_id, now=now)

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold
    ) -> Withdrawn:
        return await self._database.write(
            log.withdrawals.withdraw, session_id, user_id, seq=seq, now=now, refold=refold
        )

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        return await self._database.write(
            log.deletion.delete, session_id, user_id, now=now, purge=purge, forget_in=self._forget_in
        )

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        return await self._database.write(
            log.deletion.purge_deleted, before=before, limit=limit, forget_in=self._forget_in
        )

    async def check(self) -> StoreHealth:
        return await log.health.check(self._database)


def _append_many(requests: Sequence[AppendRequest]) -> Steps[Sequence[Appended | None]]:
    return log.postgres_appends.append_many(requests)


def _group_of_request(request: AppendRequest) -> str:
    return group_of(request.session_id)


def _has_key(request: AppendRequest) -> bool:
    return request.idempotency_key is not None


APPENDS: GroupedWrite[AppendRequest, Appended] = GroupedWrite(
    alone=log.operations.append, many=_append_many, group=_group_of_request, is_repeatable=_has_key
)
"""On PostgreSQL a statement moves a counter once, and holds no two rows that another one may lock in another order: so
those of one group follow one another.
"""
