"""The operations on requests that may be repeated (`AnsweredRequestStore`), written once for all SQL stores."""

from __future__ import annotations

from msgspec import structs

from reactor_memory.database.operations import Row, Step, Steps
from reactor_memory.principals import AnsweredRequest

FORGOTTEN_BY_A_CLAIM = 3
"""A claim adds one, so what is old goes faster than it came."""


def claim_request(request: AnsweredRequest, *, now: int, forget_before: int) -> Steps[AnsweredRequest | None]:
    yield from forget_requests(before=forget_before, limit=FORGOTTEN_BY_A_CLAIM)
    while True:
        if (yield Step("claim_request", structs.asdict(request) | {"now": now})):
            return None
        rows = yield Step("answered_request", _key(request.principal_id, request.request_key))
        if rows:  # else it was released between the two
            return _request(rows[0])


def answer_request(request: AnsweredRequest) -> Steps[None]:
    yield Step("answer_request", structs.asdict(request))


def release_request(principal_id: str, request_key: str) -> Steps[None]:
    yield Step("release_request", _key(principal_id, request_key))


def forget_requests(*, before: int, limit: int) -> Steps[int]:
    return len((yield Step("forget_requests", {"before": before, "limit": limit})))


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
