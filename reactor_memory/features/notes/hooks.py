"""What becomes of notes when their user is forgotten."""

from __future__ import annotations

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.database.operations import Batch, Query, Steps


class NotesHook(LogHook):
    def on_user_forgotten(self, user_id: str, now: int) -> Steps[int]:
        """An empty version stays behind the notes of each agent: what was to follow an older one is refused."""
        agents = yield Query("newest_notes_of_user", {"user_id": user_id})
        notes = yield Query("delete_notes_of_user", {"user_id": user_id})
        ends = [{"user_id": user_id, "agent_name": row[0], "version": row[1] + 1, "now": now} for row in agents]
        yield Batch("end_notes", ends)
        return len(notes)


HOOK = NotesHook()
