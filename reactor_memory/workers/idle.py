"""No background work: summaries are switched off."""

from __future__ import annotations

from collections.abc import Sequence


class NoSummaries:
    """`SummaryScheduler` that never has anything to do."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        """Summaries are off, so a longer session changes nothing."""

    def request(self, session_id: str) -> None:
        """Summaries are off, so there is nothing to ask for."""

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        return "idle"

    async def drain(self) -> None:
        """Nothing runs."""

    async def cancel(self, session_ids: Sequence[str]) -> None:
        """Nothing runs."""
