"""Summaries that agents write themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from reactor_memory.errors import InvalidInputError
from reactor_memory.manager import ConversationManager
from reactor_memory.memberships import Conversation, ConversationStore
from reactor_memory.models import Message
from reactor_memory.principals import Principal
from reactor_memory.service.access import Access, client_of
from reactor_memory.service.requests import batch_key


class Summaries:
    """Posts summaries for agents; each call checks the access of its caller first (`Access`)."""

    def __init__(self, *, access: Access, store: ConversationStore, manager: ConversationManager) -> None:
        self._access = access
        self._store = store
        self._manager = manager

    async def post(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        text: str,
        title: str | None,
        until_message_id: str,
        summarized_at: datetime,
        request_key: str | None = None,
    ) -> Message:
        """The message that holds the summary of everything up to `until_message_id`, which must be a message of the
        conversation, or of what it shares (`InvalidInputError`). A repetition with the same `request_key` returns the
        first one.
        """
        author_id = client_of(principal)

        async def act(conversation: Conversation) -> Message:
            return await self._manager.post_summary(
                conversation_id,
                text=text,
                until_seq=await self._seq_of(conversation, until_message_id),
                user_id=conversation.session.owner_id,
                author_id=author_id,
                title=title,
                metadata={
                    "untilMessageId": until_message_id,
                    "summarizedAt": summarized_at.astimezone(UTC).isoformat(),
                },
                idempotency_key=batch_key(principal, request_key),
            )

        return await self._access.acting(principal, conversation_id, act, needs="writer", operation="summarize")

    async def _seq_of(self, conversation: Conversation, message_id: str) -> int:
        message = await self._store.find_message(conversation.session, message_id)
        if message is None or message.seq is None:
            raise InvalidInputError("until_message_id", "is no message of the conversation")
        return message.seq
