"""Summaries that agents write themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from reactor_memory.core.validation import check_text
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, MessageNotFoundError
from reactor_memory.features.facts.plain_text import visible
from reactor_memory.features.posted_summaries.posting import PostedSummaries
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.access import Access, client_of
from reactor_memory.features.sharing.models import Conversation, Quotas
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.features.sharing.quotas import check_room
from reactor_memory.features.sharing.repeated_requests import batch_key
from reactor_memory.models import Message
from reactor_memory.text.moments import aware


class Summaries:
    """Posts summaries for agents; each call checks the access of its caller first (`Access`)."""

    def __init__(self, *, access: Access, database: Database, poster: PostedSummaries, quotas: Quotas) -> None:
        self._access = access
        self._database = database
        self._poster = poster
        self._quotas = quotas

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
        first one; raises `MessageNotFoundError` if it was erased since.
        """
        author_id = client_of(principal)
        check_text("until_message_id", until_message_id)
        _check_says_something(text)
        made_at = _in_utc(summarized_at)

        async def act(conversation: Conversation) -> Message:
            key = batch_key(principal, request_key)
            said = [Message(role="summary", content=text)]
            await self._database.read(check_room, conversation.session, said, key, self._quotas)
            posted = await self._poster.post(
                conversation_id,
                text=text,
                until_seq=await self._seq_of(conversation, until_message_id),
                user_id=conversation.session.owner_id,
                author_id=author_id,
                title=title,
                metadata={
                    "untilMessageId": until_message_id,
                    "summarizedAt": made_at,
                },
                idempotency_key=key,
            )
            if not posted.content:
                raise MessageNotFoundError(conversation_id)
            return posted

        return await self._access.acting(principal, conversation_id, act, needs="writer", operation="summarize")

    async def _seq_of(self, conversation: Conversation, message_id: str) -> int:
        message = await self._database.read(conversations.find_message, conversation.session, message_id)
        if message is None or message.seq is None:
            raise InvalidInputError("until_message_id", "is no message of the conversation")
        return message.seq


def _check_says_something(text: str) -> None:
    """As the manager does, under the name that a caller knows."""
    check_text("summary", text)
    if not visible(text):
        raise InvalidInputError("summary", "says nothing")


def _in_utc(time: datetime) -> str:
    try:
        return aware(time).astimezone(UTC).isoformat()
    except OverflowError:
        raise InvalidInputError("summarized_at", "lies beyond the years 1 to 9999 in UTC") from None
