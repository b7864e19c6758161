"""What the statements that append to PostgreSQL take, and what their failure says of the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reactor_memory.protocols import SUMMARIZE, AppendRequest
from reactor_memory.storage import log
from reactor_memory.storage.rows import key_of, message_values
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
    appends = [
        {
            **key_of(request.session_id),
            **log.advance_values(request),
            **log.batch_values(request),
            "work_every": request.work_every,
        }
        for request in requests
    ]
    return {
        **_arrays(appends, _APPEND_ARRAYS),
        "numbers": [number for number, request in enumerate(requests, start=1) for _ in request.messages],
        "positions": [position for request in requests for position, _ in enumerate(request.messages, start=1)],
        **_message_arrays(requests),
        "kind": SUMMARIZE,
    }


def _message_arrays(requests: Sequence[AppendRequest]) -> Values:
    return _arrays([message_values(message) for request in requests for message in request.messages], _MESSAGE_ARRAYS)


def _arrays(rows: Sequence[Values], arrays: Mapping[str, str]) -> Values:
    return {array: [row[column] for row in rows] for array, column in arrays.items()}


_APPEND_ARRAYS = {
    "group_ids": "group_id",
    "conversation_ids": "conversation_id",
    "owner_ids": "owner_id",
    "agent_names": "agent_name",
    "counts": "count",
    "nows": "now",
    "batch_keys": "batch_key",
    "batch_fingerprints": "batch_fingerprint",
    "work_everys": "work_every",
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

_MAY_HAVE_COMMITTED = ("08", "57", "58", "XX")
"""Classes of SQLSTATE: connection lost, operator intervention, system error, internal error."""


def is_undone(error: Exception) -> bool:
    """The server refused the statement, or never saw it: for certain nothing was stored."""
    sqlstate = getattr(error, "sqlstate", None)
    return isinstance(sqlstate, str) and not sqlstate.startswith(_MAY_HAVE_COMMITTED)
