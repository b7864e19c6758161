"""Conversations of many users: to begin, find, fork, delete and restore them."""

from __future__ import annotations

from reactor_memory.manager import ConversationManager
from reactor_memory.memberships import Conversation, ConversationStore, ListMode
from reactor_memory.models import JsonObject
from reactor_memory.principals import Principal
from reactor_memory.protocols import Clock, SummaryScheduler
from reactor_memory.service.access import Access
from reactor_memory.service.auditing import Audit
from reactor_memory.service.messages import NewMessage


class Conversations:
    """What members do with whole conversations; each call checks the access of its caller first (`Access`).

    With `purge` what is deleted cannot be restored.
    """

    def __init__(
        self,
        *,
        access: Access,
        store: ConversationStore,
        manager: ConversationManager,
        scheduler: SummaryScheduler,
        audit: Audit,
        clock: Clock,
        purge: bool,
    ) -> None:
        self._access = access
        self._store = store
        self._manager = manager
        self._scheduler = scheduler
        self._audit = audit
        self._clock = clock
        self._purge = purge

    async def create(
        self,
        principal: Principal,
        *,
        title: str | None = None,
        metadata: JsonObject | None = None,
        agent_name: str | None = None,
        request_key: str | None = None,
    ) -> Conversation:
        """A new conversation of the caller. A blank title is none."""
        raise NotImplementedError

    async def get(self, principal: Principal, conversation_id: str) -> Conversation:
        """The conversation, with its preview and the last message that it shares."""
        raise NotImplementedError

    async def list(
        self,
        principal: Principal,
        *,
        mode: ListMode = "all",
        text: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 20,
    ) -> tuple[Conversation, ...]:
        """Those of the caller, newest activity first, behind `after` (updated_at and id of the last one seen)."""
        raise NotImplementedError

    async def rename(self, principal: Principal, conversation_id: str, title: str | None) -> Conversation:
        raise NotImplementedError

    async def delete(self, principal: Principal, conversation_id: str) -> tuple[str, ...]:
        """Delete a root with all its forks, a fork with those below it; the ids that went."""
        raise NotImplementedError

    async def restore(self, principal: Principal, conversation_id: str) -> Conversation:
        """Bring back what was deleted together. One that was not deleted is returned as it is."""
        raise NotImplementedError

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

        Raises `MessageNotFoundError`, and `InvalidInputError` for a message that is no user's or that users do not see.
        """
        raise NotImplementedError

    async def forks(self, principal: Principal, conversation_id: str) -> tuple[Conversation, ...]:
        """The conversations of the group, the root first, in the order of their creation."""
        raise NotImplementedError
