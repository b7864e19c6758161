"""How the directory of sessions is wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from reactor_memory.features.active_sessions.directory import SessionDirectory


def session_directory(**parts: Any) -> SessionDirectory:
    from reactor_memory.features.active_sessions.directory import SessionDirectory

    return SessionDirectory(**parts, new_id=lambda: str(uuid4()))
