"""What is kept of notes."""

from __future__ import annotations

from reactor_memory.models import Value


class Notes(Value, frozen=True, kw_only=True):
    """One version of the notes of an agent about a user (Markdown). Version 0 is no notes yet."""

    user_id: str
    agent_name: str
    version: int = 0
    text: str = ""
    author: str | None = None
    created_at: int = 0
