"""Noticing that a session was summarised without being asked for."""

from __future__ import annotations


class CoverageWatch:
    """Remembers for how many messages of the session summaries stood when it was last looked at."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] | None = None

    def note(self, session_id: str, covered: int) -> None:
        """This much is known: it is no news."""
        self._seen = (session_id, covered)

    def look(self, session_id: str, covered: int) -> str | None:
        """A line about what has grown since the last look at this session; None for a first look."""
        seen, self._seen = self._seen, (session_id, covered)
        if seen is None or seen[0] != session_id or seen[1] >= covered:
            return None
        return f"summarised by itself: messages covered {seen[1]:,} → {covered:,}"
