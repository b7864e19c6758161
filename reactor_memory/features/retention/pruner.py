"""Retention by age: whole sessions that nobody has used for long enough are deleted, with all their forks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.features.erasure.eraser import Aftermath
from reactor_memory.features.retention import operations
from reactor_memory.features.retention.operations import IdleGroup
from reactor_memory.models.requests import DeletedSessions

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
        after: str | None = ""
        while after is not None:
            page, after = await self._database.read(operations.idle_groups, before=before, after=after, limit=PAGE)
            for group in page:
                yield group

    async def prune(self, *, older_than_seconds: float) -> DeletedSessions:
        """Delete them. One that becomes active meanwhile stays. Cut off, it goes on when asked
        again.
        """
        now = self._clock()
        before = now - int(older_than_seconds * 1e6)
        went, left = list[str](), dict[str, None]()
        async for group in self.idle(older_than_seconds=older_than_seconds):
            gone = await self._database.write(
                operations.delete_idle,
                group.session_id,
                before=before,
                now=now,
                purge=self._purge,
                forget_in=self._forget_in,
            )
            await self._background.cancel(gone)
            left |= dict.fromkeys(await self._aftermath.of_removed(gone) if self._purge else ())
            went += gone
        left |= dict.fromkeys(await self._aftermath.of_files() if self._purge and went else ())
        return DeletedSessions(session_ids=tuple(went), is_scrubbed=not left, left=tuple(left))
