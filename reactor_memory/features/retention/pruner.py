"""Retention by age: whole sessions that nobody has used for long enough are deleted, with all their forks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.features.erasure.eraser import Aftermath
from reactor_memory.features.retention import operations
from reactor_memory.features.retention.operations import IdleGroup

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock

PAGE = 100


class Pruner:
    """For who runs the store: it asks for no owner. With `purge` content goes at once, else after the grace time."""

    def __init__(
        self,
        *,
        database: Database,
        aftermath: Aftermath,
        background: BackgroundWork,
        clock: Clock,
        purge: bool,
        forget_in: int | None,
    ) -> None:
        self._database = database
        self._aftermath = aftermath
        self._background = background
        self._clock = clock
        self._purge = purge
        self._forget_in = forget_in

    async def idle(self, *, older_than_seconds: float) -> AsyncIterator[IdleGroup]:
        """The sessions of whose group none was active for so long: what `prune` would delete. Changes nothing."""
        before = self._clock() - int(older_than_seconds * 1e6)
        after = ""
        while page := await self._database.read(operations.idle_groups, before=before, after=after, limit=PAGE):
            for group in page:
                yield group
            after = page[-1].session_id

    async def prune(self, *, older_than_seconds: float) -> tuple[str, ...]:
        """Delete them; the ids that went. One that becomes active meanwhile stays. Cut off, it goes on when asked
        again.
        """
        now = self._clock()
        before = now - int(older_than_seconds * 1e6)
        went: list[str] = []
        async for group in self.idle(older_than_seconds=older_than_seconds):
            gone = await self._database.write(
                operations.delete_idle,
                group.session_id,
                before=before,
                now=now,
                purge=self._purge,
                forget_in=self._forget_in,
            )
            await self._forget(gone)
            went += gone
        return tuple(went)

    async def _forget(self, session_ids: Sequence[str]) -> None:
        await self._background.cancel(session_ids)
        if self._purge:
            await self._aftermath.of_sessions(session_ids)
