"""The caps on the cost of a summarizer, in tokens that it reads and writes.

The cost is recorded in the store after each answer, so a cap holds across restarts and processes. It is checked before
each call: extractions that run at that moment, here and elsewhere, may still exceed it by one each.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.models.ledger import Spending

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

DAY_MICROSECONDS = 86_400_000_000


def day_of(now: int) -> int:
    """The day of a time in microseconds since the epoch, UTC, as the store counts days."""
    return now // DAY_MICROSECONDS


class SpendingCaps:
    """Tokens at most for one session in all, and on one day (UTC) for all sessions and for those of one user. 0: no
    cap.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        max_tokens_per_session: int,
        max_tokens_per_day: int,
        max_tokens_of_user: int = 0,
    ) -> None:
        self._database = database
        self._clock = clock
        self._per_session = max_tokens_per_session
        self._per_day = max_tokens_per_day
        self._of_user = max_tokens_of_user
        self._today = 0
        self._told: set[str] = set()

    async def are_reached(self, session_id: str) -> bool:
        """Whether no more may be spent for the session now. Says so in the log once a day and session."""
        if not (self._per_session or self._per_day or self._of_user):
            return False
        today = day_of(self._clock())
        reached = self._reached(await self._database.read(fact_operations.read_spending, session_id, day=today))
        if not reached and self._of_user:
            spent = await self._database.read(fact_operations.spent_for_owner, session_id, day=today)
            reached = "quotas.max_summary_tokens_per_day" if spent >= self._of_user else ""
        if reached:
            self._tell(reached, session_id, today)
        return bool(reached)

    async def note(self, session_id: str, tokens: int) -> None:
        """Record tokens that were spent for the session."""
        if tokens > 0:
            await self._database.write(
                fact_operations.add_spending, session_id, day=day_of(self._clock()), tokens=tokens
            )

    async def spent_today(self) -> int:
        """Tokens of all sessions on this day."""
        return (await self._database.read(fact_operations.read_spending, "", day=day_of(self._clock()))).day

    def _reached(self, spent: Spending) -> str:
        if self._per_day and spent.day >= self._per_day:
            return "summary.max_tokens_per_day"
        if self._per_session and spent.session >= self._per_session:
            return "summary.max_tokens_per_session"
        return ""

    def _tell(self, setting: str, session_id: str, today: int) -> None:
        if today != self._today:
            self._today, self._told = today, set()
        of_session = setting != "summary.max_tokens_per_day"
        subject = session_id if of_session else ""
        if subject not in self._told:
            self._told.add(subject)
            fields = {"session_id": session_id} if of_session else {}
            log.warning("spending cap reached, extractive reads on", extra={"reason": setting, **fields})
