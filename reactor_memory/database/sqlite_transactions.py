"""Operations inside transactions of a SQLite connection. Everything here runs on the thread that may use it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic

from reactor_memory.database.database import OnLoss
from reactor_memory.database.driver_errors import is_busy, timed_out, translate
from reactor_memory.database.operations import Batch, Query, Rows, Statement, Steps, T
from reactor_memory.database.statements import SqliteQuery
from reactor_memory.errors import ReactorMemoryError

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
SINGLE = ""
"""One statement that reads sees one state of the database without a transaction."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05
_READERS_MILLISECONDS = 250
"""How long a checkpoint, which holds up writers, waits for each kind of readers."""
_VM_STEPS = 20_000
"""Instructions of SQLite between two looks at the clock: a few milliseconds."""


class SqliteSession:
    """A connection, the statements that it knows, and the deadline of what it does at the moment.

    SQLite's own busy timeout is off: a transaction that meets a lock of another process is begun again until its
    deadline, and a statement that runs into its deadline is interrupted.
    """

    def __init__(
        self, connection: sqlite3.Connection, queries: Mapping[str, SqliteQuery], on_loss: OnLoss = lambda _: None
    ) -> None:
        self.connection = connection
        self._queries = queries
        self._on_loss = on_loss
        self._losses: set[str | None] = set()
        """The groups of the running transaction of which something is overwritten; None: of any."""
        self._ends = float("inf")
        connection.set_progress_handler(self._is_late, _VM_STEPS)

    def _is_late(self) -> bool:
        return monotonic() > self._ends

    def interrupt(self) -> None:
        """End what runs, from another thread; nothing, if the connection is closed meanwhile."""
        with suppress(sqlite3.ProgrammingError):
            self.connection.interrupt()

    def run(self, begin: str, steps: Callable[[], Steps[T]], ends: float) -> T:
        """One operation in one transaction."""
        return self.repeat(partial(self._once, begin, partial(self.run_steps, steps)), ends)

    def read_now(self, begin: str, steps: Steps[T], ends: float) -> T:
        """`run` of an operation that reads and waits for no lock: `StoreUnavailableError` if there is one. All in one
        frame: most of a short read is what surrounds its statements.
        """
        connection, queries = self.connection, self._queries
        if connection.in_transaction:  # a detector of blocking calls refused the end of the one before
            connection.rollback()
        self._ends = ends
        try:
            if begin != SINGLE:
                connection.execute(begin)
            try:
                step = next(steps)
                while True:
                    if isinstance(step, Query):
                        text, arguments, _ = queries[step.name]
                        step = steps.send(connection.execute(text, arguments(step.values)).fetchall())
                    else:
                        step = steps.send(self.execute(step))
            except StopIteration as done:
                if begin != SINGLE:
                    connection.execute("COMMIT")
                return done.value
        except BaseException as error:
            if connection.in_transaction:
                connection.rollback()
            if isinstance(error, Exception) and not isinstance(error, ReactorMemoryError):
                raise translate(error) from (error if isinstance(error, sqlite3.Error) else None)
            raise
        finally:
            self._ends = float("inf")

    def transact(self, begin: str, work: Callable[[], T], ends: float) -> T:
        """`work` in one transaction."""
        return self.repeat(partial(self._once, begin, work), ends)

    def repeat(self, work: Callable[[], T], ends: float) -> T:
        """`work`, from its beginning again while another process holds a lock, until the deadline. Nothing is begun
        after it.
        """
        if monotonic() >= ends:
            raise timed_out()
        pause = _SHORTEST_PAUSE
        self._ends = ends
        try:
            while True:
                try:
                    return work()
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or monotonic() + pause >= ends:
                        raise
                time.sleep(pause)  # noqa: TID251 (on the thread of the connection)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self._ends = float("inf")

    def _once(self, begin: str, work: Callable[[], T]) -> T:
        connection = self.connection
        if connection.in_transaction:  # a detector of blocking calls refused the end of the one before
            connection.rollback()
        if begin == SINGLE:
            return work()
        connection.execute(begin)
        try:
            result = work()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                self._ends = float("inf")
                connection.execute("ROLLBACK")
            raise
        if self._losses:
            self._tell_losses()
        return result

    def run_steps(self, operation: Callable[[], Steps[T]]) -> T:
        """An operation, in the transaction that is open."""
        steps = operation()
        try:
            step = next(steps)
            while True:
                step = steps.send(self.execute(step))
        except StopIteration as done:
            return done.value

    def execute(self, step: Query | Batch | Statement) -> Rows:
        if isinstance(step, Statement):
            return self.connection.execute(step.text).fetchall()
        text, arguments, overwrites = self._queries[step.name]
        if overwrites:
            each_values = [step.values] if isinstance(step, Query) else step.values
            self._losses.update([values.get("group_id") for values in each_values])
        if isinstance(step, Query):
            return self.connection.execute(text, arguments(step.values)).fetchall()
        self.connection.executemany(text, map(arguments, step.values))
        return ()

    def execute_alone(self, step: Query, ends: float) -> Rows:
        """One statement in a transaction of its own, or outside of any, as some need."""
        rows = self.repeat(lambda: self.execute(step), ends)
        self._tell_losses()
        return rows

    def _tell_losses(self) -> None:
        """Once they are committed. What was rolled back is told with the next: that costs a load, and nothing else."""
        losses, self._losses = self._losses, set()
        if losses:
            self._on_loss(None if None in losses else [each for each in losses if each is not None])

    def relaxed(self, work: Callable[[], T]) -> T:
        """Commits inside `work` go to the file, where no end of a process can harm them, but do not wait for the disk.
        The next commit that waits for it takes them along.
        """
        self.pragma("synchronous = NORMAL")
        try:
            return work()
        finally:
            self.pragma("synchronous = FULL")

    def checkpoint(self, ends: float) -> bool:
        """Empty the log into the file. SQLite itself waits for readers, as no writer may begin meanwhile: those that
        come read the file. Whether all of it is empty: not while somebody reads for longer.
        """
        self.pragma(f"busy_timeout = {_READERS_MILLISECONDS}")
        try:
            return not self.repeat(lambda: self.pragma("wal_checkpoint(TRUNCATE)"), ends)
        finally:
            self.pragma("busy_timeout = 0")

    def pragma(self, pragma: str) -> object:
        row = self.connection.execute(f"PRAGMA {pragma}").fetchone()
        return row[0] if row else None
