"""What becomes of active sessions when their user is forgotten."""

from __future__ import annotations

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.database.operations import Query, Steps


class ActiveSessionsHook(LogHook):
    def on_user_forgotten(self, user_id: str, now: int) -> Steps[int]:
        return len((yield Query("delete_active_of_user", {"user_id": user_id})))


HOOK = ActiveSessionsHook()
