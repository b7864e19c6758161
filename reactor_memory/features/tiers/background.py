"""Tiers that grow by themselves: a kind of background work."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.database.database import Database
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers
from reactor_memory.models.leases import Lease

TIERS = "tiers"

MOST_SESSIONS = 10_000
"""Of so many sessions it is known when to look at them again. Forgetting it costs a look."""


class TierWork:
    """One step for a session whenever more messages than the threshold have no summary.

    Between two steps nobody looks at a session: how many messages may follow before there can be anything to do is
    remembered here.
    """

    def __init__(self, tiers: ProgressiveTiers, *, database: Database) -> None:
        self._tiers = tiers
        self._database = database
        self._last_seqs: dict[str, int] = {}
        self._quiet_until: dict[str, int] = {}

    def wants(self, session_id: str, last_seq: int) -> bool:
        is_due = last_seq > self._quiet_until.get(session_id, self._tiers.auto_threshold)
        if is_due:
            self._last_seqs[session_id] = last_seq
        return is_due

    async def find(self, *, after: str, limit: int) -> Sequence[str]:
        """Sessions that have grown so far that there may be something to do."""
        while True:
            found = await self._database.read_long(
                range_summaries.behind_in_tiers, after=after, threshold=self._tiers.auto_threshold, limit=limit
            )
            wanted = [session_id for session_id, last_seq in found if self.wants(session_id, last_seq)]
            if wanted or not found:
                return wanted
            after = found[-1][0]

    async def step(self, lease: Lease) -> int | None:
        last_seq = self._last_seqs.pop(lease.session_id, 0)
        messages = await self._tiers.summarize_if_due(lease.session_id)
        if len(self._quiet_until) >= MOST_SESSIONS:
            self._quiet_until.clear()
            self._last_seqs.clear()
        self._quiet_until[lease.session_id] = last_seq + messages
        return None

    def forget(self, session_ids: Sequence[str]) -> None:
        """What these sessions were summarised to may be gone, and its messages in view again."""
        for each in session_ids:
            self._quiet_until.pop(each, None)
            self._last_seqs.pop(each, None)
