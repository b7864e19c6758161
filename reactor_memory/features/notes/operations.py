"""The operations on notes: append-only versions, and version n is followed by n + 1.

Nothing here knows whether a session exists, or whose it is. Each operation names its user first.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.user_rows import name_user
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.features.notes.models import Notes
from reactor_memory.models import LARGEST


def read_notes(user_id: str, agent_name: str, *, version: int | None = None) -> Steps[Notes]:
    """The newest version, or the one asked for; version 0 if there is none."""
    wanted = LARGEST if version is None else version
    found = yield from list_notes(user_id, agent_name, until=wanted, limit=1)
    if found and wanted in (LARGEST, found[0].version):
        return found[0]
    return Notes(user_id=user_id, agent_name=agent_name)


def list_notes(user_id: str, agent_name: str, *, until: int = LARGEST, limit: int = 50) -> Steps[tuple[Notes, ...]]:
    """The newest versions up to `until`, newest first."""
    yield from name_user(user_id)
    values = {"user_id": user_id, "agent_name": agent_name, "version": until, "limit": limit}
    rows = yield Query("notes", values)
    return tuple(map(_notes, rows))


def put_notes(notes: Notes) -> Steps[bool]:
    """Store the next version. False, and nothing stored, if `notes.version` is not the one after the newest."""
    yield from name_user(notes.user_id)
    rows = yield Query("insert_notes", _notes_values(notes))
    return bool(rows)


def all_notes(user_id: str) -> Steps[tuple[Notes, ...]]:
    yield from name_user(user_id)
    rows = yield Query("notes_of_user", {"user_id": user_id})
    return tuple(map(_notes, rows))


def import_notes(user_id: str, notes: Sequence[Notes]) -> Steps[None]:
    """Store what is not there yet; nothing is replaced."""
    yield from name_user(user_id)
    yield Batch("import_notes", [_notes_values(each) for each in notes])


def _notes(row: Row) -> Notes:
    user_id, agent_name, version, text, author, created_at = row
    return Notes(
        user_id=user_id, agent_name=agent_name, version=version, text=text, author=author, created_at=created_at
    )


def _notes_values(notes: Notes) -> dict[str, object]:
    return {
        "user_id": notes.user_id,
        "agent_name": notes.agent_name,
        "version": notes.version,
        "notes": notes.text,
        "author": notes.author,
        "created_at": notes.created_at,
    }
