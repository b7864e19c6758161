"""The log and everything derived from it in PostgreSQL.

An append is one statement, and so is what a load decides on, so nothing can fall between two of them; everything else
is one transaction. Leases run by the clock of the database. What the server undid because of a collision is tried
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from operator import itemgetter
from typing import Any

import anyio
import asyncpg
from msgspec.structs import replace

from reactor_memory.errors import ConfigurationError, ReactorMemoryError, StoreClosedError, StoreUnavailableError
from reactor_memory.models import Layout, Message, Pin, Session, SummaryHead
from reactor_memory.protocols import Appended, AppendRequest, ContextQuery, ContextRows, StoreHealth
from reactor_memory.storage import log, recall, search
from reactor_memory.storage.branches import group_of, is_fork
from reactor_memory.storage.driver_errors import translate
from reactor_memory.storage.group_commit import GroupCommit, Outcome
from reactor_memory.storage.migrating import read_revision, require_newest, upgrade
from reactor_memory.storage.postgres_appends import append_many_values, append_values, is_undone
from reactor_memory.storage.postgres_pool import Connection, PostgresPool
from reactor_memory.storage.queries import postgres_queries
from reactor_memory.storage.rows import (
    key_of,
    layout_from,
    message_from,
    pin_from,
    session_from,
    summary_from,
    summary_head_from,
)
from reactor_memory.storage.sql_store import SqlStore
from reactor_memory.storage.steps import Batch, P, Row, Rows, Statement, Step, Steps, T, Values

_RETRY_PAUSES_SECONDS = (0.0, 0.05, 0.2, 0.5)

_COLLISIONS = frozenset({"40001", "40P01"})
_BATCH_KEY = "messages_batch_key"

_REWRITE_SECONDS = 86_400.0

_WRITERS = 2
"""Batches of appends on their way at once: while one waits for the disk, the other is made."""

MayRetry = Callable[[Exception], bool]


class PostgresStore(SqlStore):
    """`dsn` is a ``postgresql://`` address; it is never repeated in an error.

    At most `pool_size` connections. `open` raises `SchemaError` when the schema is behind, unless `auto_migrate`.
    `statement_cache_size=0` is for poolers that mix the statements of clients (PgBouncer before 1.21). A statement
    may take `command_timeout_seconds`.
    """

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int = 8,
        auto_migrate: bool = False,
        statement_cache_size: int = 100,
        command_timeout_seconds: float = 30.0,
    ) -> None:
        self._dsn = dsn
        self._pool_size = pool_size
        self._auto_migrate = auto_migrate
        self._statement_cache_size = statement_cache_size
        self._command_timeout_seconds = command_timeout_seconds
        self._pool: PostgresPool | None = None
        self._appends = GroupCommit(self._commit_appends, writers=_WRITERS, apart=_group_of_request)

    async def open(self) -> None:
        if self._pool is not None:
            return
        self._pool = PostgresPool(self._connect, self._pool_size)
        try:
            if self._auto_migrate:
                await self._write(upgrade, "postgresql")
            await self._read(require_newest)
        except BaseException:
            await self.close()
            raise

    async def _connect(self) -> Connection:
        driver: Any = asyncpg
        try:
            return await driver.connect(
                self._dsn,
                statement_cache_size=self._statement_cache_size,
                command_timeout=self._command_timeout_seconds,
                timeout=self._command_timeout_seconds,
                server_settings={"application_name": "reactor-memory"},
            )
        except ValueError:
            raise ConfigurationError("store.url", "is not an address of a PostgreSQL database") from None

    async def close(self) -> None:
        await self._appends.finish()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    # In one statement

    async def append(self, request: AppendRequest) -> Appended:
        if self._pool is None:
            raise StoreClosedError
        return await self._appends.append(request)

    async def _commit_appends(self, requests: Sequence[AppendRequest]) -> Sequence[Outcome]:
        """All in one statement. What it leaves out is appended on its own, so that it fails or is replayed alone."""
        if len(requests) == 1:
            return [await self._outcome(requests[0])]
        try:
            appended = await self._append_many(requests)
        except Exception as error:
            return await asyncio.gather(*(self._again(request, error) for request in requests))
        left = [number for number in range(len(requests)) if number not in appended]
        outcomes = await asyncio.gather(*(self._outcome(requests[number]) for number in left))
        appended.update(zip(left, outcomes, strict=True))
        return [appended[number] for number in range(len(requests))]

    async def _append_many(self, requests: Sequence[AppendRequest]) -> dict[int, Outcome]:
        """The answers to those that were appended, by their place in `requests`."""
        step = Step("append_many", append_many_values(requests))
        rows = await self._once(lambda connection: _fetch(connection, step))
        last_seqs: dict[int, int] = {row[0] - 1: row[1] for row in rows}
        return {place: log.appended_until(requests[place], last_seq) for place, last_seq in last_seqs.items()}

    async def _again(self, request: AppendRequest, error: Exception) -> Outcome:
        """On its own after its batch failed, unless it may have been stored then and cannot be recognised."""
        if request.idempotency_key is None and not is_undone(error):
            return error if isinstance(error, ReactorMemoryError) else translate(error)
        return await self._outcome(request)

    async def _outcome(self, request: AppendRequest) -> Outcome:
        try:
            return await self._append_alone(request)
        except Exception as error:
            return error

    async def _append_alone(self, request: AppendRequest) -> Appended:
        may_retry = _may_retry_keyed if request.idempotency_key is not None else _collided
        values = append_values(request)
        rows = await self._retrying(lambda connection: _fetch(connection, Step("append", values)), may_retry)
        if not rows:
            # There is no session that it may continue. The long form says why, or appends if that changed since
            return await self._write(log.append, request)
        last_seq, known_seq, known_fingerprint, known_size, owner_id, deleted_at = rows[0]
        if last_seq is not None:
            return log.appended_until(request, last_seq)
        log.check_owner_and_deletion(request.session_id, request.user_id, owner_id=owner_id, deleted_at=deleted_at)
        return log.replay(request, known_seq, known_fingerprint, known_size)

    async def read_context(self, query: ContextQuery) -> ContextRows:
        name = _context_query(query)
        rows = await self._fetch_context(name, query)
        if name != "read_context_of_layout" or rows.session is None or rows.layout is not None:
            return rows
        return _within_tokens(rows, query) if rows.messages else await self._fetch_context("read_context", query)

    async def _fetch_context(self, name: str, query: ContextQuery) -> ContextRows:
        step = Step(name, _context_values(query))
        rows = await self._retrying(lambda connection: _fetch(connection, step), _may_retry)
        return _context_from(rows, query.user_id)

    # In one transaction

    async def _read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        async def work(connection: Connection) -> T:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _run(connection, operation(*args, **kwargs))

        return await self._retrying(work, _may_retry)

    async def _write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        async def work(connection: Connection) -> T:
            async with connection.transaction():
                return await _run(connection, operation(*args, **kwargs))

        return await self._retrying(work, _collided)

    async def _retrying(self, work: Callable[[Connection], Awaitable[T]], may_retry: MayRetry) -> T:
        pauses = iter(_RETRY_PAUSES_SECONDS)
        while True:
            try:
                return await self._once(work)
            except ReactorMemoryError:
                raise
            except Exception as error:
                pause = next(pauses, None)
                if pause is None or not may_retry(error):
                    raise translate(error) from None
            await anyio.sleep(pause)

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        if self._pool is None:
            raise StoreClosedError
        return await self._pool.run(work)

    async def scrub(self, *, rewrite: bool = False) -> None:
        """The server itself clears away dead rows in its own time. Their bytes leave the files when tables are written
        anew, which takes a lock on each.
        """
        if rewrite:
            statement = postgres_queries()["rewrite"].text
            await self._retrying(lambda connection: connection.execute(statement, timeout=_REWRITE_SECONDS), _collided)

    async def check(self) -> StoreHealth:
        return await self._read(_check)


def _group_of_request(request: AppendRequest) -> str:
    """A statement moves a counter once, and holds no two rows that another one may lock in another order."""
    return group_of(request.session_id)


def _collided(error: Exception) -> bool:
    """The server undid the work because of another transaction: trying again is safe."""
    return getattr(error, "sqlstate", None) in _COLLISIONS


def _may_retry(error: Exception) -> bool:
    """As `_collided`, or the connection broke, so that it is unknown whether the work was done."""
    is_timeout = isinstance(error, TimeoutError)
    return _collided(error) or (not is_timeout and isinstance(translate(error), StoreUnavailableError))


def _may_retry_keyed(error: Exception) -> bool:
    """As `_may_retry`, or another append with the same key was faster: the next try finds its answer."""
    return getattr(error, "constraint_name", None) == _BATCH_KEY or _may_retry(error)


async def _run(connection: Connection, steps: Steps[T]) -> T:
    try:
        step = next(steps)
        while True:
            step = steps.send(await _fetch(connection, step))
    except StopIteration as done:
        return done.value


async def _fetch(connection: Connection, step: Step | Batch | Statement) -> Rows:
    if isinstance(step, Statement):
        await connection.execute(step.text)
        return ()
    query = postgres_queries()[step.name]
    if isinstance(step, Batch):
        await connection.executemany(query.text, [query.arguments(values) for values in step.values])
        return ()
    return await connection.fetch(query.text, *query.arguments(step.values))


# The statements that read a context

_LEAN_MESSAGE_TOKENS = 32
"""Seldom has a session fewer tokens a message. While no layout tells how much to read, a longer one than this allows
takes a second statement.
"""


def _context_query(query: ContextQuery) -> str:
    if is_fork(query.session_id):
        return "read_context_of_fork"
    if query.trigger_message_count is None:
        return "read_newest_context"
    return "read_context" if query.facts else "read_context_of_layout"


def _context_values(query: ContextQuery) -> Values:
    return {
        **key_of(query.session_id),
        "user_id": query.user_id,
        "trigger_message_count": query.trigger_message_count,
        "last_count": query.last_count,
        "max_messages": query.max_messages,
        "max_tokens": query.max_tokens,
        "likely_count": query.max_tokens // _LEAN_MESSAGE_TOKENS,
        "overhead": query.overhead,
        "budget": query.budget,
        "settings_fingerprint": query.settings_fingerprint,
        "facts": query.facts,
    }


def _context_from(rows: Rows, user_id: str | None) -> ContextRows:
    """`rows` by their first column, `part`."""
    parts: tuple[list[Row], ...] = ([], [], [], [], [])
    for row in rows:
        part: int = row[0]
        parts[part].append(row)
    sessions, summaries, layouts, messages, pins = parts
    if not sessions:
        return ContextRows()
    return ContextRows(
        session=log.check_access(_session(sessions[0]), user_id),
        summary=_summary(summaries[0]) if summaries else None,
        layout=_layout(layouts[0]) if layouts else None,
        messages=_messages(messages),
        pins=_pins(pins),
    )


def _within_tokens(rows: ContextRows, query: ContextQuery) -> ContextRows:
    """`rows` of a session without a layout, which was read whole."""
    if rows.session is None or rows.session.last_seq <= (query.trigger_message_count or 0):
        return rows
    tokens = 0
    for place in range(len(rows.messages) - 1, 0, -1):
        tokens += (rows.messages[place].token_count or 0) + query.overhead
        if tokens > query.max_tokens:
            return replace(rows, messages=rows.messages[place:])
    return rows


def _session(row: Row) -> Session:
    (
        _,
        last_seq,
        session_id,
        group_id,
        owner_id,
        path,
        title,
        forked_from,
        *_,
        created,
        _,
        updated,
        forked_at,
        deleted,
    ) = row
    return session_from(
        (session_id, group_id, owner_id, last_seq, path, created, updated, title, forked_from, forked_at, deleted)
    )


def _summary(row: Row) -> SummaryHead:
    _, covered, narrative, facts, stale_ranges, truncated, spare, *_, version, _, epoch, created_at, updated_at = row
    head = (covered, version, epoch, truncated == "1", stale_ranges, created_at, updated_at, narrative)
    return summary_head_from(head) if facts is None else summary_from((*head, facts, spare))


def _layout(row: Row) -> Layout:
    _, seq, fact_lines, narrative, *_, window_start_seq, _, covered_seq, epoch, _ = row
    return layout_from((seq, window_start_seq, covered_seq, epoch, fact_lines, narrative))


def _messages(rows: list[Row]) -> tuple[Message, ...]:
    """`UNION ALL` promises no order."""
    rows.sort(key=itemgetter(1))
    return tuple([message_from(row[1:15]) for row in rows])


def _pins(rows: Sequence[Row]) -> tuple[Pin, ...]:
    return tuple(map(_pin, sorted(rows, key=itemgetter(1))))


def _pin(row: Row) -> Pin:
    _, ordinal, anchor, key, role, text, sha256, tokenizer, *_, seq, _, token_count, created_at, _ = row
    return pin_from((ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at))


def _check() -> Steps[StoreHealth]:
    revision = yield from read_revision()
    version = yield Step("server", {})
    totals = yield Step("totals", {})
    gaps = yield Step("gaps", {"limit": 20})
    indexed = yield Step("recall_state", {})
    backlog = yield from search.search_backlog(None)
    return StoreHealth(
        details=(
            ("store", f"PostgreSQL {version[0][0]}"),
            ("database", str(version[0][1])),
            ("schema", revision or "none"),
            ("sessions", str(totals[0][0])),
            ("messages", str(totals[0][1])),
            recall.state_detail(indexed[0]),
            search.state_detail(backlog),
        ),
        problems=log.gap_problems(gaps),
    )
