"""Summaries that agents post."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.branches import ranges_in_branch
from reactor_memory.core.log.rows import MESSAGE_COLUMNS, key_of, message_from, object_from
from reactor_memory.database.operations import Batch, Query, Rows, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.models import BranchRange, Message, Session, Value
from reactor_memory.models.ledger import TITLE_KEY, PostedSummary
from reactor_memory.models.requests import AppendRequest

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class PostRequest(Value, frozen=True, kw_only=True):
    """A summary to append: the one message of `batch` tells what the messages 1..`until_seq` say. `title`, if given,
    becomes the title of the session.
    """

    batch: AppendRequest
    until_seq: int
    title: str | None = None


def post_summary(request: PostRequest, *, refold: LedgerFold) -> Steps[Message]:
    """Append the summary, and let it rule from now on."""
    batch = request.batch
    session = yield from log.lock_required(batch.session_id, batch.user_id)
    check_until(request.until_seq, session.last_seq)
    appended = yield from log.append(batch)
    key = key_of(batch.session_id)
    if not appended.replayed:
        if request.title is not None:
            yield Query("set_title", key | {"title": request.title})
        posted = PostedSummary(seq=appended.last_seq, until_seq=request.until_seq)
        yield from fact_operations.put_posted(session, posted, now=batch.now, refold=refold)
    (row,) = yield Query("messages_to_export", key | {"after": appended.last_seq - 1, "limit": 1})
    return message_from(row[:MESSAGE_COLUMNS])


def post_in_place(request: PostRequest, last: int, *, refold: LedgerFold) -> Steps[tuple[Message, bool]]:
    """Post the summary for the messages up to `last`; and whether that had been done before under its key."""
    batch = request.batch
    known = yield Query("find_batch", key_of(batch.session_id) | {"batch_key": batch.idempotency_key})
    return (yield from post_summary(replace(request, until_seq=last), refold=refold)), bool(known)


def posted_telling_of(group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
    """Where the posted summaries that tell of these messages are stored."""
    rows = yield Query("posted_of_group", {"group_id": group[0].group_id})
    return _about(rows, group, parts)


def take_posted(group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
    """The posted summaries that tell of these messages are none any more, and no session of the group is called as one
    of them said; where their messages are stored.
    """
    rows = yield Query("posted_of_group", {"group_id": group[0].group_id})
    gone = _about(rows, group, parts)
    for part in gone:
        yield from entries.remove(entries.of_session(part.conversation_id), "posted", str(part.start_seq))
    metadata = {(row[0], row[1]): object_from(row[3]) for row in rows}
    titles = [metadata[part.conversation_id, part.start_seq].get(TITLE_KEY) for part in gone]
    yield Batch("set_title", [key_of(each.session_id) | {"title": None} for each in called(titles, group)])
    return gone


def _about(rows: Rows, group: Sequence[Session], parts: Sequence[BranchRange]) -> tuple[BranchRange, ...]:
    shown = {session.session_id for session in group}
    posted = [(row[0], PostedSummary(seq=row[1], until_seq=row[2])) for row in rows if row[0] in shown]
    return posted_about(posted, group, parts)


def posted_about(
    posted: Iterable[tuple[str, PostedSummary]], group: Iterable[Session], parts: Sequence[BranchRange]
) -> tuple[BranchRange, ...]:
    """Where the posted summaries are stored that tell of one of the messages `parts`, or are one of them. `posted` are
    those of the group with the conversations that they were posted in. No part of `parts` is open.

    One that tells of a posted summary tells of all that this one tells of. So none has to be looked for again.
    """
    branches = {session.session_id: session.branch for session in group}
    found: list[BranchRange] = []
    for owner, each in posted:
        shown = ranges_in_branch(branches[owner], parts)
        if any(start <= each.until_seq or start <= each.seq <= end for start, end in shown):
            found.append(BranchRange(conversation_id=owner, start_seq=each.seq, end_seq=each.seq))
    return tuple(found)


def called(titles: Iterable[str | None], group: Iterable[Session]) -> tuple[Session, ...]:
    """The sessions of the group that have one of these titles."""
    known = {title for title in titles if title is not None}
    return tuple(session for session in group if session.title in known)


def check_until(until_seq: int, last_seq: int) -> None:
    """Raises `InvalidInputError` for a summary that tells of messages that are not there."""
    if not 1 <= until_seq <= last_seq:
        raise InvalidInputError("until_seq", f"must be from 1 to {last_seq}, where this session ends")
