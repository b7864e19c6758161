"""The operations on active sessions: which one a user talks in to an agent. `last_active_at` never goes back.

Nothing here knows whether a session exists, or whose it is. Each operation names its user first.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from reactor_memory.core.log.user_rows import name_all_users, name_user
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.features.active_sessions.models import ActiveSession


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


def import_active(user_id: str, active: Sequence[ActiveSession]) -> Steps[None]:
    """Store what is not there yet; nothing is replaced."""
    yield from name_user(user_id)
    yield Batch("import_active", [structs.asdict(each) for each in active])


def _active_session(row: Row) -> ActiveSession:
    user_id, agent_name, session_id, last_active_at, created_at = row
    return ActiveSession(
        user_id=user_id,
        agent_name=agent_name,
        session_id=session_id,
        last_active_at=last_active_at,
        created_at=created_at,
    )
