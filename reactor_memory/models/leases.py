"""The right to do the work of a conversation, and where that work stands."""

from __future__ import annotations

from reactor_memory.models import Value


class Lease(Value, frozen=True, kw_only=True):
    """The right to do the background work of one conversation until `lease_until`.

    `fence` grows with every lease; a write under an older fence is refused. `attempts` counts failures in a row.
    """

    session_id: str
    kind: str
    fence: int
    lease_until: int
    attempts: int = 0


class WorkState(Value, frozen=True, kw_only=True):
    """Where the background work of a conversation stands. `due_at` None and `parked` True: given up until asked."""

    session_id: str
    kind: str
    due_at: int | None
    lease_until: int
    fence: int
    attempts: int
    parked: bool = False
    last_error: str | None = None
