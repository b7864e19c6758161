"""The operations on the log of messages (`MessageStore`).

Each generator is one transaction. Checks that refuse an operation come before its first write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from reactor_memory.core import log
from reactor_memory.core.log.branches import clipped_between, group_of
from reactor_memory.core.log.rows import (
    checked_messages_from,
    key_of,
    message_values,
    messages_from,
    pin_from,
    session_from,
    stored_bytes,
    to_json,
)
from reactor_memory.database.operations import Batch, Query, Row, Rows, Steps, bounded
from reactor_memory.errors import (
    IdempotencyConflictError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.models import LARGEST, BranchRange, Message, Pin, Session, is_posted_summary
from reactor_memory.models.requests import (
    STEP_KEYS,
    SUMMARIZE,
    Appended,
    AppendRequest,
    BackgroundRows,
    ContextQuery,
    ContextRows,
    turn_of_step,
)
from reactor_memory.models.turns import begin_in_order

if TYPE_CHECKING:
    from reactor_memory.models.block_lines import Layout

Wanted: TypeAlias = Literal["in view", "archived too"]
"""Which messages are read. Withdrawn and erased ones never are."""


_FIRST_CHUNK = 64


SESSION_COLUMNS = 11
"""Of a row of `session_with_pins`, where those of a pin follow, and of `session_head`: there, whether the group begins
with a system message and has later ones, whether the session has pins, and how many changes the group had.
"""

SHOWN_ANYWAY = -1
"""Summaries that end behind this hide none of the messages."""

LARGEST_STEP = 100
"""Background work may begin within a step of so many messages and still know whose it is."""

MOST_LEADING = 8
"""So many system messages at the head of a session always stand."""


def check_access(session: Session, user_id: str | None) -> Session:
    owner_id, deleted_at = session.owner_id, session.deleted_at
    if deleted_at is not None or owner_id != user_id:
        check_owner_and_deletion(session.session_id, user_id, owner_id=owner_id, deleted_at=deleted_at)
    return session


def check_owner_and_deletion(
    session_id: str, user_id: str | None, *, owner_id: str | None, deleted_at: int | None
) -> None:
    if deleted_at is not None:
        raise SessionDeletedError(session_id)
    if owner_id is not None:
        check_owner(session_id, user_id, owner_id)


def check_owner(session_id: str, user_id: str | None, owner_id: str | None) -> None:
    if owner_id is not None and owner_id != user_id:
        raise SessionOwnershipError(session_id)


def _first_session(rows: Rows) -> Session | None:
    return session_from(rows[0]) if rows else None


def find_session(session_id: str) -> Steps[Session | None]:
    """Whoever owns it, deleted or not."""
    return _first_session((yield Query("session", key_of(session_id))))


def find(session_id: str, user_id: str | None) -> Steps[Session | None]:
    session = yield from find_session(session_id)
    return session and check_access(session, user_id)


def find_with_pins(session_id: str, user_id: str | None) -> Steps[tuple[Session | None, tuple[Pin, ...]]]:
    rows = yield Query("session_with_pins", key_of(session_id))
    if not rows:
        return None, ()
    session = check_access(session_from(rows[0][:SESSION_COLUMNS]), user_id)
    pins = [pin_from(row[SESSION_COLUMNS:]) for row in rows if row[SESSION_COLUMNS] is not None]
    return session, tuple(pins)


# Appending


def append(request: AppendRequest) -> Steps[Appended]:
    key = key_of(request.session_id)
    rows = [message_values(message) for message in request.messages]
    counted = {**key, **advance_values(request, rows), "batch_key": request.idempotency_key}
    advanced = (yield Query("advance", counted)) or (yield Query("begin", counted))
    if not advanced:
        return (yield from _not_advanced(request))
    appended = appended_until(request, int(advanced[0][0]))
    yield Batch("insert_message", placed_rows(request, rows, appended.first_seq))
    if _passes_multiple(appended, request.work_every):
        yield Query("make_due", key | {"kind": SUMMARIZE, "now": request.now})
    return appended


def _not_advanced(request: AppendRequest) -> Steps[Appended]:
    """The first answer to the key of the request, unless it is refused."""
    yield from require(request.session_id, request.user_id)
    known = yield Query("find_batch", key_of(request.session_id) | {"batch_key": request.idempotency_key})
    return replay(request, *known[0])


def advance_values(request: AppendRequest, rows: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """`rows`: the `message_values` of the batch."""
    return {
        "owner_id": request.user_id,
        "agent_name": request.agent_name,
        "count": len(request.messages),
        "stored_bytes": stored_bytes(rows),
        "now": request.now,
        "last_budget": request.last_budget,
    }


def appended_until(request: AppendRequest, last_seq: int) -> Appended:
    return Appended(first_seq=last_seq - len(request.messages) + 1, last_seq=last_seq)


def replay(request: AppendRequest, first_seq: int, fingerprint: str, size: int) -> Appended:
    """The first answer to the key of the request. Without a fingerprint, content of the batch was erased since."""
    if fingerprint and fingerprint != request.fingerprint:
        raise IdempotencyConflictError(request.session_id, request.idempotency_key or "")
    return Appended(first_seq=first_seq, last_seq=first_seq + size - 1, replayed=True)


def batch_values(request: AppendRequest) -> dict[str, object]:
    """The columns of a batch's first message by which a repetition is recognised."""
    if request.idempotency_key is None:
        return {"batch_key": None, "batch_fingerprint": None, "batch_size": None}
    return {
        "batch_key": request.idempotency_key,
        "batch_fingerprint": request.fingerprint,
        "batch_size": len(request.messages),
    }


