"""Who may do what: the one place where a caller becomes the access to a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from reactor_memory.core.validation import check_session_id
from reactor_memory.database.database import Database
from reactor_memory.errors import AccessDeniedError, NotGrantedError, SessionNotFoundError, SessionOwnershipError
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.audit import Audit
from reactor_memory.features.sharing.models import AccessLevel, Conversation, reaches
from reactor_memory.features.sharing.principals import ANY_AGENT, Operation, Principal

T = TypeVar("T")

DELETES: AccessLevel = "manager"
"""Who may delete. To everybody else a deleted conversation is none."""

AGENT_REACHES: AccessLevel = "writer"
"""The most that a key may do without a user."""


class Access:
    """Resolves who calls and what they ask for to a conversation, with one read.

    From there on the log is asked as the owner of the session: it knows no members.
    """

    def __init__(self, *, database: Database, audit: Audit) -> None:
        self._database = database
        self._audit = audit

    async def conversation(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        needs: AccessLevel,
        operation: Operation | None,
        deleted: bool = False,
        described: bool = False,
    ) -> Conversation:
        """The conversation, if the caller's level reaches `needs` and their key, if any, is granted `operation` (None:
        nothing that a key may do). With `deleted` also one that was deleted and can be restored.

        An agent is checked as the user on whose behalf it calls; without one it reaches the conversations of the agents
        that its grant covers, and leaves an audit record. Instructions leave one either way.

        Raises `NotGrantedError`, `AccessDeniedError`, and `SessionNotFoundError` for what is not there, was deleted,
        or is none of the caller's business: these are told apart by nobody.
        """
        check_granted(principal, operation)
        check_session_id(conversation_id, creating=False)
        if described:
            conversation = await self._database.read(
                conversations.get_conversation, conversation_id, principal.user_id, deleted=deleted, described=True
            )
        else:
            conversation = await self._database.read(
                conversations.undescribed_conversation, conversation_id, principal.user_id, deleted=deleted
            )
        if conversation is None or not is_visible(principal, conversation):
            raise SessionNotFoundError(conversation_id)
        check_level(principal, conversation, needs)
        if principal.is_agent and operation is not None and (principal.user_id is None or operation == "instruct"):
            await self._audit.note(principal, conversation, operation)
        return conversation

    async def check_visible(self, principal: Principal, conversation_id: str) -> None:
        """Raises `SessionNotFoundError` if the caller may not know (any more) that the conversation is there. One that
        was deleted is there for those who may restore it.
        """
        conversation = await self._database.read(
            conversations.undescribed_conversation, conversation_id, principal.user_id, deleted=True
        )
        if conversation is None or not is_visible(principal, conversation):
            raise SessionNotFoundError(conversation_id)

    async def acting(
        self,
        principal: Principal,
        conversation_id: str,
        act: Callable[[Conversation], Awaitable[T]],
        *,
        needs: AccessLevel,
        operation: Operation,
    ) -> T:
        """`act` with the conversation; once more, if its owner changed between the check and the act."""
        conversation = await self.conversation(principal, conversation_id, needs=needs, operation=operation)
        try:
            return await act(conversation)
        except SessionOwnershipError:
            again = await self.conversation(principal, conversation_id, needs=needs, operation=operation)
        return await act(again)


def check_granted(principal: Principal, operation: Operation | None) -> None:
    """Raises `NotGrantedError` for a key that is not granted the operation. Users need no grant."""
    if not principal.is_agent:
        return
    if operation is None:
        raise NotGrantedError("a user: no key may do it")
    if principal.grant is None or not principal.grant.allows(operation):
        raise NotGrantedError(f"a key that is granted {operation}")


def agents_of(principal: Principal) -> tuple[str, ...] | None:
    """The agents whose conversations the caller may read; None for a user, and for a key that covers all."""
    if principal.grant is None or ANY_AGENT in principal.grant.agent_names:
        return None
    return principal.grant.agent_names


def user_of(principal: Principal) -> str:
    """The user who calls, or for whom an agent calls. Raises `NotGrantedError` if there is none."""
    if principal.user_id is None:
        raise NotGrantedError("a user: send their token, too")
    return principal.user_id


def client_of(principal: Principal) -> str:
    """The agent that calls. Raises `NotGrantedError` for a user."""
    if principal.client_id is None:
        raise NotGrantedError("the key of an agent")
    return principal.client_id


def is_visible(principal: Principal, conversation: Conversation) -> bool:
    """Whether the caller may know that the conversation is there."""
    session = conversation.session
    if session.owner_id is None:
        return False
    if principal.user_id is None:
        return session.deleted_at is None and _covers(principal, conversation)
    if session.deleted_at is not None:
        return reaches(conversation.access_level, DELETES)
    return conversation.access_level is not None


def check_level(principal: Principal, conversation: Conversation, needs: AccessLevel) -> None:
    """Raises `AccessDeniedError` for too low a level, `NotGrantedError` for a key of other agents."""
    if principal.is_agent and not _covers(principal, conversation):
        raise NotGrantedError("a key whose grant covers the agent of the conversation")
    level = AGENT_REACHES if principal.user_id is None else conversation.access_level
    if not reaches(level, needs):
        raise AccessDeniedError(conversation.conversation_id, needed=needs)


def _covers(principal: Principal, conversation: Conversation) -> bool:
    return principal.grant is not None and principal.grant.covers(conversation.agent_name)
