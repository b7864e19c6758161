"""Sessions deleted, at once or after a time in which they can be restored.

Each generator is one transaction, or a part of one. Checks that refuse an operation come before its first write.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.branches import root_branch
from reactor_memory.core.log.hooks import hooks
from reactor_memory.core.log.operations import check_owner, lock_rows
from reactor_memory.core.log.rows import key_of, session_from
from reactor_memory.core.log.scrubbing import note_scrub
from reactor_memory.core.log.user_rows import name_all_users
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.models import Session
from reactor_memory.models.requests import FORGET

PURGED = ("delete_messages", "delete_layouts", "delete_work")
"""Statements that remove the content of a session; each gets its key. Hooks remove what features keep of it."""


def delete(
    session_id: str, user_id: str | None, *, now: int, purge: bool, forget_in: int | None = None
) -> Steps[tuple[str, ...]]:
    rows = yield from lock_rows(session_id)
    if not rows:
        raise SessionNotFoundError(session_id)
    session = _deletable(rows[0])
    check_owner(session_id, user_id, session.owner_id)
    return (yield from delete_locked(session, now=now, purge=purge, forget_in=forget_in))


def delete_locked(session: Session, *, now: int, purge: bool, forget_in: int | None = None) -> Steps[tuple[str, ...]]:
    """As `delete`, of a session that `lock` gave."""
    group = [_deletable(row) for row in (yield Query("lock_group", {"group_id": session.group_id}))]
    time = _deletion_time(group, now)
    went: list[str] = []
    for each in with_forks_below(session.session_id, group):
        if (yield Query("mark_deleted", key_of(each) | {"now": time})):
            went.append(each)
        if purge:
            yield from purge_session(each, now, forget_in=forget_in)
    yield from name_all_users()
    for hook in hooks():
        yield from hook.on_delete(session.session_id)
    return tuple(went)


def _deletable(row: Row) -> Session:
    """As `session_from`, and of a damaged row what a deletion has to know."""
    try:
        return session_from(row)
    except DAMAGE:
        session_id, group_id, owner_id, *_, forked_from_id, _, deleted_at = row
        return Session(
            session_id=session_id,
            group_id=group_id,
            owner_id=owner_id,
            last_seq=0,
            branch=root_branch(session_id),
            created_at=0,
            updated_at=0,
            forked_from_id=forked_from_id,
            deleted_at=deleted_at if type(deleted_at) is int else None,
        )


def _deletion_time(group: Sequence[Session], now: int) -> int:
    """No two deletions in a group have the same time, so that it tells what was deleted together."""
    earlier = [session.deleted_at for session in group if session.deleted_at is not None]
    return max(now, max(earlier, default=0) + 1)


def with_forks_below(session_id: str, group: Sequence[Session]) -> tuple[str, ...]:
    """The session and its forks, their forks and so on: parents before children."""
    children: dict[str | None, list[str]] = {}
    for session in group:
        children.setdefault(session.forked_from_id, []).append(session.session_id)
    found = [session_id]
    for each in found:
        found += children.get(each, ())
    return tuple(found)


def purge_session(session_id: str, now: int, *, forget_in: int | None = None) -> Steps[bool]:
    """Remove the content of a deleted session and what is derived from it, unless that was done; whether it was now.

    With `forget_in` it is also noted that something is kept elsewhere: whoever finds the note so many microseconds
    later takes that away, if it was not done before.
    """
    if not (yield Query("mark_purged", key_of(session_id) | {"now": now})):
        return False
    yield from name_all_users()
    for query in PURGED:
        yield Query(query, key_of(session_id))
    for hook in hooks():
        yield from hook.on_purge(session_id)
    yield from note_scrub(now)
    if forget_in is not None:
        yield Query("note_forgetting", key_of(session_id) | {"kind": FORGET, "due_at": now + forget_in})
    return True


def purge_deleted(*, before: int, limit: int, forget_in: int | None = None) -> Steps[int]:
    purged = 0
    rows = yield Query("sessions_to_purge", {"before": before, "limit": limit})
    for _, session_id, deleted_at in rows:
        purged += yield from purge_session(session_id, deleted_at, forget_in=forget_in)
    return purged
