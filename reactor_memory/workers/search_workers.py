"""The background work of search: one conversation at a time for each kind, found by hints and by looking."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from traceback import format_tb
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import (
    EmbeddingError,
    RedactionError,
    SessionDeletedError,
    SessionNotFoundError,
    StoreError,
)
from reactor_memory.models import Lease, Value
from reactor_memory.protocols import Clock, SummaryScheduler, SummaryStore
from reactor_memory.workers.backoff import backoff_seconds

log = logging.getLogger(__name__)

SWEEP_PAGE = 500
RELEASE_SECONDS = 5.0


class IndexingOptions(Value, frozen=True, kw_only=True):
    """`sweep_seconds`: how often to look for what no hint told of, and for what failed."""

    concurrency: int = 2
    sweep_seconds: float = 30.0
    lease_seconds: float = 120.0
    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 300.0


class IndexJob(Protocol):
    """One kind of background work on conversations."""

    @property
    def kind(self) -> str: ...

    async def behind(self, *, after: str, limit: int) -> Sequence[str]:
        """Conversations behind `after`, in the order of their ids, with work to do now."""
        ...

    async def step(self, lease: Lease) -> bool:
        """Do a piece of the work; whether there may be more."""
        ...


class IndexWorker:
    """Does `job` for conversations, as long as there may be more to do, under a lease of its kind.

    A hint (`wake`) is never needed: the job tells which conversations have work to do. What fails is put off, with
    backoff, and holds up no other conversation.
    """

    def __init__(
        self,
        job: IndexJob,
        *,
        leases: SummaryStore,
        clock: Clock,
        random: Callable[[], float],
        options: IndexingOptions,
    ) -> None:
        self._job = job
        self._kind = job.kind
        self._leases = leases
        self._clock = clock
        self._random = random
        self._options = options
        self._runner: asyncio.Task[None] | None = None
        self._group: TaskGroup | None = None
        self._hints: MemoryObjectSendStream[str] | None = None
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._idle = anyio.Event()
        self._sweeping = anyio.Lock()

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start to work. A task of its own holds the task group, so any task may close it."""
        started = anyio.Event()
        self._runner = asyncio.create_task(self._serve(started), name=f"reactor-memory-{self._kind}")
        await started.wait()

    async def close(self) -> None:
        """Cancel what runs: it is whole or not there, and found again by whoever looks next."""
        runner, self._runner = self._runner, None
        if runner is not None and self._group is not None:
            self._group.cancel_scope.cancel()
            await asyncio.shield(runner)

    async def _serve(self, started: anyio.Event) -> None:
        forget_deadline()
        send, receive = anyio.create_memory_object_stream[str](math.inf)
        async with anyio.create_task_group() as group:
            self._group, self._hints = group, send
            for _ in range(self._options.concurrency):
                group.start_soon(self._work, receive)
            group.start_soon(self._sweep_forever)
            started.set()
        self._hints = None
        send.close()
        receive.close()

    # -- what to do ---------------------------------------------------------------------------------------------

    def wake(self, conversation_id: str) -> None:
        """There may be work for this conversation. Returns at once."""
        if conversation_id in self._running:
            self._again.add(conversation_id)
        elif self._hints is not None and conversation_id not in self._waiting:
            self._waiting.add(conversation_id)
            self._hints.send_nowait(conversation_id)

    async def drain(self) -> None:
        """Wait until nothing runs that was hinted at or found."""
        while self._waiting or self._running:
            await self._idle.wait()

    async def sweep(self) -> None:
        """Look for conversations with work to do, and wake them: one look at a time, or what fails would be tried twice
        before it is put off.
        """
        async with self._sweeping:
            after = ""
            while page := await self._job.behind(after=after, limit=SWEEP_PAGE):
                for conversation_id in page:
                    self.wake(conversation_id)
                after = page[-1]
                await self.drain()

    async def _sweep_forever(self) -> None:
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                log.warning("cannot look for what to index", extra={"kind": self._kind, "reason": type(error).__name__})
            await anyio.sleep(self._options.sweep_seconds * (0.75 + self._random() / 2))

    # -- one conversation ---------------------------------------------------------------------------------------

    async def _work(self, hints: MemoryObjectReceiveStream[str]) -> None:
        async for conversation_id in hints:
            self._waiting.discard(conversation_id)
            self._running.add(conversation_id)
            try:
                await self._work_on(conversation_id)
            except Exception as error:
                # A fault of a store or plug-in. What its author wrote into the exception may be the text of a message.
                fields = {"kind": self._kind, "session_id": conversation_id, "reason": type(error).__name__}
                log.error("not indexed\n%s", "".join(format_tb(error.__traceback__)), extra=fields)  # noqa: TRY400
            finally:
                self._ended(conversation_id)

    def _ended(self, conversation_id: str) -> None:
        self._running.discard(conversation_id)
        if conversation_id in self._again:
            self._again.discard(conversation_id)
            self.wake(conversation_id)
        self._idle.set()
        self._idle = anyio.Event()

    async def _work_on(self, conversation_id: str) -> None:
        lease = await self._claim(conversation_id)
        if lease is None:
            return
        due_in: float | None = 0.0
        attempts, reason = lease.attempts, None
        try:
            await self._steps(lease)
            due_in, attempts = None, 0
        except (SessionDeletedError, SessionNotFoundError):
            due_in = None
        except (EmbeddingError, RedactionError, StoreError) as error:
            attempts += 1
            reason = getattr(error, "reason", type(error).__name__)
            due_in = self._pause(attempts)
            fields = {"kind": self._kind, "session_id": conversation_id, "attempts": attempts, "reason": reason}
            log.warning("not indexed, put off", extra=fields)
        finally:
            await self._give_back(lease, due_in, attempts, reason)

    async def _claim(self, conversation_id: str) -> Lease | None:
        return await self._leases.claim(
            conversation_id, self._kind, now=self._clock(), lease_microseconds=self._lease_microseconds
        )

    async def _steps(self, lease: Lease) -> None:
        """A step that could not write lost its lease, or met another writer: what is left is found again."""
        while await self._job.step(lease):
            if not await self._leases.renew(lease, now=self._clock(), lease_microseconds=self._lease_microseconds):
                return

    async def _give_back(self, lease: Lease, due_in: float | None, attempts: int, reason: str | None) -> None:
        due_at = None if due_in is None else self._clock() + int(due_in * 1e6)
        with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS):
            await self._leases.release(lease, due_at=due_at, attempts=attempts, error=reason)

    def _pause(self, attempts: int) -> float:
        return backoff_seconds(
            attempts,
            first_seconds=self._options.backoff_seconds,
            max_seconds=self._options.max_backoff_seconds,
            random=self._random,
        )

    @property
    def _lease_microseconds(self) -> int:
        return int(self._options.lease_seconds * 1e6)


