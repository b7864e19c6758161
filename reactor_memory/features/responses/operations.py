"""The operations on responses that are being written, as `ResponseStore` names them.

Whoever changes a response holds its row first. A response begins only while its conversation is there, held as well,
and a purge takes the rows of responses before those of their pieces: so nothing of it stays or comes back.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from reactor_memory.core.log.rows import key_of, session_from
from reactor_memory.database.operations import Batch, Query, Row, Steps, Values
from reactor_memory.errors import SessionDeletedError, SessionNotFoundError
from reactor_memory.features.responses.models import Addition, Ending, Piece, Response, with_pieces


def start_response(response: Response, *, keep_until: int) -> Steps[Response]:
    yield from _require_conversation(response.conversation_id)
    known = yield from get_response(response.conversation_id, response.response_id)
    if known is not None:
        return known
    key = key_of(response.conversation_id)
    yield Query("supersede_responses", key | {"now": response.created_at, "keep_until": keep_until})
    rows = yield Query("insert_response", _values(response))
    return structs.replace(response, fence=rows[0][0])


def _require_conversation(conversation_id: str) -> Steps[None]:
    rows = yield Query("lock_session", key_of(conversation_id))
    if not rows:
        raise SessionNotFoundError(conversation_id)
    if session_from(rows[0]).deleted_at is not None:
        raise SessionDeletedError(conversation_id)


def append_pieces(addition: Addition) -> Steps[Response | None]:
    response = yield from _lock(addition.conversation_id, addition.response_id)
    if response is None or not response.is_open(addition):
        return response
    added, pieces = with_pieces(response, addition)
    key = _key(response)
    yield Batch("insert_piece", [key | {"event": piece.event, "text": piece.text} for piece in pieces])
    yield Query("update_response", _values(added))
    return added


def finish_response(ending: Ending) -> Steps[Response | None]:
    response = yield from _lock(ending.conversation_id, ending.response_id)
    if response is None or not response.is_open(ending):
        return response
    ended = structs.replace(
        response,
        state=ending.state,
        message_id=ending.message_id,
        updated_at=ending.now,
        expires_at=ending.expires_at,
    )
    yield Query("update_response", _values(ended))
    return ended


def request_stop(conversation_id: str, response_id: str, *, now: int) -> Steps[Response | None]:
    response = yield from _lock(conversation_id, response_id)
    if response is None or response.stop_requested or not response.is_running(now):
        return response
    asked = structs.replace(response, stop_requested=True, updated_at=now)
    yield Query("update_response", _values(asked))
    return asked


def get_response(conversation_id: str, response_id: str) -> Steps[Response | None]:
    rows = yield Query("response", key_of(conversation_id) | {"response_id": response_id})
    return _response(rows[0]) if rows else None


def list_responses(conversation_ids: Sequence[str], *, limit: int) -> Steps[tuple[Response, ...]]:
    found: list[Response] = []
    for conversation_id in conversation_ids:
        rows = yield Query("newest_responses", key_of(conversation_id) | {"limit": limit})
        found += map(_response, rows)
    return tuple(found)


def read_pieces(conversation_id: str, response_id: str, *, after: int, limit: int) -> Steps[tuple[Piece, ...]]:
    values = {"response_id": response_id, "after": after, "limit": limit}
    rows = yield Query("pieces", key_of(conversation_id) | values)
    return tuple(Piece(event=row[0], text=row[1]) for row in rows)


def forget_responses(conversation_ids: Sequence[str]) -> Steps[None]:
    for conversation_id in conversation_ids:
        yield Query("delete_responses", key_of(conversation_id))
        yield Query("delete_pieces", key_of(conversation_id))


def forget_answers(conversation_ids: Sequence[str], message_ids: Sequence[str]) -> Steps[None]:
    for conversation_id in conversation_ids:
        for message_id in message_ids:
            key = key_of(conversation_id)
            rows = yield Query("delete_answers", key | {"message_id": message_id})
            yield Batch("delete_pieces_of_response", [key | {"response_id": row[1]} for row in rows])


def forget_answers_between(conversation_id: str, start_seq: int, end_seq: int) -> Steps[None]:
    """As `forget_answers`, of the messages that this conversation stores between these positions, whichever
    conversation of the group was answered by them.
    """
    key = key_of(conversation_id)
    rows = yield Query("delete_answers_between", key | {"start_seq": start_seq, "end_seq": end_seq})
    yield Batch("delete_pieces_of_response", [key_of(row[0]) | {"response_id": row[1]} for row in rows])


def remove_expired_responses(*, now: int, keep_microseconds: int, limit: int) -> Steps[int]:
    times = {"now": now, "silent_until": now - keep_microseconds}
    rows = yield Query("expired_responses", times | {"limit": limit})
    removed = 0
    for conversation_id, response_id in rows:
        key = key_of(conversation_id) | {"response_id": response_id}
        if (yield Query("delete_expired_response", key | times)):
            yield Batch("delete_pieces_of_response", [key])
            removed += 1
    return removed


def _lock(conversation_id: str, response_id: str) -> Steps[Response | None]:
    rows = yield Query("lock_response", key_of(conversation_id) | {"response_id": response_id})
    return _response(rows[0]) if rows else None


def _key(response: Response) -> dict[str, str]:
    return key_of(response.conversation_id) | {"response_id": response.response_id}


def _values(response: Response) -> Values:
    return key_of(response.conversation_id) | structs.asdict(response) | {"stop_requested": +response.stop_requested}


def _response(row: Row) -> Response:
    conversation, response, fence, client, producer, state, last_event, size, stop, message, *times = row
    created_at, updated_at, expires_at = times
    return Response(
        conversation_id=conversation,
        response_id=response,
        fence=fence,
        client_id=client,
        producer=producer,
        state=state,
        last_event=last_event,
        size=size,
        stop_requested=bool(stop),
        message_id=message,
        created_at=created_at,
        updated_at=updated_at,
        expires_at=expires_at,
    )
