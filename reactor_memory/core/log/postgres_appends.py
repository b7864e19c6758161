"""Appends to PostgreSQL in one statement, which is one round trip: of one batch of messages, or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import key_of, message_values
from reactor_memory.database.operations import Query, Steps, Values
from reactor_memory.models.requests import SUMMARIZE, Appended, AppendRequest


def append_many(requests: Sequence[AppendRequest]) -> Steps[Sequence[Appended | None]]:
    """None for an append that the statement left out: `log.append` says why, or does it if that changed since."""
    if len(requests) == 1:
        return [(yield from _append_one(requests[0]))]
    rows = yield Query("append_many", append_many_values(requests))
    last_seqs: dict[int, int] = {row[0] - 1: row[1] for row in rows}
    return [
        log.appended_until(request, last_seqs[place]) if place in last_seqs else None
        for place, request in enumerate(requests)
    ]


def _append_one(request: AppendRequest) -> Steps[Appended | None]:
    rows = yield Query("append", append_values(request))
    if not rows:
        return None
    last_seq, known_seq, known_fingerprint, known_size, owner_id, deleted_at = rows[0]
    if last_seq is not None:
        return log.appended_until(request, last_seq)
    log.check_owner_and_deletion(request.session_id, request.user_id, owner_id=owner_id, deleted_at=deleted_at)
    return log.replay(request, known_seq, known_fingerprint, known_size)


def append_values(request: AppendRequest) -> Values:
    """The parameters of `append`: one array for each column of the messages."""
    rows = [message_values(message) for message in request.messages]
    return {
        **key_of(request.session_id),
        **log.advance_values(request, rows),
        **log.batch_values(request),
        **_arrays(rows, _MESSAGE_ARRAYS),
        "kind": SUMMARIZE,
        "work_every": request.work_every,
    }


def append_many_values(requests: Sequence[AppendRequest]) -> Values:
    """The parameters of `append_many`: arrays of the appends too, and to which of them a message belongs."""
    batches = [[message_values(message) for message in request.messages] for request in requests]
    appends = [
        {
            **key_of(request.session_id),
            **log.advance_values(request, rows),
            **log.batch_values(request),
            "work_every": request.work_every,
        }
        for request, rows in zip(requests, batches, strict=True)
    ]
    return {
        **_arrays(appends, _APPEND_ARRAYS),
        "numbers": [number for number, request in enumerate(requests, start=1) for _ in request.messages],
        "positions": [position for request in requests for position, _ in enumerate(request.messages, start=1)],
        **_arrays(list(chain.from_iterable(batches)), _MESSAGE_ARRAYS),
        "kind": SUMMARIZE,
    }


def _arrays(rows: Sequence[Values], arrays: Mapping[str, str]) -> Values:
    return {array: [row[column] for row in rows] for array, column in arrays.items()}


_APPEND_ARRAYS = {
    "group_ids": "group_id",
    "conversation_ids": "conversation_id",
    "owner_ids": "owner_id",
    "agent_names": "agent_name",
    "counts": "count",
    "stored_bytes": "stored_bytes",
    "nows": "now",
    "batch_keys": "batch_key",
    "batch_fingerprints": "batch_fingerprint",
    "work_everys": "work_every",
    "last_budgets": "last_budget",
}

_MESSAGE_ARRAYS = {
    "message_ids": "message_id",
    "roles": "role",
    "visibilities": "visibility",
    "author_ids": "author_id",
    "contents": "content",
    "parts": "parts",
    "tool_calls": "tool_calls",
    "tool_call_ids": "tool_call_id",
    "names": "name",
    "metadatas": "metadata",
    "token_counts": "token_count",
    "tokenizers": "tokenizer",
    "created_ats": "created_at",
}
