"""The operations of retention: which groups nobody uses, and deleting one unless it was used meanwhile."""

from __future__ import annotations

from reactor_memory.core.log import deletion
from reactor_memory.core.log.rows import session_from
from reactor_memory.core.log.walks import list_groups, of_groups
from reactor_memory.database.operations import Query, Steps
from reactor_memory.models import Value


class IdleGroup(Value, frozen=True, kw_only=True):
    """A session with its forks that nobody uses: how many they are, how many messages, and the last activity."""

    session_id: str
    session_count: int
    message_count: int
    updated_at: int


def idle_groups(*, before: int, after: str = "", limit: int = 100) -> Steps[tuple[tuple[IdleGroup, ...], str | None]]:
    """Those among the next `limit` groups behind `after`, in the order of their ids, and behind which group to go on;
    None at the end. A call looks at no more groups, however few of them are idle: where tables are distributed, each
    is asked alone.
    """
    page = yield from list_groups(after=after, limit=limit)
    rows = (yield from of_groups("idle_groups", {"before": before}, page)) if page else ()
    found = [
        IdleGroup(session_id=row[0], session_count=row[1], message_count=row[2], updated_at=row[3])
        for row in sorted(rows, key=lambda row: row[0])
    ]
    return tuple(found), page[-1] if len(page) == limit else None


def delete_idle(
    group_id: str, *, before: int, now: int, purge: bool, forget_in: int | None = None
) -> Steps[tuple[str, ...]]:
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": group_id}))]
    alive = [session for session in group if session.deleted_at is None]
    if not alive or max(session.updated_at for session in alive) >= before:
        return ()
    return (yield from deletion.delete(group_id, alive[0].owner_id, now=now, purge=purge, forget_in=forget_in))
