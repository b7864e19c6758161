"""The operations that read and write sessions, and what belongs to users, as they are stored, to move them to another
database. No owner is checked: this is for who runs the databases.

Each generator is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from reactor_memory.core.log import deletion, user_rows, view_start
from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import (
    MESSAGE_COLUMNS,
    key_of,
    message_from,
    message_values,
    object_from,
    session_from,
    stored_bytes,
    to_json,
)
from reactor_memory.core.log.tombstones import tombstone
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.active_sessions.models import ActiveSession
from reactor_memory.features.entries import operations as entry_rows
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.ledger_rows import correction_values
from reactor_memory.features.items import operations as items
from reactor_memory.features.items.models import Item
from reactor_memory.features.sharing import member_operations as memberships
from reactor_memory.features.sharing.models import AuditRecord, Membership, OwnershipTransfer
from reactor_memory.models import LARGEST, JsonObject, Message, Session, Value
from reactor_memory.models.ledger import FactCorrection
from reactor_memory.models.requests import SUMMARIZE

COPY = "copy"
"""The kind of the row of background work that a conversation has until it was imported to its end."""


class StoredMessage(Value, frozen=True, kw_only=True):
    """A message with all that a store keeps of it, in view or not.

    `state` is None in view, else ``withdrawn``, ``erased``, ``archived`` or ``cleared``: hidden from branches that show
    what is behind `archived_until`, `archived_by` a summary or a caller (None). The first message of a batch with an
    idempotency key says what is remembered of it.
    """

    message: Message
    state: str | None = None
    archived_by: str | None = None
    archived_until: int | None = None
    batch_key: str | None = None
    batch_fingerprint: str | None = None
    batch_size: int | None = None

    @property
    def seq(self) -> int:
        return self.message.seq or 0


class StoredConversation(Value, frozen=True, kw_only=True):
    """A conversation with all that a store keeps of it, but for its messages and what is derived from them.

    Members, an offer of ownership and the audit trail belong to the group, and come with its root. `importing`: it was
    begun by `import_conversation` and is not finished.
    """

    session: Session
    agent_name: str | None = None
    metadata: JsonObject = {}
    purged_at: int | None = None
    entries: tuple[Entry, ...] = ()
    corrections: tuple[FactCorrection, ...] = ()
    memberships: tuple[Membership, ...] = ()
    transfer: OwnershipTransfer | None = None
    audit: tuple[AuditRecord, ...] = ()
    importing: bool = False

    @property
    def first_seq(self) -> int:
        """The first message of its own."""
        return self.session.branch[-1].start_seq

    @property
    def message_count(self) -> int:
        """Messages of its own, in view or not; of a deleted conversation none count."""
        return 0 if self.session.deleted_at is not None else self.session.last_seq - self.first_seq + 1


class StoredUser(Value, frozen=True, kw_only=True):
    """What is kept of a user beside sessions: entries, such as all versions of notes, the active sessions, and items.

    The user "" is nobody in particular, and has items only.
    """

    user_id: str
    active: tuple[ActiveSession, ...] = ()
    entries: tuple[Entry, ...] = ()
    items: tuple[Item, ...] = ()


def export_group(group_id: str) -> Steps[tuple[StoredConversation, ...]]:
    """The conversations of a group, each behind the one that it was forked from; none of an unknown group."""
    rows = yield Query("conversations_to_export", {"group_id": group_id, "kind": COPY})
    found: dict[str, StoredConversation] = {}
    for row in rows:
        found[row[0]] = yield from _stored(row)
    if group_id not in found:
        return ()
    return tuple(found[each] for each in deletion.with_forks_below(group_id, [each.session for each in found.values()]))


def _stored(row: Row) -> Steps[StoredConversation]:
    agent_name, metadata, purged_at, importing = row[log.SESSION_COLUMNS :]
    session = session_from(row[: log.SESSION_COLUMNS])
    stored = StoredConversation(
        session=session,
        agent_name=agent_name,
        metadata=object_from(metadata),
        purged_at=purged_at,
        entries=(yield from entry_rows.read_all(entry_rows.of_session(session.session_id))),
        corrections=(yield from fact_operations.read_corrections(session.session_id)),
        importing=bool(importing),
    )
    return (yield from _with_sharing(stored)) if session.forked_from_id is None else stored


def _with_sharing(stored: StoredConversation) -> Steps[StoredConversation]:
    group_id = stored.session.group_id
    yield from user_rows.name_all_users()
    return structs.replace(
        stored,
        memberships=(yield from memberships.members_of(group_id)),
        transfer=(yield from memberships.transfer_of(group_id)),
        audit=(yield from memberships.list_audit(group_id, after="", limit=LARGEST)),
    )


def export_messages(conversation_id: str, *, after: int, limit: int) -> Steps[tuple[StoredMessage, ...]]:
    """The first `limit` messages behind `after` that are stored under this id, without inherited ones."""
    rows = yield Query("messages_to_export", key_of(conversation_id) | {"after": after, "limit": limit})
    return tuple(map(_stored_message, rows))


def _stored_message(row: Row) -> StoredMessage:
    state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size = row[MESSAGE_COLUMNS:]
    message = message_from(row[:MESSAGE_COLUMNS])
    return StoredMessage(
        message=message,
        state="erased" if state == "withdrawn" and tombstone(message) == message else state,
        archived_by=archived_by if state in ("archived", "cleared") else None,
        archived_until=archived_until if state in ("archived", "cleared") else None,
        batch_key=batch_key,
        batch_fingerprint=batch_fingerprint,
        batch_size=batch_size,
    )


def import_conversation(stored: StoredConversation) -> Steps[bool]:
    """Begin the conversation as it was exported, without its messages and entries; False if there is one of this id."""
    session_id = stored.session.session_id
    if not (yield Query("import_conversation", _conversation_values(stored))):
        return False
    key = key_of(session_id)
    yield Query("mark_importing", key | {"kind": COPY})
    yield Batch(
        "import_correction",
        [key | correction_values(each) | {"ordinal": each.ordinal} for each in stored.corrections],
    )
    yield from user_rows.name_all_users()
    yield Batch("import_membership", [structs.asdict(each) for each in stored.memberships])
    if stored.transfer is not None:
        yield from memberships.add_transfer(stored.transfer)
    yield Batch("add_audit", [memberships.audit_values(each) for each in stored.audit])
    return True


def _conversation_values(stored: StoredConversation) -> dict[str, Any]:
    session = stored.session
    return {
        **key_of(session.session_id),
        "owner_id": session.owner_id,
        "agent_name": stored.agent_name,
        "title": session.title,
        "metadata": to_json(stored.metadata),
        "last_seq": session.last_seq - stored.message_count,
        "path": None if session.forked_from_id is None else to_json(session.branch),
        "forked_from_id": session.forked_from_id,
        "forked_at_seq": session.forked_at_seq,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "deleted_at": session.deleted_at,
        "purged_at": stored.purged_at,
    }


def import_messages(conversation_id: str, messages: Sequence[StoredMessage]) -> Steps[bool]:
    """Store messages that follow one another; False, and nothing stored, if the first of them is not the next one of
    the conversation, or if that was deleted.
    """
    key = key_of(conversation_id)
    rows = [_stored_values(stored) for stored in messages]
    advance = {"before": messages[0].seq - 1, "last_seq": messages[-1].seq, "stored_bytes": stored_bytes(rows)}
    if not (yield Query("advance_import", key | advance)):
        return False
    yield Batch("import_message", [key | row for row in rows])
    if None not in (stored.state for stored in messages):
        yield from view_start.hide(conversation_id, messages[0].seq, messages[-1].seq)
    return True


def _stored_values(stored: StoredMessage) -> dict[str, Any]:
    return {
        **message_values(stored.message),
        "seq": stored.seq,
        "state": stored.state,
        "archived_by": stored.archived_by,
        "archived_until": stored.archived_until,
        "batch_key": stored.batch_key,
        "batch_fingerprint": stored.batch_fingerprint,
        "batch_size": stored.batch_size,
    }


def finish_import(conversation_id: str, *, due_at: int | None) -> Steps[None]:
    """All messages are there. `due_at`: when background work may begin (None: after the next append)."""
    key = key_of(conversation_id)
    if due_at is not None:
        yield Query("make_due", key | {"kind": SUMMARIZE, "now": due_at})
    yield Query("drop_work", key | {"kind": COPY})


def export_user(user_id: str) -> Steps[StoredUser]:
    return StoredUser(
        user_id=user_id,
        active=(yield from active_rows.list_active(user_id)),
        entries=(yield from entry_rows.read_all(entry_rows.of_user(user_id))),
        items=(yield from items.list_items(user_id, "")),
    )


def import_user(stored: StoredUser) -> Steps[None]:
    """Store what is not there yet; nothing is replaced."""
    yield from active_rows.import_active(stored.user_id, stored.active)
    yield from entry_rows.import_all(entry_rows.of_user(stored.user_id), stored.entries)
    yield Batch(
        "import_item",
        [structs.asdict(item) | {"user_id": stored.user_id} | items.value_columns(item.value) for item in stored.items],
    )


def list_users(*, after: str = "", limit: int = 100) -> Steps[tuple[str, ...]]:
    """The users behind `after`, in their order, of whom entries, active sessions or items are kept."""
    yield from user_rows.name_all_users()
    rows = yield Query("list_users", {"after": after, "limit": limit})
    return tuple(row[0] for row in rows)


def describe_imported(session_id: str, title: str | None, began_at: int | None) -> Steps[None]:
    """What a file says of a session: its title, unless it has one, and when it began."""
    values = {"title": title, "began_at": LARGEST if began_at is None else max(0, began_at)}
    yield Query("describe_imported", key_of(session_id) | values)
