"""The operations on `background_work`: who works on what under a lease, and what is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.models import LARGEST
from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.requests import EVER, Ahead


def claim(
    session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
) -> Steps[Lease | None]:
    values = {
        "kind": kind,
        "now": now,
        "lease_microseconds": lease_microseconds,
        "by_name": int(wait_microseconds is None),
        "wait_microseconds": wait_microseconds or 0,
        "clock": (yield from _server_clock(now)),
    }
    rows = yield Query("claim", key_of(session_id) | values)
    if not rows:
        return None
    fence, lease_until, attempts = rows[0]
    return Lease(session_id=session_id, kind=kind, fence=fence, lease_until=lease_until, attempts=attempts)


def renew(lease: Lease, *, now: int, lease_microseconds: int) -> Steps[bool]:
    times = {"clock": (yield from _server_clock(now)), "lease_microseconds": lease_microseconds}
    return bool((yield Query("renew", _lease_key(lease) | times)))


def _server_clock(now: int) -> Steps[int]:
    """By which leases are given and expire: the one of the server, else `now`."""
    return (yield Query("server_clock", {"now": now}))[0][0]


def release(lease: Lease, *, due_at: int | None, attempts: int, parked: bool, error: str | None) -> Steps[None]:
    outcome = {"due_at": due_at, "attempts": attempts, "parked": int(parked), "last_error": error}
    yield Query("release", _lease_key(lease) | outcome)


def _lease_key(lease: Lease) -> dict[str, Any]:
    return key_of(lease.session_id) | {"kind": lease.kind, "fence": lease.fence}


def due(kinds: Sequence[str], *, now: int, limit: int, ahead: Ahead = EVER) -> Steps[dict[str, tuple[str, ...]]]:
    """What is over, and what a wrong clock put off for longer than anything is put off: two ranges of each kind."""
    clock = yield from _server_clock(now)
    values = {"clock": clock, "latest_lease": clock + 2 * ahead.lease_microseconds, "limit": limit}
    found: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        rows: list[Row] = []
        for after, until in ((-1, now), (now + 2 * ahead.wait_microseconds, LARGEST)):
            if len(rows) < limit:
                rows += yield Query("due_work", values | {"kind": kind, "after": after, "until": until})
        found[kind] = tuple(row[0] for row in rows[:limit])
    return found


def work_state(session_id: str, kind: str) -> Steps[WorkState | None]:
    rows = yield Query("work_state", key_of(session_id) | {"kind": kind})
    return work_state_from(rows[0]) if rows else None


def list_work(kind: str, *, limit: int = 100) -> Steps[tuple[WorkState, ...]]:
    rows = yield Query("troubled_work", {"kind": kind, "limit": limit})
    return tuple(work_state_from(row) for row in rows)


def work_state_from(row: Row) -> WorkState:
    session_id, kind, due_at, lease_until, fence, attempts, parked, last_error = row
    return WorkState(
        session_id=session_id,
        kind=kind,
        due_at=due_at,
        lease_until=lease_until,
        fence=fence,
        attempts=attempts,
        parked=bool(parked),
        last_error=last_error,
    )
