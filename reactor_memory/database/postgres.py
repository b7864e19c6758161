"""PostgreSQL as a database, through asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import anyio
import asyncpg

from reactor_memory.database.blocking_calls import aside
from reactor_memory.database.database import Database, Engine
from reactor_memory.database.deadlines import end_of_call, seconds_until
from reactor_memory.database.driver_errors import outcome_unknown
from reactor_memory.database.forks import Process
from reactor_memory.database.grouped_writes import GroupedWrites, Waiting
from reactor_memory.database.migrations import migration_statements
from reactor_memory.database.operations import Batch, GroupedWrite, P, Query, R, Rows, Statement, Steps, T, Values
from reactor_memory.database.postgres_errors import is_refusal, placed, translate, unconnected
from reactor_memory.database.postgres_pool import Connection, PostgresPool
from reactor_memory.database.postgres_poolers import (
    READ_ONLY,
    SERVICE,
    LimitedTransaction,
    carries_statements,
    is_pooled,
    is_refused_setting,
    is_unprepared,
    limits_of,
    set_to,
)
from reactor_memory.database.postgres_shards import HOW_PLACED, KEEP_PLANS, PASS_ON, passed_on, values_by_group
from reactor_memory.database.schema import (
    is_behind,
    newest_revision,
    prepared_schema,
    read_revision,
    require_newest,
    upgrade,
)
from reactor_memory.database.statements import Statements
from reactor_memory.errors import (
    ConfigurationError,
    OutcomeUnknownError,
    ReactorMemoryError,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)

_RETRY_PAUSES_SECONDS = (0.0, 0.05, 0.2, 0.5)

_COLLISIONS = frozenset({"40001", "40P01"})
_KEY_TAKEN = "23505"
_ENDED_BY_SERVER = ("08", "57P", "58", "XX")
"""Of SQLSTATE: after these it is unknown what became of a commit (connection lost, operator intervention, system error,
internal error).
"""

_WRITERS = 2
"""Batches of grouped writes on their way at once: while one waits for the disk, the other is made."""

UNKNOWN_SSL = "has an sslmode that PostgreSQL does not know, or that needs a root certificate (sslrootcert)"
CONNECTING_SHARE = 0.8
"""Of the time that a call may take: then there is some left to say why no connection was made."""

Work: TypeAlias = Callable[[Connection], Awaitable[T]]
MayRetry: TypeAlias = Callable[[Exception], bool]


class PostgresDatabase(Database):
    """`dsn` is a ``postgresql://`` address; it is never repeated in an error.

    At most `pool_size` connections. `open` raises `SchemaError` when the schema is behind, unless `auto_migrate`.
    Behind a pooler (PgBouncer) nothing is left on a backend, and statements are prepared where it carries them along;
    `statement_cache_size=0` never prepares any. A call may take
    `timeout_seconds` from when it came, unless the caller set a deadline; the server itself ends a statement, or the
    wait for a lock, that takes longer.
    """

    engine: ClassVar[Engine] = "postgresql"

    def __init__(
        self,
        dsn: str,
        statements: Statements,
        *,
        pool_size: int = 8,
        auto_migrate: bool = False,
        statement_cache_size: int = 100,
        timeout_seconds: float = 10.0,
    ) -> None:
        self._dsn = dsn
        self._statements = statements
        self._pool_size = pool_size
        self._auto_migrate = auto_migrate
        self._statement_cache_size = statement_cache_size
        self._timeout_seconds = timeout_seconds
        self._is_pooled = False
        self._is_distributed = self._is_partitioned = False
        self._pool: PostgresPool | None = None
        self._retired: set[asyncio.Task[None]] = set()
        self._writes = GroupedWrites(self._commit, writers=_WRITERS, apart=True)
        self._process = Process()

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        if self._pool is not None:
            return
        self._process = Process()
        self._pool = PostgresPool(self._connect, self._pool_size)
        try:
            await aside(self._read_files)
            await self._retrying(self._look_around, end_of_call(self._timeout_seconds), _may_repeat)
            if self._auto_migrate:
                await self._migrate()
            await self.read(require_newest)
        except StoreError as error:
            await self.close()
            raise placed(error, self._dsn) from error.__cause__
        except BaseException:
            await self.close()
            raise

    async def _look_around(self, connection: Connection) -> None:
        self._is_pooled = self._is_pooled or await is_pooled(connection)
        if self._is_pooled and self._statement_cache_size and not await carries_statements(connection):
            self._do_not_prepare()
        self._is_distributed, self._is_partitioned = await connection.fetchrow(HOW_PLACED)
        if not self._is_pooled and self._of_placement():  # this connection is older than what it found
            await connection.execute(set_to(self._of_placement()))

    def _do_not_prepare(self) -> None:
        """From now on, on new connections."""
        retired, self._statement_cache_size, self._is_pooled = self._pool, 0, True
        self._pool = PostgresPool(self._connect, self._pool_size)
        if retired is not None:
            closing = asyncio.get_running_loop().create_task(retired.close())
            self._retired.add(closing)
            closing.add_done_callback(self._retired.discard)

    def _read_files(self) -> None:
        """They are remembered."""
        _ = self._statements.postgres, newest_revision(), prepared_schema()

    async def _migrate(self) -> None:
        revision = await self.read(read_revision)
        while is_behind(revision):
            statements = await aside(migration_statements, "postgresql", revision)
            found = await self.write(upgrade, revision, statements)
            revision = await self.read(read_revision) if found == revision else found

    async def _connect(self) -> Connection:
        driver: Any = asyncpg
        try:
            return await driver.connect(
                self._dsn,
                statement_cache_size=self._statement_cache_size,
                server_settings={"application_name": "reactor-memory", **self._limits()},
                timeout=self._timeout_seconds * CONNECTING_SHARE,
            )
        except asyncpg.UndefinedObjectError:
            raise ConfigurationError("store.url", "has a parameter behind ? that PostgreSQL does not know") from None
        except (OSError, asyncpg.PostgresError) as error:  # a certificate that is refused is a ValueError as well
            if self._is_pooled or not is_refused_setting(error):
                cause = error if isinstance(error, TimeoutError) else None  # it says nothing; waiting again is no use
                cause = PermissionError("the server said no") if is_refusal(error) else cause
                raise unconnected(error, self._dsn, self._timeout_seconds * CONNECTING_SHARE) from cause
        except ValueError:
            known = "sslmode" not in self._dsn
            problem = "is not an address of a PostgreSQL database" if known else UNKNOWN_SSL
            raise ConfigurationError("store.url", problem) from None
        self._is_pooled = True
        return await self._connect()

    def _limits(self) -> Mapping[str, str]:
        """Of a connection, and who asks; behind a pooler each transaction has its own."""
        own = {SERVICE: "yes", **limits_of(self._timeout_seconds), **self._of_placement()}
        return {} if self._is_pooled else own

    def _of_placement(self) -> Mapping[str, str]:
        keeps_plans = self._is_partitioned and self._statement_cache_size > 0  # else each plan is made anew
        return (PASS_ON if self._is_distributed else {}) | (KEEP_PLANS if keeps_plans else {})

    async def close(self) -> None:
        if not self._process.is_this:
            return
        ends = end_of_call(self._timeout_seconds)
        with anyio.CancelScope(shield=True), anyio.move_on_after(seconds_until(ends)):
            await self._writes.finish()
        pool, self._pool = self._pool, None
        if pool is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(seconds_until(ends)):
                await pool.close()
                await asyncio.gather(*self._retired, return_exceptions=True)

    # -- the verbs ----------------------------------------------------------------------------------------------

    async def read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        ends = end_of_call(self._timeout_seconds)

        async def work(connection: Connection) -> T:
            async with self._read_transaction(connection, ends):
                return await self._run(connection, operation(*args, **kwargs))

        return await self._retrying(work, ends, _may_repeat)

    def _read_transaction(self, connection: Connection, ends: float) -> Any:
        if self._is_told_each_time:
            return self._limited(connection, READ_ONLY, ends)
        return connection.transaction(isolation="repeatable_read", readonly=True)

    def _transaction(self, connection: Connection, ends: float) -> Any:
        if self._is_told_each_time:
            return self._limited(connection, "BEGIN", ends)
        return connection.transaction()

    @property
    def _is_told_each_time(self) -> bool:
        """Whether a setting of the connection does not reach the backend that runs a statement."""
        return self._is_pooled or self._is_distributed

    def _limited(self, connection: Connection, begin: str, ends: float) -> LimitedTransaction:
        """Limits of a connection hold where there is no pooler; nodes need not know them."""
        settings = {**self._of_placement(), **limits_of(seconds_until(ends))} if self._is_pooled else {}
        return LimitedTransaction(connection, begin, settings)

    async def read_long(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.read(operation, *args, **kwargs)

    async def write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._write(lambda: operation(*args, **kwargs), end_of_call(self._timeout_seconds), _collided)

    async def write_relaxed(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(operation, *args, **kwargs)

    async def one(self, statement: str, values: Values, *, is_repeatable: bool = False) -> Rows:
        step = Query(statement, values)
        ends = end_of_call(self._timeout_seconds)
        if is_repeatable:
            return await self._retrying(lambda connection: self._fetch_alone(connection, step, ends), ends, _may_repeat)
        return await self._autocommitted(lambda connection: self._fetch_alone(connection, step, ends), ends)

    async def write_grouped(self, write: GroupedWrite[R, T], request: R) -> T:
        self._process.check()
        if self._pool is None:
            raise StoreClosedError
        return await self._writes.put(write, request, end_of_call(self._timeout_seconds))

    # -- how they run -------------------------------------------------------------------------------------------

    async def _write(self, steps: Callable[[], Steps[T]], ends: float, may_retry: MayRetry) -> T:
        doubt = _Doubt()

        async def work(connection: Connection) -> T:
            transaction = self._transaction(connection, ends)
            await transaction.start()
            try:
                result = await self._run(connection, steps())
            except Exception:
                if not connection.is_closed():
                    await transaction.rollback()
                raise
            with doubt:
                await transaction.commit()
            return result

        return await self._retrying(work, ends, may_retry, doubt)

    async def _autocommitted(self, fetch: Work[T], ends: float) -> T:
        """A statement that is its own transaction: from when it is sent, nobody knows whether it was done."""
        doubt = _Doubt()

        async def work(connection: Connection) -> T:
            with doubt:
                return await fetch(connection)

        return await self._retrying(work, ends, _collided, doubt)

    async def _retrying(self, work: Work[T], ends: float, may_retry: MayRetry, doubt: _Doubt | None = None) -> T:
        """Until the deadline, and not more often than makes sense."""
        pauses = iter(_RETRY_PAUSES_SECONDS)
        while True:
            try:
                return await self._once(work, ends)
            except Exception as error:
                failure = _failure(error, doubt)
                pause = next(pauses, None)
                if pause is None or not may_retry(error) or seconds_until(ends) <= pause:
                    raise failure from None
            await anyio.sleep(pause)

    async def _once(self, work: Work[T], ends: float) -> T:
        """Once, and again if a pooler lost a prepared statement, which was not run then."""
        self._process.check()
        while True:
            pool = self._pool
            if pool is None:
                raise StoreClosedError
            seconds = seconds_until(ends)
            is_patient = seconds > self._timeout_seconds + 1 and not self._is_pooled
            try:
                async with asyncio.timeout(seconds):
                    return await pool.run(self._patient(work, seconds) if is_patient else work)
            except (asyncpg.PostgresError, StoreClosedError) as error:
                is_retired = pool is not self._pool
                if not is_unprepared(error) and not (is_retired and isinstance(error, StoreClosedError)):
                    raise
                if not is_retired and not self._statement_cache_size:
                    raise
                if not is_retired:
                    self._do_not_prepare()

    def _patient(self, work: Work[T], seconds: float) -> Work[T]:
        """The server's own limits are those of a usual call; a caller that set a later deadline gets it."""

        async def patiently(connection: Connection) -> T:
            await _limit(connection, seconds)
            try:
                return await work(connection)
            finally:
                if not connection.is_closed():
                    await _limit(connection, self._timeout_seconds)

        return patiently

    async def _run(self, connection: Connection, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._fetch(connection, step))
        except StopIteration as done:
            return done.value

    async def _fetch(self, connection: Connection, step: Query | Batch | Statement) -> Rows:
        if isinstance(step, Statement):
            await connection.execute(step.text)
            return ()
        query = self._statements.postgres[step.name]
        if isinstance(step, Batch):
            await connection.executemany(query.text, [query.arguments(values) for values in step.values])
            return ()
        if self._is_distributed:
            return await self._fetch_of_shards(connection, step)
        return await connection.fetch(query.text, *query.arguments(step.values))

    async def _fetch_of_shards(self, connection: Connection, step: Query) -> Rows:
        query = self._statements.postgres[step.name]
        apart = [step.values] if query.by_group is None else values_by_group(step.values, query.by_group)
        sent = query.alone or query
        rows = [row for values in apart for row in await connection.fetch(sent.text, *sent.arguments(values))]
        if query.is_passed_on:
            await connection.execute(passed_on(dict(rows[0].items())))
        return rows

    async def _fetch_alone(self, connection: Connection, step: Query, ends: float) -> Rows:
        """A statement in a transaction of its own. Behind a pooler the driver takes two round trips for one, which may
        go to two backends, unless they are in one transaction.
        """
        if not self._is_told_each_time or self._statements.postgres[step.name].text.startswith("VACUUM"):
            return await self._fetch(connection, step)
        async with self._transaction(connection, ends):
            return await self._fetch(connection, step)

    async def _together_on(self, connection: Connection, steps: Steps[T], ends: float) -> T:
        """Steps of at most one statement."""
        if not self._is_told_each_time:
            return await self._run(connection, steps)
        async with self._transaction(connection, ends):
            return await self._run(connection, steps)

    # -- grouped writes -----------------------------------------------------------------------------------------

    async def _commit(self, batch: Sequence[Waiting]) -> Sequence[object]:
        """All in one statement, where tables are distributed each in its own; again together, those that may be
        repeated, if a lock or a connection failed it.
        """
        if self._is_distributed and len(batch) > 1:
            return [outcome for (outcome,) in await asyncio.gather(*(self._commit([each]) for each in batch))]
        left = [waiting for waiting in batch if waiting.begin()]
        outcomes: dict[Waiting, object] = {}
        pauses = iter(_RETRY_PAUSES_SECONDS)
        while left:
            try:
                return _in_order(batch, outcomes | await self._together(left))
            except Exception as error:
                if not _concerns_all(error):
                    return _in_order(batch, outcomes | await self._each_alone(left))
                pause = next(pauses, None)
                again = [waiting for waiting in left if pause is not None and _may_write_again(waiting, error, pause)]
                outcomes |= {waiting: _outcome(waiting, error) for waiting in left if waiting not in again}
                left = again
            await anyio.sleep(pause or 0.0)
        return _in_order(batch, outcomes)

    async def _together(self, left: Sequence[Waiting]) -> dict[Waiting, object]:
        """What the statement leaves out is done on its own, so that it fails or is refused alone."""
        write, requests = left[0].write, [waiting.request for waiting in left]
        doubt = _Doubt()
        ends = max(waiting.ends for waiting in left)

        async def work(connection: Connection) -> Sequence[object]:
            with doubt:
                return await self._together_on(connection, write.many(requests), ends)

        try:
            answers = await self._once(work, ends)
        except Exception as error:
            if doubt.is_open:
                for waiting in left:
                    waiting.is_in_doubt = True
                raise outcome_unknown() from error
            raise
        done = {waiting: answer for waiting, answer in zip(left, answers, strict=True) if answer is not None}
        return done | await self._each_alone([waiting for waiting in left if waiting not in done])

    async def _each_alone(self, left: Sequence[Waiting]) -> dict[Waiting, object]:
        outcomes = await asyncio.gather(*map(self._alone, left))
        return dict(zip(left, outcomes, strict=True))

    async def _alone(self, waiting: Waiting) -> object:
        write, request = waiting.write, waiting.request
        may_retry = _may_repeat_keyed if write.is_repeatable(request) else _collided
        try:
            return await self._write(lambda: write.alone(request), waiting.ends, may_retry)
        except Exception as error:
            return _outcome(waiting, error)


