"""The door of the chat memory: add, get and clear the messages of a conversation."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from reactor_memory.core.context.given_messages import MessagesLike
from reactor_memory.core.log.operations import read_originals
from reactor_memory.core.manager import ConversationManager
from reactor_memory.database.database import Database
from reactor_memory.errors import (
    ConversationNotFoundError,
    GenericMemoryError,
    InvalidInputError,
    ReactorMemoryError,
)
from reactor_memory.features.chat_memory.hook_failures import failure_text, mapped
from reactor_memory.features.chat_memory.memory_management import MemoryManagementStrategy
from reactor_memory.features.chat_memory.projection import (
    SummarizationMetadata,
    View,
    gaps,
    is_before,
    merged,
    metadata_of,
)
from reactor_memory.features.erasure.eraser import Erasure
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models import Message
from reactor_memory.models.ledger import RangeSummary
from reactor_memory.models.requests import Appended

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore

log = logging.getLogger(__name__)

PAGE = 200

_VIEWS = get_args(View)


class _Read(Protocol):
    async def __call__(self, *, after: int, until: int | None, last: int) -> Sequence[Message]: ...


class ChatMemoryService:
    """Conversations as lists of messages, with summaries in place of older ones. A conversation is a session: its log,
    owner and limits are those of `ConversationManager`.

    Every method raises `ChatMemoryError`s only, with what went wrong as their cause (``__cause__``):
    `DataValidationError` for what the caller gave, `ConversationNotFoundError` where there is no such conversation,
    `GenericMemoryError` for everything else. A conversation is there as long as it holds a message or a summary.
    """

    def __init__(
        self,
        *,
        manager: ConversationManager,
        erasure: Erasure,
        messages: MessageStore,
        database: Database,
        strategy: MemoryManagementStrategy,
        on_hook_error: Literal["log", "raise"] = "log",
    ) -> None:
        self._manager = manager
        self._erasure = erasure
        self._messages = messages
        self._database = database
        self._strategy = strategy
        self._on_hook_error = on_hook_error

    async def add_messages(
        self,
        conversation_id: str,
        messages: MessagesLike,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        agent_name: str | None = None,
    ) -> Appended:
        """Store messages, all of them or none, at the end of the conversation; the first ones begin it.

        Their order is the one given; a message without a time gets the time of the call. Repeating a batch under its
        `idempotency_key` stores nothing again. Then the strategy has its turn. If that fails, the failure is logged, or
        with ``chat_memory.on_hook_error: raise`` raised as a `GenericMemoryError` with `messages_stored`: the messages
        are there, and must not be added again.

        Raises `DataValidationError` and `GenericMemoryError`, the latter also for a deleted session.
        """
        with mapped(conversation_id, may_be_missing=False):
            appended = await self._manager.save_history(
                conversation_id, messages, user_id=user_id, idempotency_key=idempotency_key, agent_name=agent_name
            )
        await self._after_adding(conversation_id, appended, user_id)
        return appended

    async def get_messages(
        self,
        conversation_id: str,
        *,
        limit: int | None = None,
        before: int | None = None,
        view: View = "full",
        user_id: str | None = None,
    ) -> tuple[Message, ...]:
        """The newest `limit` entries (None: all, 0: none), of those whose time is strictly earlier than `before`
        (microseconds UTC), oldest first.

        Entries stand in the order in which they were stored, also those with equal times. A summary has the role
        ``summary``, its metadata name its record (``summaryMetadataId``), it stands behind the last message of its
        range and has the time of the newest one.

        Raises `ConversationNotFoundError`, `DataValidationError` for impossible arguments, `GenericMemoryError`.
        """
        with mapped(conversation_id, may_be_missing=True):
            _check_arguments(limit, before, view)
            while True:
                summaries = await self._existing(conversation_id, user_id)
                messages = await self._newest(conversation_id, user_id, summaries, view, limit, before)
                if (
                    await self._database.read(range_summaries.read_range_summaries, conversation_id, user_id)
                    == summaries
                ):
                    shown = () if view == "originals" else summaries
                    return merged(messages, shown, before=before, limit=limit)

    async def clear_messages(self, conversation_id: str, *, user_id: str | None = None) -> None:
        """Destroy the content of all messages and summaries, and everything that was made of them, in one transaction.

        The conversation is gone then: getting or clearing it raises `ConversationNotFoundError`. Adding messages begins
        it anew under its id and its owner. Positions and idempotency keys are not used again, so a late repetition of
        an earlier batch stores nothing. A fork shares its messages with others and cannot be cleared, only deleted
        (`ConversationManager.delete`): `DataValidationError`.
        """
        with mapped(conversation_id, may_be_missing=True):
            session = await self._manager.get_session(conversation_id, user_id=user_id)
            if session.forked_from_id is not None:
                raise InvalidInputError("conversation_id", "is a fork, which shares its messages; delete it instead")
            await self._existing(conversation_id, user_id)
            await self._erasure.erase(conversation_id, seq=range(1, session.last_seq + 1), user_id=user_id)

    async def get_summarization_metadata(
        self, conversation_id: str, metadata_id: str, *, user_id: str | None = None
    ) -> SummarizationMetadata:
        """What the summary with this id stands for. `DataValidationError` if the conversation shows no such summary."""
        for record in await self.list_summarization_metadata(conversation_id, user_id=user_id):
            if record.metadata_id == metadata_id:
                return record
        with mapped(conversation_id, may_be_missing=True):
            raise InvalidInputError("metadata_id", "names no summary of this conversation")

    async def list_summarization_metadata(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> tuple[SummarizationMetadata, ...]:
        """What each summary of the conversation stands for, in the order of their ranges."""
        with mapped(conversation_id, may_be_missing=True):
            summaries = await self._existing(conversation_id, user_id)
        return tuple(metadata_of(conversation_id, summary) for summary in summaries)

    async def _existing(self, conversation_id: str, user_id: str | None) -> tuple[RangeSummary, ...]:
        """The summaries of the conversation, which is there."""
        await self._manager.get_session(conversation_id, user_id=user_id)
        summaries = await self._database.read(range_summaries.read_range_summaries, conversation_id, user_id)
        if not summaries and not await self._database.read(read_originals, conversation_id, user_id, limit=1):
            raise ConversationNotFoundError(conversation_id)
        return summaries

    async def _newest(
        self,
        conversation_id: str,
        user_id: str | None,
        summaries: Sequence[RangeSummary],
        view: View,
        limit: int | None,
        before: int | None,
    ) -> list[Message]:
        """The messages of the view, newest first, as many as may be wanted."""
        originals = partial(self._database.read, read_originals)
        read: _Read = partial(originals if view == "originals" else self._messages.read, conversation_id, user_id)
        ranges = gaps(summaries if view == "effective" else ())
        found: list[Message] = []
        for after, until in reversed(ranges):
            found += await _newest_of(read, after, until, before, None if limit is None else limit - len(found))
        return found

    async def _after_adding(self, conversation_id: str, appended: Appended, user_id: str | None) -> None:
        batch = appended.last_seq - appended.first_seq + 1
        added = 0 if appended.replayed else batch
        try:
            total = await self._total(conversation_id, appended, user_id) or batch
            await self._strategy.post_add_messages_hook(conversation_id, added, total, user_id=user_id)
        except Exception as error:
            if self._on_hook_error == "raise":
                problem = (
                    f"the messages are stored, do not add them again; then the strategy failed: {failure_text(error)}"
                )
                raise GenericMemoryError(conversation_id, problem, messages_stored=True) from error
            log.warning(
                "chat memory: the strategy failed, the messages are stored",
                extra={"session_id": conversation_id, "reason": type(error).__name__},
            )

    async def _total(self, conversation_id: str, appended: Appended, user_id: str | None) -> int:
        """How many messages there are from the oldest that is left on; 0 if that cannot be told."""
        try:
            oldest = await self._database.read(read_originals, conversation_id, user_id, limit=1)
        except ReactorMemoryError as error:
            reason = type(error).__name__
            log.warning("chat memory: not counted", extra={"session_id": conversation_id, "reason": reason})
            return 0
        return appended.last_seq - (oldest[0].seq or 1) + 1 if oldest else 0


async def _newest_of(
    read: _Read, after: int, until: int | None, before: int | None, limit: int | None
) -> list[Message]:
    """The newest `limit` messages of a range whose time is earlier than `before`, newest first."""
    found: list[Message] = []
    while limit is None or len(found) < limit:
        size = PAGE if limit is None or before is not None else min(PAGE, limit - len(found))
        page = await read(after=after, until=until, last=size)
        found += [message for message in reversed(page) if is_before(message, before)]
        if len(page) < size:
            break
        until = (page[0].seq or 1) - 1
    return found if limit is None else found[:limit]


def _check_arguments(limit: object, before: object, view: object) -> None:
    if view not in _VIEWS:
        raise InvalidInputError("view", f"must be one of {', '.join(_VIEWS)}")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidInputError("limit", "must be a whole number from 0 on, or None")
    if before is not None and type(before) is not int:
        raise InvalidInputError("before", "must be a time in microseconds UTC as an int, or None")