_NO_BATCH = {"batch_key": None, "batch_fingerprint": None, "batch_size": None}


def placed_rows(request: AppendRequest, rows: Iterable[Mapping[str, Any]], first_seq: int) -> list[dict[str, object]]:
    key = key_of(request.session_id)
    placed: list[dict[str, object]] = [
        {**key, "seq": seq, **row, **_NO_BATCH} for seq, row in enumerate(rows, start=first_seq)
    ]
    placed[0].update(batch_values(request))
    return placed


def _passes_multiple(appended: Appended, every: int | None) -> bool:
    return every is not None and appended.last_seq // every > (appended.first_seq - 1) // every


# Reading


def read(
    session_id: str, user_id: str | None, *, after: int, until: int | None, last: int | None, limit: int | None
) -> Steps[tuple[Message, ...]]:
    session = yield from find(session_id, user_id)
    if session is None:
        return ()
    return (yield from read_along(session.branch, after=after, until=until, last=last, limit=limit))


def read_originals(
    session_id: str,
    user_id: str | None,
    *,
    after: int = 0,
    until: int | None = None,
    last: int | None = None,
    limit: int | None = None,
) -> Steps[tuple[Message, ...]]:
    """As `MessageStore.read`, with the archived messages."""
    session = yield from require(session_id, user_id)
    return (
        yield from read_along(session.branch, after=after, until=until, last=last, limit=limit, wanted="archived too")
    )


def read_along(
    branch: Sequence[BranchRange],
    *,
    after: int = 0,
    until: int | None = None,
    last: int | None = None,
    limit: int | None = None,
    wanted: Wanted = "in view",
) -> Steps[tuple[Message, ...]]:
    if last is None:
        most = LARGEST if limit is None else limit
        return (yield from _oldest(branch, most, after=after, until=until, wanted=wanted))
    newest = yield from _newest(branch, last, after=after, until=until, wanted=wanted)
    return newest[::-1][:limit]


def read_ranges(session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]) -> Steps[tuple[Message, ...]]:
    session = yield from find(session_id, user_id)
    if session is None or not ranges:
        return ()
    parts = [part for start, end in ranges for part in stored_parts(session.branch, start - 1, end)]
    rows = yield Query("messages_of_ranges", {"group_id": session.group_id, "ranges": ranges_of(parts)})
    return tuple({message.seq: message for message in checked_messages_from(rows)}.values())


