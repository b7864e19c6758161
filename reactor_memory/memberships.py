"""Conversations that several people share: who may do what, and what a store keeps of it.

Access is given to a group, the root with all its forks. The owner of a group is the owner of its sessions
(`Session.owner_id`); everybody else is a member by a row of their own. Levels are ordered, and each one may do what
those below it may.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from reactor_memory.models import (
    AccessLevel,
    AuditRecord,
    JsonObject,
    Membership,
    Message,
    OwnershipTransfer,
    Session,
    Value,
)
from reactor_memory.protocols import Appended, AppendRequest

LEVELS: tuple[AccessLevel, ...] = ("reader", "writer", "manager", "owner")
"""From the least to the most."""

ListMode: TypeAlias = Literal["all", "roots", "latest-fork"]

Channel: TypeAlias = Literal["HISTORY", "MEMORY", "SUMMARY"]
"""What users see, what agents keep to themselves, and summaries."""

PARENT_MESSAGE_ID = "reactor_memory.parent_message_id"
"""The key under which the metadata of a message hold the id of the message that it answers."""

RESERVED_METADATA = "reactor_memory."
"""How keys of metadata begin that nobody but the service may set."""

TITLE_LENGTH = 40
"""Characters that a conversation without a title takes from its first message."""


def channel_of(message: Message) -> Channel:
    if message.role == "summary":
        return "SUMMARY"
    return "HISTORY" if message.visibility == "user" else "MEMORY"


def title_from(text: str) -> str | None:
    """The title of a conversation whose first message is `text`; None if that is blank."""
    return " ".join(text.split())[:TITLE_LENGTH].rstrip() or None


def reaches(level: AccessLevel | None, needed: AccessLevel) -> bool:
    """Whether this level (None: no member) may do what `needed` may."""
    return level is not None and LEVELS.index(level) >= LEVELS.index(needed)


class Conversation(Value, frozen=True, kw_only=True):
    """A session as a service shows it. `access_level` is the one of who asked, None for no member.

    `preview` is the beginning of the newest message that users may see, on one line, and `forked_at_message_id` the
    last such message that a fork shares (None at the first one, and of a root): both are left out where nobody asked
    for them. `vectorized_at` is the time up to which meanings were indexed. Times are microseconds UTC.
    """

    session: Session
    access_level: AccessLevel | None = None
    agent_name: str | None = None
    metadata: JsonObject = {}
    preview: str = ""
    forked_at_message_id: str | None = None
    vectorized_at: int | None = None

    @property
    def conversation_id(self) -> str:
        return self.session.session_id


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

    `client_id` None: those for users (the channel HISTORY). Else those, summaries, and what this client wrote for
    itself; of these only the ones of `channel`, if given. With `inherit` False the conversation's own only.
    """

    session: Session
    client_id: str | None = None
    channel: Channel | None = None
    inherit: bool = True
    after: int = 0
    until: int | None = None
    limit: int = 50


class ConversationStore(Protocol):
    """What a service keeps beside the log. Nothing here checks who asks: that is decided before, by what these calls
    tell; each writes its audit record in the same transaction.

    `user_id` says for whom `access_level` is told. A deleted conversation is None, unless `deleted` is asked for.
    """

    async def get_conversation(
        self, conversation_id: str, user_id: str | None, *, deleted: bool = False, described: bool = False
    ) -> Conversation | None:
        """With `described` also the preview and the last message that a fork shares. One that was purged is None."""
        ...

    async def list_conversations(self, query: ConversationsQuery) -> tuple[Conversation, ...]: ...

    async def list_group(self, group_id: str, user_id: str | None) -> tuple[Conversation, ...]:
        """The conversations of a group, in the order of their creation, the root first."""
        ...

    async def create_conversation(self, new: NewConversation, audit: AuditRecord) -> Conversation:
        """The conversation; one of this id and owner that is there already is left as it is and returned.

        Raises `SessionOwnershipError` or `SessionDeletedError`.
        """
        ...

    async def fork_conversation(self, new: NewFork, audit: AuditRecord) -> tuple[Conversation, Appended | None]:
        """Create the branch and its first message in one transaction; one of this id is returned as it is."""
        ...

    async def rename_conversation(self, conversation_id: str, title: str | None, audit: AuditRecord) -> bool:
        """False if it was deleted meanwhile."""
        ...

    async def title_conversation(self, conversation_id: str) -> str | None:
        """Give a conversation without a title the one of its first message by a user (`title_from`); what it has."""
        ...

    async def delete_conversation(self, conversation_id: str, audit: AuditRecord, *, purge: bool) -> tuple[str, ...]:
        """As `MessageStore.delete`, whoever owns it. A pending transfer goes with the root."""
        ...

    async def restore_conversation(self, conversation_id: str, audit: AuditRecord) -> tuple[Session, ...] | None:
        """Bring back a deleted conversation with what was deleted together with it, what is due among their background
        work included; those that are back. None if it was purged. Raises `SharingConflictError` if the one that it was
        forked from is deleted, and was not deleted together with it.
        """
        ...

    async def read_visible(self, query: MessagesQuery) -> tuple[Message, ...]: ...

    async def find_message(self, session: Session, message_id: str) -> Message | None:
        """The message of this id on the branch, whoever may see it."""
        ...

    async def list_memberships(self, group_id: str) -> tuple[Membership, ...]:
        """All members, the owner first, then in the order in which they joined."""
        ...

    async def put_membership(self, membership: Membership, audit: AuditRecord, *, creating: bool) -> Membership | None:
        """Add a member (None if there is one), or change the level of one (None if there is none); how it stands now.
        The owner is a member that this cannot change. Raises `SessionDeletedError`.
        """
        ...

    async def remove_membership(self, group_id: str, user_id: str, audit: AuditRecord) -> bool:
        """Also takes back an offer of ownership to this user. False if there is no such member beside the owner."""
        ...

    async def offer_ownership(self, transfer: OwnershipTransfer, audit: AuditRecord) -> OwnershipTransfer:
        """The offer that is pending now: this one, or an older one of the group.

        Raises `SessionOwnershipError` if who gives it does not own the group, `SharingConflictError` if who gets it is
        no member, and `SessionDeletedError`.
        """
        ...

    async def list_transfers(self, user_id: str) -> tuple[OwnershipTransfer, ...]:
        """Those that this user gave or got, oldest first."""
        ...

    async def accept_ownership(self, transfer_id: str, user_id: str, audit: AuditRecord) -> OwnershipTransfer | None:
        """Make the recipient the owner of all conversations of the group, and the owner a manager. None if there is no
        such offer to `user_id`, or they are no member any more.
        """
        ...

    async def decline_ownership(self, transfer_id: str, user_id: str, audit: AuditRecord) -> OwnershipTransfer | None:
        """Take the offer away, by who gave or got it."""
        ...

    async def add_audit(self, record: AuditRecord) -> None:
        """Note what changed nothing here, such as an agent that read; one of this id that is there stays as it is."""
        ...

    async def list_audit(self, group_id: str, *, after: str = "", limit: int = 100) -> tuple[AuditRecord, ...]:
        """Oldest first, behind the record `after`."""
        ...
