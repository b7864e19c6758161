"""Conversations that several people share: who may do what, and what a store keeps of it.

Access is given to a group, the root with all its forks. The owner of a group is the owner of its sessions
(`Session.owner_id`); everybody else is a member by a row of their own. Levels are ordered, and each one may do what
those below it may.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from reactor_memory.models import JsonObject, Message, Session, Value
from reactor_memory.models.requests import AppendRequest

AccessLevel: TypeAlias = Literal["reader", "writer", "manager", "owner"]
"""What a member of a shared conversation may do."""

LEVELS: tuple[AccessLevel, ...] = ("reader", "writer", "manager", "owner")
"""From the least to the most."""

ListMode: TypeAlias = Literal["all", "roots", "latest-fork"]

Channel: TypeAlias = Literal["HISTORY", "MEMORY", "SUMMARY"]
"""What users see, what agents keep to themselves, and summaries."""

PARENT_MESSAGE_ID = "reactor_memory.parent_message_id"
"""The key under which the metadata of a message hold the id of the message that it answers."""

RESERVED_METADATA = "reactor_memory."
"""How keys of metadata begin that nobody but the service may set."""


def channel_of(message: Message) -> Channel:
    if message.role == "summary":
        return "SUMMARY"
    return "HISTORY" if message.visibility == "user" else "MEMORY"


def reaches(level: AccessLevel | None, needed: AccessLevel) -> bool:
    """Whether this level (None: no member) may do what `needed` may."""
    return level is not None and LEVELS.index(level) >= LEVELS.index(needed)


class Conversation(Value, frozen=True, kw_only=True):
    """A session as a service shows it. `access_level` is the one of who asked, None for no member.

    `preview` is the beginning of the newest message that users may see, on one line, and `forked_at_message_id` the
    last such message that a fork shares (None at the first one, and of a root): both are left out where nobody asked
    for them. `vectorized_at` is the time up to which meanings were indexed. Times are microseconds UTC.
    `is_damaged`: rows of it hold what this library never wrote; a list shows the rest of what it tells.
    """

    session: Session
    access_level: AccessLevel | None = None
    agent_name: str | None = None
    metadata: JsonObject = {}
    preview: str = ""
    forked_at_message_id: str | None = None
    vectorized_at: int | None = None
    is_damaged: bool = False

    @property
    def conversation_id(self) -> str:
        return self.session.session_id


class Quotas(Value, frozen=True, kw_only=True):
    """What one user may own. 0: as much as they like. Members are those of all conversations of the user."""

    max_conversations: int = 0
    max_forks: int = 0
    max_members: int = 0
    max_stored_bytes: int = 0


NO_QUOTAS = Quotas()


class NewConversation(Value, frozen=True, kw_only=True):
    """A conversation to create, without messages."""

    conversation_id: str
    owner_id: str
    title: str | None = None
    metadata: JsonObject = {}
    agent_name: str | None = None
    now: int


class NewFork(Value, frozen=True, kw_only=True):
    """A branch to create at `at_seq`, the first message that it does not share, with its own first message if given."""

    parent_id: str
    fork_id: str
    at_seq: int
    title: str | None = None
    first: AppendRequest | None = None
    now: int


class ConversationsQuery(Value, frozen=True, kw_only=True):
    """The conversations that `user_id` owns or is a member of, newest activity first, behind `after` (updated_at and
    id of the last one seen). `text` is looked for in title and metadata, whatever the case of its letters;
    `agent_names`, if given, are the only agents whose conversations count.
    """

    user_id: str
    mode: ListMode = "all"
    text: str | None = None
    agent_names: tuple[str, ...] | None = None
    after: tuple[int, str] | None = None
    limit: int = 20


class MessagesQuery(Value, frozen=True, kw_only=True):
    """The messages of a branch that somebody may see, `after` < seq <= `until`, oldest first: archived ones, too.

    `client_id` None: those for users (the channel HISTORY). Else those, summaries, what is for all agents (visibility
    ``system``), and what this client wrote for itself; of these only the ones of `channel`, if given. With `inherit`
    False the conversation's own only. `user_id` is for whom they are read, if for anybody.
    """

    session: Session
    user_id: str | None = None
    client_id: str | None = None
    channel: Channel | None = None
    inherit: bool = True
    after: int = 0
    until: int | None = None
    limit: int = 50


class Membership(Value, frozen=True, kw_only=True):
    """The access of a user to a group."""

    group_id: str
    user_id: str
    access_level: AccessLevel
    created_at: int


class OwnershipTransfer(Value, frozen=True, kw_only=True):
    """An offer to own a group; there is at most one of a group at a time."""

    transfer_id: str
    group_id: str
    from_user_id: str
    to_user_id: str
    created_at: int


class AuditRecord(Value, frozen=True, kw_only=True):
    """Who changed what of a group. `actor_id` is a user, `client_id` the agent that acted, alone or on their behalf.

    `details` holds levels and ids, never text of messages.
    """

    record_id: str
    group_id: str
    conversation_id: str
    actor_id: str | None
    client_id: str | None = None
    action: str
    target: str | None = None
    details: JsonObject = {}
    created_at: int
