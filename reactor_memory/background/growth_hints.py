"""Which saves may bring work that comes with every so many messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from reactor_memory.models.leases import Lease

MOST_SESSIONS = 4096
"""Of so many sessions it is remembered how far the work on them is."""


class GrowthHints:
    """The parts of a kind of work on sessions longer than `trigger` that reaches further with every `every` messages at
    least: a save that makes a session longer by fewer than that brings nothing to do.

    How far the work is, is known of sessions that this process has worked on. What changes a session otherwise is told
    by a session that has not grown, by a request by name, or by a row that is due.
    """

    def __init__(
        self,
        step: Callable[[Lease], Awaitable[int | None]],
        reached: Callable[[str], Awaitable[int]],
        *,
        trigger: int,
        every: int,
    ) -> None:
        self._step = step
        self._reached = reached
        self._trigger = trigger
        self._every = every
        self._reach: dict[str, int] = {}
        self._length: dict[str, int] = {}

    async def step(self, lease: Lease) -> int | None:
        reach = await self._step(lease)
        if reach is not None:
            self._keep(self._reach, lease.session_id, reach)
        return reach

    async def reached(self, session_id: str) -> int:
        reach = await self._reached(session_id)
        self._keep(self._reach, session_id, reach)
        return reach

    def wants(self, session_id: str, last_seq: int) -> bool:
        has_grown = last_seq > self._length.get(session_id, 0)
        self._keep(self._length, session_id, last_seq)
        reach = self._reach.get(session_id)
        return last_seq > self._trigger and (reach is None or not has_grown or last_seq >= reach + self._every)

    def forget(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            self._reach.pop(session_id, None)
            self._length.pop(session_id, None)

    def _keep(self, known: dict[str, int], session_id: str, seq: int) -> None:
        if len(known) >= MOST_SESSIONS and session_id not in known:
            self._reach.clear()
            self._length.clear()
        known[session_id] = seq
