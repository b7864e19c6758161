"""The operations on what belongs to a user: active sessions, and notes by user and agent.

Nothing here knows whether a session exists, or whose it is. Each operation names its user first. On PostgreSQL the
rows of all others are out of its reach from then on, whatever the statements say (row-level security, for roles that it
binds); the name is forgotten with the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.models import LARGEST, ActiveSession, Notes


def name_user(user_id: str) -> Steps[None]:
    """From here to the end of the transaction only the rows of this user exist."""
    yield Query("name_user", {"user_id": user_id})


def name_all_users() -> Steps[None]:
    """From here to the end of the transaction the rows of all users exist."""
    yield Query("name_all_users", {})


# Active sessions: which one a user talks in to an agent. `last_active_at` never goes back.


def get_active(user_id: str, agent_name: str) -> Steps[ActiveSession | None]:
    """None if there never was one; one that was deactivated has no `session_id`."""
    yield from name_user(user_id)
    rows = yield Query("active_session", {"user_id": user_id, "agent_name": agent_name})
    return _active_session(rows[0]) if rows else None


def get_or_create_active(user_id: str, agent_name: str, candidate: str, *, now: int) -> Steps[ActiveSession]:
    """The active session, which is in use from now on; `candidate` becomes it if there is none. All who ask at once
    get the same answer.
    """
    yield from name_user(user_id)
    values = {"user_id": user_id, "agent_name": agent_name, "session_id": candidate, "now": now}
    rows = yield Query("get_or_create_active", values)
    return _active_session(rows[0])


def switch_active(
    user_id: str, agent_name: str, *, expected: str | None, new: str | None, now: int
) -> Steps[ActiveSession | None]:
    """Make `new` the active session (None: there is none then) if it still is `expected`; else None."""
    yield from name_user(user_id)
    values = {"user_id": user_id, "agent_name": agent_name, "session_id": new, "now": now}
    if expected is None:
        rows = yield Query("activate", values)
    else:
        rows = yield Query("replace_active", values | {"expected": expected})
    return _active_session(rows[0]) if rows else None


def touch_active(user_id: str, agent_name: str, session_id: str, *, now: int) -> Steps[bool]:
    """Note that `session_id` is in use; False if it is not the active one."""
    touched = yield from switch_active(user_id, agent_name, expected=session_id, new=session_id, now=now)
    return touched is not None


def list_active(user_id: str) -> Steps[tuple[ActiveSession, ...]]:
    """All agents of the user, the one used last first."""
    yield from name_user(user_id)
    rows = yield Query("active_sessions_of_user", {"user_id": user_id})
    return tuple(map(_active_session, rows))


def deactivate_active(*, before: int) -> Steps[int]:
    """Deactivate what was used last before this time, of all users; how many."""
    yield from name_all_users()
    rows = yield Query("deactivate_active", {"before": before})
    return len(rows)


# Notes: append-only versions, and version n is followed by n + 1.


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


# Moving to another store


def list_users(*, after: str = "", limit: int = 100) -> Steps[tuple[str, ...]]:
    """The users behind `after`, in their order, of whom notes, active sessions or items are kept."""
    yield from name_all_users()
    rows = yield Query("list_users", {"after": after, "limit": limit})
    return tuple(row[0] for row in rows)


def all_notes(user_id: str) -> Steps[tuple[Notes, ...]]:
    yield from name_user(user_id)
    rows = yield Query("notes_of_user", {"user_id": user_id})
    return tuple(map(_notes, rows))


def import_rows(user_id: str, active: Sequence[ActiveSession], notes: Sequence[Notes]) -> Steps[None]:
    """Store what is not there yet; nothing is replaced."""
    yield from name_user(user_id)
    yield Batch("import_active", [structs.asdict(each) for each in active])
    yield Batch("import_notes", [_notes_values(each) for each in notes])


def _active_session(row: Row) -> ActiveSession:
    user_id, agent_name, session_id, last_active_at, created_at = row
    return ActiveSession(
        user_id=user_id,
        agent_name=agent_name,
        session_id=session_id,
        last_active_at=last_active_at,
        created_at=created_at,
    )


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
