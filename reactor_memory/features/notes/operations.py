"""The operations on notes: append-only versions of an entry of the user, and version n is followed by n + 1."""

from __future__ import annotations

from reactor_memory.database.operations import Steps
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
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
    scope = entries.of_user(user_id)
    found = yield from entries.versions(scope, "notes", agent_name, until=until, limit=limit)
    return tuple(
        Notes(
            user_id=user_id,
            agent_name=agent_name,
            version=each.version,
            text=each.text,
            author=each.author,
            created_at=each.created_at,
        )
        for each in found
    )


def put_notes(notes: Notes) -> Steps[bool]:
    """Store the next version. False, and nothing stored, if `notes.version` is not the one after the newest."""
    entry = Entry(
        kind="notes",
        name=notes.agent_name,
        version=notes.version,
        author=notes.author,
        created_at=notes.created_at,
        text=notes.text,
    )
    return (yield from entries.put_next(entries.of_user(notes.user_id), entry))
