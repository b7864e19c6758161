"""Sessions in the memory of this process on their way to and from other stores (`protocols.SessionTransfer`)."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from reactor_memory.models import (
    ActiveSession,
    AuditRecord,
    FactCorrection,
    Item,
    JsonObject,
    Membership,
    Message,
    OwnershipTransfer,
    Pin,
    Session,
)
from reactor_memory.protocols import Appended, StoredConversation, StoredMessage, StoredUser
from reactor_memory.storage.in_memory_ranges import Ranges
from reactor_memory.storage.in_memory_user_rows import KeptItem, UserRows
from reactor_memory.storage.items import value_to_json
from reactor_memory.storage.log import with_forks_below
from reactor_memory.storage.tombstones import tombstone

T = TypeVar("T", StoredConversation, StoredMessage)


class Conversation(Protocol):
    """What is stored of a conversation."""

    session: Session
    first_seq: int
    messages: list[Message]
    withdrawn: set[int]
    batches: dict[str, tuple[str, Appended]]
    pins: tuple[Pin, ...]
    posted: dict[int, int]
    ranges: Ranges
    purged: bool
    agent_name: str | None
    metadata: JsonObject
    memberships: tuple[Membership, ...]
    transfer: OwnershipTransfer | None
    audit: tuple[AuditRecord, ...]
    importing: bool


class InMemoryTransfer(ABC):
    """The part of `InMemoryStore` that is a `SessionTransfer`."""

    @abstractmethod
    def _conversations(self) -> Mapping[str, Conversation]: ...

    @abstractmethod
    def _place(self, session: Session) -> Conversation:
        """A new conversation without messages."""

    @abstractmethod
    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]: ...

    @abstractmethod
    def _keep_corrections(self, session_id: str, corrections: tuple[FactCorrection, ...]) -> None: ...

    @abstractmethod
    def _make_due(self, session_id: str, now: int) -> None: ...

    async def list_groups(self, *, owner_id: str | None = None, after: str = "", limit: int = 100) -> tuple[str, ...]:
        roots = (each.session for each in self._conversations().values() if each.session.forked_from_id is None)
        chosen = (root.group_id for root in roots if owner_id is None or root.owner_id == owner_id)
        return tuple(heapq.nsmallest(limit, (group_id for group_id in chosen if group_id > after)))

    async def export_group(self, group_id: str) -> tuple[StoredConversation, ...]:
        found = {
            key: conversation
            for key, conversation in self._conversations().items()
            if conversation.session.group_id == group_id
        }
        if not found:
            return ()
        below = with_forks_below(group_id, [conversation.session for conversation in found.values()])
        return tuple(
            [
                replace(_apart(_exported(found[session_id])), corrections=await self.read_corrections(session_id))
                for session_id in below
            ]
        )

    async def export_messages(self, conversation_id: str, *, after: int, limit: int) -> tuple[StoredMessage, ...]:
        conversation = self._conversations().get(conversation_id)
        if conversation is None:
            return ()
        batches = {first.first_seq: (key, text, first) for key, (text, first) in conversation.batches.items()}
        start = max(after + 1 - conversation.first_seq, 0)
        page = conversation.messages[start : start + limit]
        return tuple(
            _apart(_exported_message(conversation, message, batches.get(message.seq or 0))) for message in page
        )

    async def import_conversation(self, stored: StoredConversation) -> bool:
        stored = _apart(stored)
        session = stored.session
        if session.session_id in self._conversations():
            return False
        conversation = self._place(replace(session, last_seq=session.last_seq - stored.message_count))
        conversation.pins = stored.pins
        conversation.purged = stored.purged_at is not None
        conversation.agent_name = stored.agent_name
        conversation.metadata = stored.metadata
        conversation.memberships = stored.memberships
        conversation.transfer = stored.transfer
        conversation.audit = stored.audit
        conversation.importing = True
        conversation.ranges.summaries.update((each.summary_id, each) for each in stored.summaries)
        self._keep_corrections(session.session_id, stored.corrections)
        return True

    async def import_messages(self, conversation_id: str, messages: Sequence[StoredMessage]) -> bool:
        conversation = self._conversations()[conversation_id]
        session = conversation.session
        if session.last_seq != messages[0].seq - 1 or session.deleted_at is not None:
            return False
        for stored in messages:
            _import(conversation, _apart(stored))
        conversation.session = replace(session, last_seq=messages[-1].seq)
        return True

    async def finish_import(self, conversation_id: str, *, due_at: int | None) -> None:
        if due_at is not None:
            self._make_due(conversation_id, due_at)
        self._conversations()[conversation_id].importing = False

    @property
    @abstractmethod
    def _users(self) -> UserRows: ...

    @abstractmethod
    async def list_active(self, user_id: str) -> tuple[ActiveSession, ...]: ...

    @abstractmethod
    async def list_items(self, user_id: str, namespace: str, *, limit: int | None = None) -> tuple[Item, ...]: ...

    async def list_users(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        known = {key[0] for key in (*self._users.active, *self._users.notes) if key[0] > after}
        known |= {user_id for user_id, items in self._users.items.items() if items and user_id > after}
        return tuple(sorted(known)[:limit])

    async def export_user(self, user_id: str) -> StoredUser:
        agents = sorted(agent_name for owner, agent_name in self._users.notes if owner == user_id)
        return StoredUser(
            user_id=user_id,
            active=await self.list_active(user_id),
            notes=tuple(notes for agent_name in agents for notes in self._users.notes[user_id, agent_name]),
            items=await self.list_items(user_id, ""),
        )

    async def import_user(self, stored: StoredUser) -> None:
        for active in stored.active:
            self._users.active.setdefault((stored.user_id, active.agent_name), active)
        for notes in stored.notes:
            versions = self._users.notes.setdefault((stored.user_id, notes.agent_name), [])
            if notes.version not in {known.version for known in versions}:
                versions.append(notes)
                versions.sort(key=lambda each: each.version)
        items = self._users.items.setdefault(stored.user_id, {})
        for item in stored.items:
            kept = KeptItem(value_to_json(item.value), item.created_at, item.updated_at)
            items.setdefault((item.namespace, item.key), kept)


def _apart(stored: T) -> T:
    """The value, sharing nothing that can be changed."""
    return msgspec.json.decode(msgspec.json.encode(stored), type=type(stored))


def _exported(conversation: Conversation) -> StoredConversation:
    return StoredConversation(
        session=conversation.session,
        agent_name=conversation.agent_name,
        metadata=conversation.metadata,
        purged_at=conversation.session.deleted_at if conversation.purged else None,
        pins=conversation.pins,
        summaries=tuple(conversation.ranges.summaries.values()),
        memberships=conversation.memberships,
        transfer=conversation.transfer,
        audit=conversation.audit,
        importing=conversation.importing,
    )


def _exported_message(
    conversation: Conversation, message: Message, batch: tuple[str, str, Appended] | None
) -> StoredMessage:
    seq = message.seq or 0
    archived_by = conversation.ranges.archived.get(seq)
    stored = StoredMessage(message=message, posted_until=conversation.posted.get(seq))
    if seq in conversation.withdrawn:
        stored = replace(stored, state="erased" if tombstone(message) == message else "withdrawn")
    elif archived_by is not None:
        until = conversation.ranges.summaries[archived_by].end_seq
        stored = replace(stored, state="archived", archived_by=archived_by, archived_until=until)
    if batch is None:
        return stored
    key, fingerprint, first = batch
    size = first.last_seq - first.first_seq + 1
    return replace(stored, batch_key=key, batch_fingerprint=fingerprint, batch_size=size)


def _import(conversation: Conversation, stored: StoredMessage) -> None:
    conversation.messages.append(stored.message)
    if stored.state in ("withdrawn", "erased"):
        conversation.withdrawn.add(stored.seq)
    if stored.archived_by is not None and stored.state == "archived":
        conversation.ranges.archived[stored.seq] = stored.archived_by
    if stored.posted_until is not None:
        conversation.posted[stored.seq] = stored.posted_until
    if stored.batch_key is not None:
        last_seq = stored.seq + (stored.batch_size or 1) - 1
        first = Appended(first_seq=stored.seq, last_seq=last_seq)
        conversation.batches[stored.batch_key] = (stored.batch_fingerprint or "", first)
