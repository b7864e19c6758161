"""What is kept of active sessions."""

from __future__ import annotations

from reactor_memory.models import Value


class ActiveSession(Value, frozen=True, kw_only=True):
    """The session in which a user talks to an agent; `session_id` is None after it was deactivated."""

    user_id: str
    agent_name: str
    session_id: str | None
    last_active_at: int
    created_at: int
