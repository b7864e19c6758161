"""What was deleted is removed when its grace time is over: a kind of background work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.models.leases import Lease

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore

PAGE = 100

PURGE = "purge"


class Purging:
    """Removes the content of sessions that were deleted longer than the grace time ago: work on the store as a whole,
    which needs no lease.
    """

    def __init__(self, messages: MessageStore, *, clock: Clock, grace_seconds: float) -> None:
        self._messages = messages
        self._clock = clock
        self._grace_microseconds = int(grace_seconds * 1e6)

    async def find(self, *, after: str, limit: int) -> tuple[str, ...]:
        """Remove some; one piece of work, under no id, if there may be more."""
        return ("",) if await self._purged(limit) == limit else ()

    async def step(self, lease: Lease) -> int | None:
        return await self._purged(PAGE) or None

    async def _purged(self, limit: int) -> int:
        return await self._messages.purge_deleted(before=self._clock() - self._grace_microseconds, limit=limit)
