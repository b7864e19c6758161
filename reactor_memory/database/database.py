"""The seam: all code asks a database by one of six verbs; `checkpoint` is no operation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, TypeAlias

from reactor_memory.database.operations import GroupedWrite, P, R, Rows, Steps, T, Values

Engine: TypeAlias = Literal["sqlite", "postgresql"]
OnLoss: TypeAlias = Callable[[Sequence[str] | None], None]


class Database(ABC):
    """Runs operations. Every verb ends by the deadline of the call (`reactor_memory.database.deadlines`), and the time
    in queues, for connections and for repetitions counts.

    Errors of a driver become `StoreError`s: `StoreUnavailableError` for what was not done by the deadline and will not
    be, `OutcomeUnknownError` for a write that may have been done, `StoreClosedError` before `open` and after `close`. A
    cancelled caller leaves no transaction open; what it asked for may or may not have been done.
    """

    engine: ClassVar[Engine]
    is_read_only = False
    """Whether `open` found that nothing can be written: then a write raises `StoreReadOnlyError` at once."""
    on_loss: OnLoss | None = None
    """Told, on SQLite and before the write returns, of which groups a write of this object took or changed what a load
    may have read; of None, where it does not say of which. From any thread.
    """

    @abstractmethod
    async def open(self) -> None:
        """Connect, and bring the schema up to date or check it. Raises `SchemaError` and `StoreError`."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun, at most until the deadline, then disconnect. Safe to call twice and without `open`."""

    @abstractmethod
    async def read(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that only reads, on one state of the database."""

    @abstractmethod
    async def read_long(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `read`, for an operation that may take long: no load waits for it."""

    @abstractmethod
    async def write(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in one transaction, durable when this returns; whatever it raises undoes it."""

    @abstractmethod
    async def write_relaxed(self, operation: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `write`, for values that can be made again and that a power failure may therefore take back. It does not
        wait for the disk, and holds up no write that does.
        """

    @abstractmethod
    async def one(self, statement: str, values: Values, *, is_repeatable: bool = False) -> Rows:
        """Run one statement in a transaction of its own. `is_repeatable`: doing it twice is doing it once."""

    @abstractmethod
    async def write_grouped(self, write: GroupedWrite[R, T], request: R) -> T:
        """As `write`, sharing the commit with other writes that wait. One that fails does not fail its neighbours."""

    async def checkpoint(self) -> bool:
        """Let what was overwritten leave the log beside the file, if the engine has one; whether it has left it. It
        stays while somebody reads what was there before.
        """
        return True
