"""Conversations of many users: to begin, find, fork, delete and restore them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.log.forks import check_fork_depth
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import MessageLimits, check_metadata, check_optional_id, check_text
from reactor_memory.database.database import Database
from reactor_memory.errors import (
    InvalidInputError,
    MessageNotFoundError,
    NotGrantedError,
    SessionNotFoundError,
)
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.access import DELETES, Access, check_granted, user_of
from reactor_memory.features.sharing.audit import Audit
from reactor_memory.features.sharing.messages import NewMessage, check_parents, check_unreserved, said_by_user
from reactor_memory.features.sharing.models import (
    Conversation,
    ConversationsQuery,
    ListMode,
    NewConversation,
    NewFork,
    Quotas,
)
from reactor_memory.features.sharing.principals import ANY_AGENT, Principal
from reactor_memory.features.sharing.repeated_requests import batch_key, new_id
from reactor_memory.models import JsonObject, Message
from reactor_memory.models.requests import AppendRequest, DeletedSessions

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock


class Conversations:
    """What members do with whole conversations; each call checks the access of its caller first (`Access`).

    With `purge` what is deleted cannot be restored.
    """

    def __init__(
        self,
        *,
        access: Access,
        database: Database,
        manager: ConversationManager,
        background: BackgroundWork,
        audit: Audit,
        clock: Clock,
        limits: MessageLimits,
        quotas: Quotas,
        purge: bool,
        forget_in: int | None,
    ) -> None:
        self._access = access
        self._database = database
        self._manager = manager
        self._background = background
        self._audit = audit
        self._clock = clock
        self._limits = limits
        self._quotas = quotas
        self._purge = purge
        self._forget_in = forget_in

    async def create(
        self,
        principal: Principal,
        *,
        title: str | None = None,
        metadata: JsonObject | None = None,
        agent_name: str | None = None,
        request_key: str | None = None,
    ) -> Conversation:
        """A new conversation of the caller, the same one for each repetition of a request. A blank title is none.

        Raises `InvalidInputError`, `QuotaExceededError`, and `NotGrantedError` for an agent whose grant does not cover
        `agent_name`.
        """
        check_granted(principal, "append")
        check_optional_id("agent_name", agent_name)
        if principal.grant is not None and not principal.grant.covers(agent_name):
            raise NotGrantedError("a key whose grant covers the agent of the conversation")
        check_unreserved(metadata or {})
        check_metadata("metadata", metadata or {}, self._limits)
        new = NewConversation(
            conversation_id=new_id(principal, request_key, "conversation"),
            owner_id=user_of(principal),
            title=_checked_title(title),
            metadata=metadata or {},
            agent_name=agent_name,
            now=self._clock(),
        )
        audit = self._audit.record(principal, new.conversation_id, "create")
        return await self._database.write(conversations.create_conversation, new, audit, self._quotas)

    async def get(self, principal: Principal, conversation_id: str) -> Conversation:
        """The conversation, with its preview and the last message that it shares."""
        user_of(principal)
        return await self._access.conversation(
            principal, conversation_id, needs="reader", operation="read", described=True
        )

    async def list(
        self,
        principal: Principal,
        *,
        mode: ListMode = "all",
        text: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 20,
    ) -> tuple[Conversation, ...]:
        """Those of the caller, newest activity first, behind `after` (updated_at and id of the last one seen).

        ``latest-fork`` lists the most recently active one of each group.
        """
        user_id = user_of(principal)
        check_granted(principal, "read")
        names = None if principal.grant is None else principal.grant.agent_names
        query = ConversationsQuery(
            user_id=user_id,
            mode=mode,
            text=text or None,
            agent_names=None if names is None or ANY_AGENT in names else names,
            after=after,
            limit=limit,
        )
        return await self._database.read(conversations.list_conversations, query)

    async def rename(self, principal: Principal, conversation_id: str, title: str | None) -> Conversation:
        """A blank title is none: the next message of a user gives one."""
        user_of(principal)
        new = _checked_title(title)
        await self._access.conversation(principal, conversation_id, needs="writer", operation="append")
        audit = self._audit.record(principal, conversation_id, "rename")
        if not await self._database.write(conversations.rename_conversation, conversation_id, new, audit):
            raise SessionNotFoundError(conversation_id)
        return await self._visible(principal, conversation_id)

    async def _visible(self, principal: Principal, conversation_id: str) -> Conversation:
        """As it stands now, for somebody who was checked."""
        found = await self._database.read(
            conversations.get_conversation, conversation_id, principal.user_id, described=True
        )
        if found is None:
            raise SessionNotFoundError(conversation_id)
        return found

    async def delete(self, principal: Principal, conversation_id: str) -> DeletedSessions:
        """Delete a root with all its forks, a fork with those below it; as `ConversationManager.delete`."""
        user_of(principal)
        await self._access.conversation(principal, conversation_id, needs=DELETES, operation="on-behalf-of")
        audit = self._audit.record(principal, conversation_id, "delete")
        gone = await self._database.write(
            conversations.delete_conversation, conversation_id, audit, purge=self._purge, forget_in=self._forget_in
        )
        return await self._manager.forget_deleted(gone)

    async def restore(self, principal: Principal, conversation_id: str) -> Conversation:
        """Bring back what was deleted together. One that was not deleted is returned as it is.

        Raises `SharingConflictError` (``parent_deleted``) for a fork of what is deleted, and `SessionNotFoundError` for
        what was purged.
        """
        user_of(principal)
        conversation = await self._access.conversation(
            principal, conversation_id, needs="owner", operation="on-behalf-of", deleted=True
        )
        if conversation.session.deleted_at is not None:
            audit = self._audit.record(principal, conversation_id, "restore")
            restored = await self._database.write(
                conversations.restore_conversation, conversation_id, audit, quotas=self._quotas
            )
            for session in restored or ():
                self._background.messages_saved(session.session_id, session.last_seq)
        return await self._visible(principal, conversation_id)

    async def fork(
        self,
        principal: Principal,
        conversation_id: str,
        message_id: str,
        *,
        title: str | None = None,
        first: NewMessage | None = None,
        request_key: str | None = None,
    ) -> Conversation:
        """A branch that shares what stands before the message of a user, and begins with `first` in its place.

        It has the agent of its parent and, without a title of its own, its title. Raises `MessageNotFoundError`, and
        `InvalidInputError` for a message that is no user's or that users do not see, and for more forks than
        a quota allows, or too many forks of forks.
        """
        said = None if first is None else said_by_user(principal, first)
        user_of(principal)
        named = _checked_title(title)

        async def act(conversation: Conversation) -> Conversation:
            at_seq = fork_point(
                conversation_id, await self._database.read(conversations.find_message, conversation.session, message_id)
            )
            check_fork_depth(conversation.session, at_seq, field="message_id")
            parents = () if said is None else (said,)
            await check_parents(self._database, conversation.session, parents, principal.client_id, before_seq=at_seq)
            random = new_id(principal, request_key, "fork", conversation_id, message_id)
            fork_id = f"{conversation.session.group_id}~{random}"
            new = NewFork(
                parent_id=conversation_id,
                fork_id=fork_id,
                at_seq=at_seq,
                title=named,
                first=await self._first(principal, conversation, fork_id, said, request_key),
                now=self._clock(),
            )
            return await self._forked(principal, new, conversation)

        return await self._access.acting(principal, conversation_id, act, needs="writer", operation="append")

    async def _first(
        self,
        principal: Principal,
        conversation: Conversation,
        fork_id: str,
        said: Message | None,
        request_key: str | None,
    ) -> AppendRequest | None:
        if said is None:
            return None
        return await self._manager.prepare_batch(
            fork_id,
            [said],
            user_id=conversation.session.owner_id,
            idempotency_key=batch_key(principal, request_key or fork_id),
        )

    async def _forked(self, principal: Principal, new: NewFork, parent: Conversation) -> Conversation:
        audit = self._audit.record(principal, new.fork_id, "fork", target=new.parent_id)
        fork, appended = await self._database.write(conversations.fork_conversation, new, audit, self._quotas)
        if appended is not None:
            self._background.messages_saved(new.fork_id, appended.last_seq)
        return replace(fork, access_level=parent.access_level)

    async def forks(
        self, principal: Principal, conversation_id: str, *, after: tuple[int, str] | None = None, limit: int = 20
    ) -> tuple[Conversation, ...]:
        """The conversations of the group, the root first, in the order of their creation, behind `after` (created_at
        and id of the last one seen).
        """
        user_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="reader", operation="read")
        group_id = conversation.session.group_id
        return await self._database.read(
            conversations.list_group, group_id, principal.user_id, after=after, limit=limit
        )


def _checked_title(title: str | None) -> str | None:
    if title is None or not title.strip():
        return None
    check_text("title", title)
    return title


def fork_point(conversation_id: str, message: Message | None) -> int:
    """The seq of the message that a fork takes the place of. Raises `MessageNotFoundError` or `InvalidInputError`."""
    if message is None or message.seq is None:
        raise MessageNotFoundError(conversation_id)
    if message.role != "user" or message.visibility != "user":
        raise InvalidInputError("message_id", "must name a message of a user, which users see")
    return message.seq
