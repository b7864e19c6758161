"""Summaries that agents post."""

from __future__ import annotations

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import key_of, message_from
from reactor_memory.core.ports import PostRequest, Refold
from reactor_memory.database.operations import Step, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.models import Message, PostedSummary

MESSAGE_COLUMNS = 14
"""Of a row of `messages_to_export`; then comes what a store keeps beside the message."""


def post_summary(request: PostRequest, *, refold: Refold) -> Steps[Message]:
    """Append the summary, and let it rule from now on."""
    batch = request.batch
    session = yield from log.lock_required(batch.session_id, batch.user_id)
    check_until(request.until_seq, session.last_seq)
    appended = yield from log.append(batch)
    key = key_of(batch.session_id)
    if not appended.replayed:
        if request.title is not None:
            yield Step("set_title", key | {"title": request.title})
        posted = PostedSummary(seq=appended.last_seq, until_seq=request.until_seq)
        yield from fact_operations.put_posted(session, posted, now=batch.now, refold=refold)
    (row,) = yield Step("messages_to_export", key | {"after": appended.last_seq - 1, "limit": 1})
    return message_from(row[:MESSAGE_COLUMNS])


def check_until(until_seq: int, last_seq: int) -> None:
    """Raises `InvalidInputError` for a summary that tells of messages that are not there."""
    if not 1 <= until_seq <= last_seq:
        raise InvalidInputError("until_seq", f"must be from 1 to {last_seq}, where this session ends")