class SearchWorkers:
    """The workers of search as one: none of them if search is off."""

    def __init__(self, workers: Sequence[IndexWorker]) -> None:
        self._workers = workers

    async def open(self) -> None:
        for worker in self._workers:
            await worker.open()

    async def close(self) -> None:
        for worker in self._workers:
            await worker.close()

    def wake(self, conversation_id: str) -> None:
        """There may be new messages in this conversation. Returns at once."""
        for worker in self._workers:
            worker.wake(conversation_id)

    async def drain(self) -> None:
        """Wait until what is known to be behind is indexed, or failed."""
        for worker in self._workers:
            await worker.drain()

    async def catch_up(self) -> None:
        """Index everything that is behind now."""
        for worker in self._workers:
            await worker.sweep()
            await worker.drain()


class HintingScheduler:
    """`SummaryScheduler` that also tells the workers of search of saved messages; all else is left to `inner`."""

    def __init__(self, inner: SummaryScheduler, *, search: SearchWorkers) -> None:
        self._inner = inner
        self._search = search

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        self._inner.messages_saved(session_id, last_seq)
        self._search.wake(session_id)

    def request(self, session_id: str) -> None:
        self._inner.request(session_id)

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        return await self._inner.ensure(session_id, until_seq, timeout_seconds=timeout_seconds)

    async def drain(self) -> None:
        await self._inner.drain()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        await self._inner.cancel(session_ids)
