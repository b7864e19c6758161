"""`reactor-memory worker`: a process that only does the background work of a database."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from reactor_memory.errors import StoreError
from reactor_memory.protocols import SUMMARIZE, Clock, MessageStore, SummaryScheduler, SummaryStore

log = logging.getLogger(__name__)


class WorkPoller:
    """Finds due work by looking, so that a lost hint costs one poll and never a summary."""

    def __init__(
        self,
        *,
        workers: SummaryScheduler,
        messages: MessageStore,
        summaries: SummaryStore,
        clock: Clock,
        random: Callable[[], float],
        poll_seconds: float,
        delete_grace_seconds: float,
        batch: int = 50,
    ) -> None:
        self._workers = workers
        self._messages = messages
        self._summaries = summaries
        self._clock = clock
        self._random = random
        self._poll_seconds = poll_seconds
        self._delete_grace_seconds = delete_grace_seconds
        self._batch = batch

    async def run(self) -> None:
        """Poll until cancelled. A database that is away is asked again."""
        while True:
            found = 0
            try:
                found = await self.run_once()
            except StoreError as error:
                log.warning("cannot look for work", extra={"reason": type(error).__name__})
            if found < self._batch:
                await anyio.sleep(self._poll_seconds * (0.75 + self._random() / 2))

    async def run_once(self) -> int:
        """Do what is due now, remove what was deleted long enough ago; how many sessions are not due any more.

        What still is, failed, or nobody here does it: asking for it at once again would change nothing.
        """
        due = await self._summaries.due(SUMMARIZE, now=self._clock(), limit=self._batch)
        for session_id in due:
            self._workers.request(session_id)
        await self._workers.drain()
        before = self._clock() - int(self._delete_grace_seconds * 1e6)
        await self._messages.purge_deleted(before=before)
        left = await self._summaries.due(SUMMARIZE, now=self._clock(), limit=self._batch) if due else ()
        return len(set(due) - set(left))
