"""The operations on requests that may be repeated: a repetition gets the first answer."""

from __future__ import annotations

from msgspec import structs

from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.features.sharing.principals import AnsweredRequest

FORGOTTEN_BY_A_CLAIM = 3
"""A claim adds one, so what is old goes faster than it came."""


def claim_request(request: AnsweredRequest, *, now: int, forget_before: int = 0) -> Steps[AnsweredRequest | None]:
    """Begin to work on a request: None if it is new, or was left behind (its lease is over, its fingerprint the same),
    else what is known. Of several claims at once one gets None.

    Every claim forgets a few requests that were begun before `forget_before`, more than the one that it may add, so
    that old ones become fewer without anybody who cleans up.
    """
    yield from forget_requests(before=forget_before, limit=FORGOTTEN_BY_A_CLAIM)
    while True:
        if (yield Query("claim_request", structs.asdict(request) | {"now": now})):
            return None
        rows = yield Query("answered_request", _key(request.principal_id, request.request_key))
        if rows:  # else it was released between the two
            return _request(rows[0])


def answer_request(request: AnsweredRequest) -> Steps[None]:
    """Store status and body, and the group if it is known only now. The first answer stays."""
    yield Query("answer_request", structs.asdict(request))


def release_request(principal_id: str, request_key: str) -> Steps[None]:
    """The request failed and may be repeated. One that was answered is kept."""
    yield Query("release_request", _key(principal_id, request_key))


def forget_requests(*, before: int, limit: int = 1000) -> Steps[int]:
    """Forget those that were begun before this time, the oldest first; how many."""
    return len((yield Query("forget_requests", {"before": before, "limit": limit})))


def _key(principal_id: str, request_key: str) -> dict[str, object]:
    return {"principal_id": principal_id, "request_key": request_key}


def _request(row: Row) -> AnsweredRequest:
    principal_id, request_key, user_id, group_id, fingerprint, status, body, lease_until, created_at = row
    return AnsweredRequest(
        principal_id=principal_id,
        request_key=request_key,
        user_id=user_id,
        group_id=group_id,
        fingerprint=fingerprint,
        status=status,
        body=body,
        lease_until=lease_until,
        created_at=created_at,
    )
