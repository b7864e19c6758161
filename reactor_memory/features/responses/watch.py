"""Noticing how responses change: one task for each response that is read in this process, however many read it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import StoreError
from reactor_memory.features.responses.models import Response, ResponseSignals

WAIT_SECONDS = 10.0
PAUSE_SECONDS = 0.5
"""Before a store that failed is asked again."""

_Key: TypeAlias = tuple[str, str]


class Watch:
    """How a response stands as far as this process knows; `latest` is None when it is not there any more."""

    def __init__(self, latest: Response) -> None:
        self.latest: Response | None = latest
        self.readers = 0
        self._changed = anyio.Event()

    def note(self, latest: Response | None) -> None:
        """Take in how the response stands, unless something newer is known."""
        known = self.latest
        if known is None or (latest is not None and _progress(latest) < _progress(known)):
            return
        self.latest = latest
        if latest != known:
            self.wake()

    def wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def changed(self, known: Response | None, *, timeout_seconds: float) -> bool:
        """Whether it differs from `known`, or everybody was woken, before the timeout."""
        if self.latest != known:
            return True
        with anyio.move_on_after(timeout_seconds):
            await self._changed.wait()
            return True
        return False


class Watches:
    """The responses that are read in this process. What this process itself changes is told by `note`."""

    def __init__(self, signals: ResponseSignals) -> None:
        self._signals = signals
        self._watches: dict[_Key, Watch] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def watching(self, response: Response) -> AsyncGenerator[Watch]:
        key = _key(response)
        if key not in self._watches:
            watch = self._watches[key] = Watch(response)
            self._tasks[key] = asyncio.create_task(self._follow(watch, response))
        watch = self._watches[key]
        watch.note(response)
        watch.readers += 1
        try:
            yield watch
        finally:
            watch.readers -= 1
            if not watch.readers:
                del self._watches[key]
                self._tasks.pop(key).cancel()

    def note(self, response: Response) -> None:
        if watch := self._watches.get(_key(response)):
            watch.note(response)

    def wake_all(self) -> None:
        for watch in self._watches.values():
            watch.wake()

    async def _follow(self, watch: Watch, known: Response | None) -> None:
        """Until nothing can change any more. A store that is away is asked again and again."""
        forget_deadline()
        while known is not None and not known.is_final:
            try:
                watch.note(await self._signals.wait_for_change(known, timeout_seconds=WAIT_SECONDS))
            except StoreError:
                await anyio.sleep(PAUSE_SECONDS)
            known = watch.latest


def _key(response: Response) -> _Key:
    return response.conversation_id, response.response_id


def _progress(response: Response) -> tuple[bool, int, bool, int]:
    """Grows with every change."""
    return response.is_final, response.last_event, response.stop_requested, response.updated_at
