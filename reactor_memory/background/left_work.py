"""Background work of a process whose own saves leave nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.models.requests import WorkReport

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork


class LeftWork:
    """`BackgroundWork` that only looks for work that a process left when it ended, such as half of an erasure. The
    engine that does the work is made when there is some.

    `is_due` answers whether there is some, and is asked about every `poll_seconds`. None: other processes look.
    """

    def __init__(
        self,
        engine: Callable[[], BackgroundWork],
        *,
        is_due: Callable[[], Awaitable[bool]] | None,
        poll_seconds: float,
        random: Callable[[], float],
    ) -> None:
        self._make = engine
        self._is_due = is_due
        self._poll_seconds = poll_seconds
        self._random = random
        self._lock = anyio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._engine: BackgroundWork | None = None

    async def open(self) -> None:
        if self._is_due is not None:
            self._watch = asyncio.create_task(self._until_due(self._is_due), name="reactor-memory-left-work")

    async def close(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def _until_due(self, is_due: Callable[[], Awaitable[bool]]) -> None:
        """A fault ends the watch, too: the engine logs it, and asks less and less often."""
        forget_deadline()
        found = False
        with suppress(Exception):
            while not found:
                await anyio.sleep(self._poll_seconds * (0.75 + self._random() / 2))
                found = await is_due()
        await self._opened_engine()

    async def _opened_engine(self) -> BackgroundWork:
        async with self._lock:
            if self._engine is None:
                engine = self._make()
                await engine.open()
                self._engine = engine
            return self._engine

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        """A save leaves nothing to do."""

    def request(self, session_id: str) -> None:
        """No session has work that can be asked for."""

    async def work_on(self, session_id: str, *, timeout_seconds: float) -> WorkReport:
        return WorkReport()

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        return "idle"

    async def drain(self) -> None:
        if self._engine is not None:
            await self._engine.drain()

    async def cancel(self, session_ids: Sequence[str]) -> None:
        if self._engine is not None:
            await self._engine.cancel(session_ids)

    async def run_once(self) -> int:
        """As `WorkEngine.run_once`."""
        return await (await self._opened_engine()).run_once()
