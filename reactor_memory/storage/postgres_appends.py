"""What the statements that append to PostgreSQL take, and what their failure says of the messages."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.protocols import SUMMARIZE, AppendRequest
from reactor_memory.storage import log
from reactor_memory.storage.branches import group_of
from reactor_memory.storage.rows import key_of, to_json
from reactor_memory.storage.steps import Values


def append_values(request: AppendRequest) -> Values:
    """The parameters of `append`: one array for each column of the messages."""
    return {
        **key_of(request.session_id),
        **log.advance_values(request),
        **log.batch_values(request),
        **_message_arrays([request]),
        "kind": SUMMARIZE,
        "work_every": request.work_every,
    }


def append_many_values(requests: Sequence[AppendRequest]) -> Values:
    """The parameters of `append_many`: arrays of the appends too, and to which of them a message belongs."""
    keyed = [request.idempotency_key is not None for request in requests]
    return {
        "group_ids": [group_of(request.session_id) for request in requests],
        "conversation_ids": [request.session_id for request in requests],
        "owner_ids": [request.user_id for request in requests],
        "agent_names": [request.agent_name for request in requests],
        "counts": [len(request.messages) for request in requests],
        "nows": [request.now for request in requests],
        "batch_keys": [request.idempotency_key for request in requests],
        "batch_fingerprints": [
            request.fingerprint if has_key else None for request, has_key in zip(requests, keyed, strict=True)
        ],
        "work_everys": [request.work_every for request in requests],
        "numbers": [number for number, request in enumerate(requests, start=1) for _ in request.messages],
        "positions": [position for request in requests for position, _ in enumerate(request.messages, start=1)],
        **_message_arrays(requests),
        "kind": SUMMARIZE,
    }


def _message_arrays(requests: Sequence[AppendRequest]) -> Values:
    messages = [message for request in requests for message in request.messages]
    return {
        "message_ids": [message.message_id for message in messages],
        "roles": [message.role for message in messages],
        "visibilities": [message.visibility for message in messages],
        "author_ids": [message.author_id for message in messages],
        "contents": [message.content for message in messages],
        "parts": [to_json(message.parts) for message in messages],
        "tool_calls": [to_json(message.tool_calls) for message in messages],
        "tool_call_ids": [message.tool_call_id for message in messages],
        "names": [message.name for message in messages],
        "metadatas": [to_json(message.metadata) for message in messages],
        "token_counts": [message.token_count for message in messages],
        "tokenizers": [message.tokenizer for message in messages],
        "created_ats": [message.created_at for message in messages],
    }


_MAY_HAVE_COMMITTED = ("08", "57", "58", "XX")
"""Classes of SQLSTATE: connection lost, operator intervention, system error, internal error."""


def is_undone(error: Exception) -> bool:
    """The server refused the statement, or never saw it: for certain nothing was stored."""
    sqlstate = getattr(error, "sqlstate", None)
    return isinstance(sqlstate, str) and not sqlstate.startswith(_MAY_HAVE_COMMITTED)