class _Doubt:
    """Open while a write has been sent and nobody has said whether it was done."""

    is_open = False

    def __enter__(self) -> None:
        self.is_open = True

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.is_open = error is not None and _leaves_doubt(error)


def _leaves_doubt(error: BaseException) -> bool:
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        return sqlstate.startswith(_ENDED_BY_SERVER)
    unheard = (asyncio.CancelledError, TimeoutError, OSError, asyncpg.InterfaceError)
    return isinstance(error, unheard) and not isinstance(error, ValueError)


async def _limit(connection: Connection, seconds: float) -> None:
    """Let the server end a statement, or the wait for a lock, that takes longer."""
    await connection.execute(set_to(limits_of(seconds)))


def _failure(error: Exception, doubt: _Doubt | None = None) -> ReactorMemoryError:
    if doubt is not None and doubt.is_open:
        return outcome_unknown()
    return error if isinstance(error, ReactorMemoryError) else translate(error)


def _outcome(waiting: Waiting, error: Exception) -> Exception:
    """What an earlier try may have done stays unknown when a later one does not reach the server."""
    failure = _failure(error)
    return outcome_unknown() if waiting.is_in_doubt and isinstance(failure, StoreUnavailableError) else failure


def _in_order(batch: Sequence[Waiting], outcomes: Mapping[Waiting, object]) -> Sequence[object]:
    """A write whose caller left before it began has no outcome."""
    return [outcomes.get(waiting) for waiting in batch]


def _collided(error: Exception) -> bool:
    """The server undid the work because of another transaction: trying again is safe."""
    return getattr(error, "sqlstate", None) in _COLLISIONS


def _may_repeat(error: Exception) -> bool:
    """As `_collided`, or the connection broke, so that it is unknown whether the work was done."""
    is_no_use = isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError | PermissionError)
    return _collided(error) or (not is_no_use and _concerns_all(error))


def _may_repeat_keyed(error: Exception) -> bool:
    """As `_may_repeat`, or another write with the same key was faster: the next try finds its answer."""
    return getattr(error, "sqlstate", None) == _KEY_TAKEN or _may_repeat(error)


def _concerns_all(error: Exception) -> bool:
    """A lock, a connection or a deadline: nothing that one of the writes holds is the cause."""
    return isinstance(_failure(error), StoreUnavailableError)


def _may_write_again(waiting: Waiting, error: Exception, pause: float) -> bool:
    is_safe = not isinstance(error, OutcomeUnknownError) or waiting.write.is_repeatable(waiting.request)
    is_no_use = isinstance(error, TimeoutError) or isinstance(error.__cause__, PermissionError)
    return is_safe and not is_no_use and seconds_until(waiting.ends) > pause