def leading_of(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The system messages that a session begins with, of its first messages that are in view."""
    places = enumerate(messages, 1)
    return tuple([each for _, each in takewhile(lambda at: at[1].role == "system" and at[1].seq == at[0], places)])


def read_standing(branch: Sequence[BranchRange]) -> Steps[tuple[tuple[Message, ...], tuple[int, ...]]]:
    """The newest system message behind the first message, of each name, no more than the newest `MOST_LEADING`; and
    where those stand, of what is for all, that it takes the place of. What an agent keeps for itself takes the place of
    its own only.
    """
    newest: dict[tuple[str | None, str | None], StoredPart] = {}
    everything: list[int] = []
    for part in stored_parts(branch, 1, None):
        rows = yield Query("system_messages", part.values())
        for name, kept_by, last, seqs in rows:
            newest[name, kept_by] = StoredPart(part.conversation_id, last, last, SHOWN_ANYWAY)
            everything += () if kept_by is not None else map(int, seqs.split(","))
    if not newest:
        return (), ()
    latest = {part.start_seq for part in newest.values()}
    stands = sorted(newest.values(), key=lambda part: part.start_seq)[-MOST_LEADING:]
    group_id = group_of(branch[0].conversation_id)
    found = messages_from((yield Query("messages_of_ranges", {"group_id": group_id, "ranges": ranges_of(stands)})))
    return tuple(found), tuple(sorted(set(everything) - latest))


@bounded
def read_context(query: ContextQuery) -> Steps[ContextRows]:
    rows = yield Query("session_head", key_of(query.session_id))
    if not rows:
        return ContextRows()
    head = rows[0]
    session = check_access(session_from(head[:SESSION_COLUMNS]), query.user_id)
    begins_with_system, has_standing, has_pins = head[SESSION_COLUMNS:-1]
    _, pins = (yield from find_with_pins(query.session_id, query.user_id)) if has_pins else (None, ())
    leading = leading_of((yield from _oldest(session.branch, MOST_LEADING))) if begins_with_system else ()
    standing, superseded = (yield from read_standing(session.branch)) if has_standing else ((), ())
    if query.trigger_message_count is None:
        newest, steps = yield from _newest_with_before(session.branch, query)
        return ContextRows(
            session=session,
            pins=pins,
            messages=newest,
            leading=leading,
            standing=standing,
            superseded=superseded,
            steps=steps,
        )
    stored = yield from log.context_layouts.stored_layout(query.session_id, query.budget, query.settings_fingerprint)
    layout, damaged = log.context_layouts.read_layout(stored[0]) if stored else (None, ())
    summary = log.summaries.get_summary if query.facts else log.summaries.get_summary_head
    known = yield from summary(query.session_id)
    messages, steps = yield from _newest_for(query, session, layout)
    return ContextRows(
        session=session,
        pins=pins,
        summary=known,
        layout=layout,
        messages=messages,
        leading=leading,
        standing=standing,
        superseded=superseded,
        damaged=damaged,
        steps=steps,
    )


def read_before(
    branch: Sequence[BranchRange], query: ContextQuery
) -> Steps[tuple[tuple[Message, ...], dict[int, int]]]:
    """The newest messages before the place of the query, oldest first, and their `read_steps`."""
    messages = yield from read_along(branch, until=(query.before_seq or 1) - 1, last=query.most_before)
    return messages, (yield from read_steps(branch, messages))


def read_steps(
    branch: Sequence[BranchRange], messages: Sequence[Message], *, within_batch: int = 0
) -> Steps[dict[int, int]]:
    """Of messages, oldest first, where the turn begins whose steps they are; read if one may go on behind the beginning
    of another. With `within_batch` always, and the first of them may stand within a batch, that far behind where it
    begins.
    """
    if not messages or not (within_batch or messages[0].seq != 1 or _begin_twice(messages)):
        return {}
    parts = stored_parts(branch, max(0, (messages[0].seq or 1) - 1 - within_batch), messages[-1].seq)
    group_id = group_of(branch[-1].conversation_id)
    values = {"group_id": group_id, "ranges": ranges_of(parts), "pattern": STEP_KEYS}
    return _steps_of((yield Query("steps", values)))


def _begin_twice(messages: Sequence[Message]) -> bool:
    """Whether users speak more than once: then a turn may go on behind the next one, though its words look complete."""
    return sum(message.role == "user" for message in messages) > 1


def _steps_of(batches: Iterable[Row]) -> dict[int, int]:
    """Of batches (where they begin, their keys and sizes), those that turns stored while they ran."""
    steps: dict[int, int] = {}
    for seq, key, size in batches:
        first_seq = turn_of_step(key)
        if first_seq is not None:
            steps.update(dict.fromkeys(range(seq, seq + size), first_seq))
    return steps


_MessagesAndSteps: TypeAlias = tuple[tuple[Message, ...], dict[int, int]]
"""Oldest first, with their `read_steps`."""


def _newest_for(query: ContextQuery, session: Session, layout: Layout | None) -> Steps[_MessagesAndSteps]:
    if session.last_seq <= (query.trigger_message_count or 0):
        return (yield from _newest_with_before(session.branch, query))
    if layout is None or query.facts:
        messages = (yield from _newest_within(session.branch, query))[::-1]
        return messages, (yield from read_steps(session.branch, messages))
    return (yield from _newest_from(session.branch, layout.window_start_seq, query.max_messages))


def _newest_with_before(branch: Sequence[BranchRange], query: ContextQuery) -> Steps[_MessagesAndSteps]:
    """With those before them where it is not certain that what is shown begins among them."""
    newest, steps = yield from _newest_with_steps(branch, query.last_count)
    if not query.before_count or len(newest) < query.last_count or _begins_among(newest, steps):
        return newest, steps
    before = yield from _newest(branch, query.before_count, until=(newest[0].seq or 1) - 1)
    messages = before[::-1] + newest
    return messages, (yield from read_steps(branch, messages))


def _newest_with_steps(branch: Sequence[BranchRange], limit: int, *, after: int = 0) -> Steps[_MessagesAndSteps]:
    """In one statement, where they lie in one part and none between them is out of view: that may begin a step."""
    if branch and (len(branch) == 1 or after >= branch[-1].start_seq - 1):
        newest = branch[-1]
        end_seq = LARGEST if newest.end_seq is None else newest.end_seq
        values: dict[str, Any] = {
            "group_id": group_of(newest.conversation_id),
            "conversation_id": newest.conversation_id,
            "start_seq": max(newest.start_seq, after + 1),
            "end_seq": end_seq,
            "hidden_until": end_seq,
            "limit": limit,
        }
        rows = (yield Query("messages_newest_first_with_batches", values))[::-1]
        if rows and rows[-1][0] - rows[0][0] == len(rows) - 1:
            batches = [(row[0], row[-2], row[-1]) for row in rows if row[-2]]
            return tuple(messages_from(rows)), _steps_of(batches) if batches else {}
    messages = (yield from _newest(branch, limit, after=after))[::-1]
    return messages, (yield from read_steps(branch, messages))


def _begins_among(messages: Sequence[Message], steps: Mapping[int, int]) -> bool:
    """Whether a turn begins among the messages, and none of them belongs to one that began before, out of order."""
    if not begin_in_order(messages):
        return False
    return not steps or min(steps.values()) >= (messages[0].seq or 1)


def _newest_from(branch: Sequence[BranchRange], start: int, limit: int) -> Steps[_MessagesAndSteps]:
    """Down to `start`, or to the one before it if that went out of view."""
    newest, steps = yield from _newest_with_steps(branch, limit, after=start - 1)
    if len(newest) == limit or (newest and newest[0].seq == start):
        return newest, steps
    newest = (yield from _newest(branch, 1, until=start - 1)) + newest
    return newest, (yield from read_steps(branch, newest))


def read_background(session_id: str, *, after: int, limit: int) -> Steps[BackgroundRows]:
    session = yield from find_session(session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    if session.deleted_at is not None:
        raise SessionDeletedError(session_id)
    messages = yield from _oldest(session.branch, limit, after=after, wanted="archived too")
    steps = (yield from read_steps(session.branch, messages, within_batch=LARGEST_STEP)) if limit > 1 else {}
    return BackgroundRows(session=session, messages=messages, steps=steps)


class StoredPart(NamedTuple):
    """Where some messages of a branch are stored. Summaries that end behind `hidden_until` hide none of them."""

    conversation_id: str
    start_seq: int
    end_seq: int
    hidden_until: int

    def values(self) -> dict[str, Any]:
        conversation_id, start_seq, end_seq, hidden_until = self
        return {
            "group_id": group_of(conversation_id),
            "conversation_id": conversation_id,
            "start_seq": start_seq,
            "end_seq": end_seq,
            "hidden_until": hidden_until,
        }


def stored_parts(
    branch: Sequence[BranchRange], after: int, until: int | None, wanted: Wanted = "in view"
) -> list[StoredPart]:
    """Where the messages with `after` < seq <= `until` are stored."""
    if len(branch) == 1 and not after and until is None and branch[0].end_seq is None:  # nearly every load
        whole = branch[0]
        return [StoredPart(whole.conversation_id, whole.start_seq, LARGEST, LARGEST if wanted == "in view" else 0)]
    return [
        StoredPart(
            part.conversation_id,
            part.start_seq,
            _or_everything(part.end_seq),
            _or_everything(whole.end_seq) if wanted == "in view" else 0,
        )
        for whole, part in clipped_between(branch, after, until)
    ]


def _or_everything(end_seq: int | None) -> int:
    return LARGEST if end_seq is None else end_seq


def ranges_of(parts: Sequence[StoredPart]) -> str:
    """The parts as one value of a query."""
    return to_json(parts) or "[]"


def _oldest(
    branch: Sequence[BranchRange],
    limit: int,
    *,
    after: int = 0,
    until: int | None = None,
    wanted: Wanted = "in view",
) -> Steps[tuple[Message, ...]]:
    """Oldest first."""
    parts = stored_parts(branch, after, until, wanted=wanted)
    steps = read_parts("messages_oldest_first", "messages_of_ranges", parts, limit, decoded=checked_messages_from)
    return (yield from steps)


def _newest(
    branch: Sequence[BranchRange],
    limit: int,
    *,
    after: int = 0,
    until: int | None = None,
    wanted: Wanted = "in view",
) -> Steps[tuple[Message, ...]]:
    """Newest first."""
    parts = stored_parts(branch, after, until, wanted=wanted)
    return (yield from read_parts("messages_newest_first", "messages_of_ranges", parts[::-1], limit))


def read_parts(
    alone: str,
    together: str,
    parts: Sequence[StoredPart],
    limit: int,
    *,
    decoded: Callable[[Rows], list[Message]] = messages_from,
    **shared: object,
) -> Steps[tuple[Message, ...]]:
    """The first `limit` messages of `parts`, which are in the order of the messages that are wanted. `alone` is the
    query of one part, `together`, oldest first, of several: so a few statements read them, whatever their number.
    `shared`: values of both.
    """
    if len(parts) == 1:  # that of nearly every load
        return tuple(decoded((yield Query(alone, {**shared, **parts[0].values(), "limit": limit}))))
    found: list[Message] = []
    size = limit
    while parts and len(found) < limit:
        count = _how_many_within(parts, size)
        if count > 1:
            group_id = group_of(parts[0].conversation_id)
            rows = yield Query(together, shared | {"group_id": group_id, "ranges": ranges_of(parts[:count])})
            in_order = rows if parts[0].start_seq < parts[1].start_seq else rows[::-1]
        else:
            in_order = yield Query(alone, shared | parts[0].values() | {"limit": limit - len(found)})
        found += decoded(in_order)
        parts, size = parts[max(1, count) :], size * 2
    return tuple(found[:limit])


def _how_many_within(parts: Sequence[StoredPart], size: int) -> int:
    """Of how many of the first parts all positions together are no more than `size`."""
    taken = accumulate(part.end_seq - part.start_seq + 1 for part in parts)
    return sum(1 for _ in takewhile(lambda positions: positions <= size, taken))


def counted_tokens(message: Message, query: ContextQuery) -> int:
    """What a message takes of the tokens that a query allows."""
    return min(message.token_count or 0, query.max_message_tokens) + query.overhead


def _newest_within(branch: Sequence[BranchRange], query: ContextQuery) -> Steps[tuple[Message, ...]]:
    """Newest first, up to the message that passes `max_tokens`; read in chunks, so that little is read in vain."""
    window: list[Message] = []
    tokens, chunk, before = 0, _FIRST_CHUNK, LARGEST
    while len(window) < query.max_messages:
        wanted = min(chunk, query.max_messages - len(window))
        newest = yield from _newest(branch, wanted, until=before - 1)
        for message in newest:
            window.append(message)
            tokens += 0 if is_posted_summary(message) else counted_tokens(message, query)
            if tokens > query.max_tokens:
                return tuple(window)
        if len(newest) < wanted:
            break
        before, chunk = window[-1].seq or 1, chunk * 2
    return tuple(window)


# Changing what is in view


def lock(session_id: str) -> Steps[Session | None]:
    """The session, after the root of its group was locked against all other changes of the group's shape."""
    return _first_session((yield from lock_rows(session_id)))


def lock_rows(session_id: str) -> Steps[Rows]:
    """As `lock`, as it is stored."""
    root_id = group_of(session_id)
    rows = yield Query("lock_session", key_of(root_id))
    if session_id != root_id:
        rows = yield Query("lock_session", key_of(session_id))
    return rows


def require(session_id: str, user_id: str | None) -> Steps[Session]:
    session = yield from find(session_id, user_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    return session


def lock_required(session_id: str, user_id: str | None) -> Steps[Session]:
    """The session, after `lock`. Raises what `MessageStore` promises of a session that may not be changed."""
    session = yield from lock(session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    return check_access(session, user_id)
