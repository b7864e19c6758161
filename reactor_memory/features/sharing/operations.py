"""The operations on conversations that people share.

Each generator is one transaction; what changes something writes its audit record, too. Nothing here checks who asks:
that is decided before, by what these operations tell. `user_id` says for whom `access_level` is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from reactor_memory.core.log import deletion, forks
from reactor_memory.core.log import operations as log
from reactor_memory.core.log.branches import group_of, root_branch
from reactor_memory.core.log.paging import PREVIEW_SOURCE_LENGTH, preview_of, title_from
from reactor_memory.core.log.rows import key_of, message_from, object_from, session_from, to_json
from reactor_memory.core.log.user_rows import name_reader, name_user
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Rows, Steps, single
from reactor_memory.errors import (
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SharingConflictError,
)
from reactor_memory.features.sharing.member_operations import add_audit
from reactor_memory.features.sharing.models import (
    NO_QUOTAS,
    AccessLevel,
    AuditRecord,
    Conversation,
    ConversationsQuery,
    MessagesQuery,
    NewConversation,
    NewFork,
    Quotas,
)
from reactor_memory.features.sharing.quotas import (
    check_conversations,
    check_everything,
    check_forks,
    check_stored_bytes,
)
from reactor_memory.models import LARGEST, JsonObject, Message, Session
from reactor_memory.models.requests import INDEX_SEARCH, SUMMARIZE, Appended, AppendRequest

SCANNED = 500
"""Conversations that are read at a time when only some of them count."""

_FIRST_PARTS = 2
"""Of a branch, newest first: its own messages and the newest that it shares."""

# Reading


def get_conversation(
    conversation_id: str, user_id: str | None, *, deleted: bool = False, described: bool = False
) -> Steps[Conversation | None]:
    """A deleted one is None, unless `deleted` is asked for; one that was purged always is. With `described` also the
    preview and the last message that a fork shares.
    """
    if user_id is not None:
        yield from name_user(user_id)
    return (yield from _find(conversation_id, user_id, deleted=deleted, described=described))


@single
def undescribed_conversation(
    conversation_id: str, user_id: str | None, *, deleted: bool = False
) -> Steps[Conversation | None]:
    """As `get_conversation`: what a check of access reads, one row."""
    return get_conversation(conversation_id, user_id, deleted=deleted)


def _find(conversation_id: str, user_id: str | None, *, deleted: bool, described: bool) -> Steps[Conversation | None]:
    rows = yield Query("shared_conversation", key_of(conversation_id) | {"user_id": user_id})
    found = _conversation(rows[0], user_id) if rows else None
    if found is None or (found.session.deleted_at is not None and not deleted):
        return None
    return (yield from _described([found]))[0] if described else found


def list_group(
    group_id: str, user_id: str | None, *, after: tuple[int, str] | None = None, limit: int = LARGEST
) -> Steps[tuple[Conversation, ...]]:
    """The conversations of a group, in the order of their creation, the root first, behind `after`: creation and id of
    the last one seen.
    """
    if user_id is not None:
        yield from name_user(user_id)
    created_at, conversation_id = after or (0, "")
    values = {"user_id": user_id, "created_at": created_at, "conversation_id": conversation_id, "limit": limit}
    rows = yield Query("shared_group", {"group_id": group_id} | values)
    return (yield from _described([_conversation(row, user_id) for row in rows]))


def list_conversations(query: ConversationsQuery) -> Steps[tuple[Conversation, ...]]:
    yield from name_user(query.user_id)
    limit = query.limit if query.text is None and query.agent_names is None else SCANNED
    after = query.after or (LARGEST, "")
    found: list[Conversation] = []
    while len(found) < query.limit:
        rows = yield from _page(query, after, limit)
        found += _matching(rows, query)
        if len(rows) < limit:
            break
        after = _place(rows[-1])
    return (yield from _described(found[: query.limit]))


def _place(row: Row) -> tuple[int, str]:
    session_id, *_ = row
    updated_at = row[_UPDATED_AT]
    return (updated_at if isinstance(updated_at, int) else 0), session_id


def _page(query: ConversationsQuery, after: tuple[int, str], limit: int) -> Steps[Rows]:
    values = {
        "user_id": query.user_id,
        "updated_at": after[0],
        "conversation_id": after[1],
        "only_roots": int(query.mode == "roots"),
        "only_newest": int(query.mode == "latest-fork"),
        "limit": limit,
    }
    return (yield Query("conversations_of_user", values))


def _matching(rows: Rows, query: ConversationsQuery) -> Iterator[Conversation]:
    for row in rows:
        found = _listed(row, query.user_id)
        if (query.text is None or says(found, query.text)) and (
            query.agent_names is None or found.agent_name in query.agent_names
        ):
            yield found


def says(conversation: Conversation, text: str) -> bool:
    """Whether the title or a value of the metadata holds the text, whatever the case of its letters. The databases do
    not agree on letters beyond ASCII, so they are not asked.
    """
    wanted = text.casefold()
    texts = (conversation.session.title or "", *_texts(conversation.metadata))
    return any(wanted in each.casefold() for each in texts)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in cast("JsonObject", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def _conversation(row: Row, user_id: str | None) -> Conversation:
    agent_name, metadata, vectorized_at, access_level = row[log.SESSION_COLUMNS :]
    session = session_from(row[: log.SESSION_COLUMNS])
    is_owner = user_id is not None and session.owner_id == user_id
    return Conversation(
        session=session,
        access_level="owner" if is_owner else access_level,
        agent_name=agent_name,
        metadata=object_from(metadata),
        vectorized_at=vectorized_at,
    )


_UPDATED_AT = 6
"""The place of this column in a row of a session."""


def _listed(row: Row, user_id: str | None) -> Conversation:
    """One whose row is damaged is listed as that: it does not take the others along."""
    try:
        return _conversation(row, user_id)
    except DAMAGE:
        session_id, group_id, owner_id, *_ = row
        times = [each if isinstance(each, int) else 0 for each in row[_UPDATED_AT - 1 : _UPDATED_AT + 1]]
        session = Session(
            session_id=session_id,
            group_id=group_id if isinstance(group_id, str) else session_id,
            owner_id=owner_id if isinstance(owner_id, str) else None,
            last_seq=0,
            branch=root_branch(session_id),
            created_at=times[0],
            updated_at=times[1],
        )
        level: AccessLevel = "owner" if session.owner_id == user_id else "reader"
        return Conversation(session=session, access_level=level, is_damaged=True)


def _described(found: Sequence[Conversation]) -> Steps[tuple[Conversation, ...]]:
    """With previews, and with the last message that each fork shares: a few statements for all of them.

    Of each branch the newest parts are asked first, and twice as many more while they show too little.
    """
    group_ids = sorted({each.session.group_id for each in found if each.access_level is not None})
    newest: list[list[Row]] = [list[Row]() for _ in found]
    asked, count = 0, _FIRST_PARTS
    while wanted := [number for number, each in enumerate(found) if _is_wanting(each, newest[number], asked)]:
        parts = [part for number in wanted for part in _newest_parts(number, found[number].session, asked, count)]
        values = {"parts": to_json(parts), "group_ids": group_ids, "length": PREVIEW_SOURCE_LENGTH}
        for row in (yield Query("newest_shown", values)):
            place: int = row[0]
            newest[place].append(row)
        asked, count = asked + count, count * 2
    return tuple(map(_describe, found, newest))


def _is_wanting(conversation: Conversation, newest: Sequence[Row], asked: int) -> bool:
    """Whether older parts of the branch may show what is not known yet."""
    session = conversation.session
    return asked < len(session.branch) and not any(row[1] < (session.forked_at_seq or LARGEST) for row in newest)


def _newest_parts(number: int, session: Session, asked: int, count: int) -> list[list[object]]:
    """Behind the `asked` newest ones."""
    end = len(session.branch) - asked
    parts = log.stored_parts(session.branch[max(0, end - count) : end], 0, None)
    return [[number, session.group_id, part.conversation_id, part.start_seq, part.end_seq] for part in parts]


def _describe(conversation: Conversation, newest: Sequence[Row]) -> Conversation:
    """`newest`: number, seq, id and text of the newest message that users see, of each part of the branch."""
    forked_at = conversation.session.forked_at_seq or 0
    latest = max(newest, key=lambda row: row[1], default=None)
    shared = max((row for row in newest if row[1] < forked_at), key=lambda row: row[1], default=None)
    text = "" if latest is None else latest[3]
    is_text = isinstance(text, str)
    return replace(
        conversation,
        preview=preview_of(text) if is_text else "",
        is_damaged=conversation.is_damaged or not is_text,
        forked_at_message_id=None if shared is None else shared[2],
    )


def read_visible(query: MessagesQuery) -> Steps[tuple[Message, ...]]:
    if query.user_id is not None:
        yield from name_reader(query.user_id, query.session.group_id)
    own = query.session.session_id
    stored = log.stored_parts(query.session.branch, query.after, query.until)
    parts = [part for part in stored if query.inherit or part.conversation_id == own]
    told: dict[str, Any] = {"client_id": query.client_id, "channel": query.channel}
    return (yield from log.read_parts("visible_messages", "visible_messages_of_ranges", parts, query.limit, **told))


def find_message(session: Session, message_id: str) -> Steps[Message | None]:
    """The message of this id on the branch, whoever may see it."""
    ranges = log.ranges_of(log.stored_parts(session.branch, 0, None))
    values = {"group_id": session.group_id, "ranges": ranges, "message_id": message_id}
    rows = yield Query("message_of_id", values)
    return message_from(rows[0]) if rows else None


# Creating and naming


def create_conversation(new: NewConversation, audit: AuditRecord, quotas: Quotas = NO_QUOTAS) -> Steps[Conversation]:
    """The conversation; one of this id and owner that is there already is left as it is and returned.

    Raises `SessionOwnershipError`, `SessionDeletedError` or `QuotaExceededError`.
    """
    values = {
        "owner_id": new.owner_id,
        "agent_name": new.agent_name,
        "title": new.title,
        "metadata": to_json(new.metadata),
        "now": new.now,
    }
    if (yield Query("create_conversation", key_of(new.conversation_id) | values)):
        yield from check_conversations(new.owner_id, quotas)
        yield from add_audit(audit)
    yield from log.require(new.conversation_id, new.owner_id)
    return (yield from _present(new.conversation_id, new.owner_id))


def _present(conversation_id: str, user_id: str | None) -> Steps[Conversation]:
    if user_id is not None:
        yield from name_reader(user_id, group_of(conversation_id))
    found = yield from _find(conversation_id, user_id, deleted=False, described=True)
    if found is None:
        raise SessionDeletedError(conversation_id)
    return found


def fork_conversation(
    new: NewFork, audit: AuditRecord, quotas: Quotas = NO_QUOTAS
) -> Steps[tuple[Conversation, Appended | None]]:
    """Create the branch and its first message; one of this id is returned as it is."""
    parent = yield from log.lock(new.parent_id)
    if parent is None:
        raise SessionNotFoundError(new.parent_id)
    known = yield from log.find_session(new.fork_id)
    if known is None:
        yield from _fork(new, parent)
        yield from check_forks(parent.owner_id, quotas)
        yield from add_audit(audit)
    elif (known.forked_from_id, known.forked_at_seq) != (new.parent_id, new.at_seq):
        raise InvalidInputError("fork_id", "is the one of another fork")
    appended = None if new.first is None else (yield from _append_first(new.first, quotas))
    yield from title_conversation(new.fork_id)
    return (yield from _present(new.fork_id, parent.owner_id)), appended


def _append_first(first: AppendRequest, quotas: Quotas) -> Steps[Appended]:
    appended = yield from log.append(first)
    yield from check_stored_bytes(first.user_id, quotas)
    return appended


def _fork(new: NewFork, parent: Session) -> Steps[None]:
    described = yield from _present(new.parent_id, parent.owner_id)
    yield from forks.fork(new.parent_id, parent.owner_id, at_seq=new.at_seq, fork_id=new.fork_id, now=new.now)
    names = {"title": new.title or parent.title, "agent_name": described.agent_name}
    yield Query("describe_fork", key_of(new.fork_id) | names)


def rename_conversation(conversation_id: str, title: str | None, audit: AuditRecord) -> Steps[bool]:
    """False if it was deleted meanwhile."""
    renamed = yield Query("rename_conversation", key_of(conversation_id) | {"title": title})
    if renamed:
        yield from add_audit(audit)
    return bool(renamed)


def title_conversation(conversation_id: str) -> Steps[str | None]:
    """Give a conversation without a title the one of its first message by a user (`title_from`); what it has."""
    session = yield from log.find_session(conversation_id)
    if session is None or session.title is not None:
        return session and session.title
    title = title_from((yield from _first_text(session)))
    if title is not None:
        yield Query("title_conversation", key_of(conversation_id) | {"title": title})
    return title


def _first_text(session: Session) -> Steps[str]:
    for part in session.branch:
        (stored,) = log.stored_parts([part], part.start_seq - 1, None)
        rows = yield Query("first_shown_text", {**stored.values(), "length": PREVIEW_SOURCE_LENGTH})
        if rows:
            return rows[0][0]
    return ""


# Deleting and restoring


def delete_conversation(
    conversation_id: str, audit: AuditRecord, *, purge: bool, forget_in: int | None = None
) -> Steps[tuple[str, ...]]:
    """As `MessageStore.delete`, whoever owns it. A pending transfer goes with the root."""
    session = yield from log.lock(conversation_id)
    if session is None:
        raise SessionNotFoundError(conversation_id)
    went = yield from deletion.delete_locked(session, now=audit.created_at, purge=purge, forget_in=forget_in)
    if went:
        yield from add_audit(audit)
    return went


def restore_conversation(
    conversation_id: str, audit: AuditRecord, *, quotas: Quotas = NO_QUOTAS
) -> Steps[tuple[Session, ...] | None]:
    """Bring back a deleted conversation with what was deleted together with it, what is due among their background work
    included; those that are back. None if it was purged. Raises `SharingConflictError` if the one that it was forked
    from is deleted, and was not deleted together with it, and `QuotaExceededError` if the owner may not have so much.
    """
    session = yield from log.lock(conversation_id)
    if session is None or session.deleted_at is None:
        return None if session is None else ()
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": session.group_id}))]
    deletion = {"group_id": session.group_id, "deleted_at": session.deleted_at}
    if any(purged_at is not None for _, purged_at in (yield Query("deleted_together", deletion))):
        return None
    together = [each for each in group if each.deleted_at == session.deleted_at]
    _check_parents(together, group)
    yield Query("restore_deleted", deletion)
    for each in together:
        for kind in (SUMMARIZE, INDEX_SEARCH):
            yield Query("make_due", key_of(each.session_id) | {"kind": kind, "now": audit.created_at})
    yield from check_everything(session.owner_id, quotas)
    yield from add_audit(audit)
    return tuple(replace(each, deleted_at=None) for each in together)


def _check_parents(together: Sequence[Session], group: Sequence[Session]) -> None:
    """What they were forked from is there, or comes back with them."""
    back = {each.session_id for each in together}
    gone = {each.session_id for each in group if each.deleted_at is not None} - back
    for each in together:
        if each.forked_from_id in gone:
            raise SharingConflictError(
                each.session_id, "parent_deleted", "what it was forked from is deleted: restore that first"
            )
