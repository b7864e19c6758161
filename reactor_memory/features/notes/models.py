"""What is kept of notes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from reactor_memory.features.notes.changes import Refusal
from reactor_memory.models import Value

Status: TypeAlias = Literal["ok", "unchanged", "conflict"] | Refusal


class Notes(Value, frozen=True, kw_only=True):
    """One version of the notes of an agent about a user (Markdown). Version 0 is no notes yet."""

    user_id: str
    agent_name: str
    version: int = 0
    text: str = ""
    author: str | None = None
    created_at: int = 0


class NotesResult(Value, frozen=True, kw_only=True):
    """How an operation ended. `notes` are those that hold now; unless `status` is ``ok`` nothing was stored.

    ``unchanged``: there was nothing to do. ``conflict``: others wrote at the same time. Else it was refused, and
    `message` says why and what to do instead. It may name sections, so it does not belong into a log.
    """

    status: Status
    notes: Notes
    message: str = ""
