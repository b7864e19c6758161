"""Messages before they are appended: checked, counted, and given their ids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import msgspec

from reactor_memory.core.bounds import checked
from reactor_memory.core.context.given_messages import MessagesLike, messages_of
from reactor_memory.core.context.message_counter import MessageCounter, characters_of, in_thread_if_long
from reactor_memory.core.validation import (
    MessageLimits,
    check_count,
    check_optional_id,
    check_session_id,
    fingerprint,
    new_message_id,
)
from reactor_memory.models import Message
from reactor_memory.models.requests import AppendRequest

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock


class BatchMaker:
    """Makes the batches that the log appends.

    `work_every`: after so many messages the background work of a session becomes due, whether this process does it or
    not. So whoever switches summaries on later finds all that there is to do.
    """

    def __init__(self, *, counter: MessageCounter, clock: Clock, limits: MessageLimits, work_every: int) -> None:
        self._counter = counter
        self._clock = clock
        self._limits = limits
        self._work_every = work_every

    async def prepared(
        self,
        session_id: str,
        messages: MessagesLike,
        *,
        user_id: str | None,
        idempotency_key: str | None,
        agent_name: str | None = None,
        field: str = "messages",
        counter: MessageCounter | None = None,
    ) -> AppendRequest:
        """The batch. Raises `InvalidInputError`, `InvalidMessageError` and `LimitExceededError`, which name `field`.
        `counter`: one that has counted some of the messages before.
        """
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        check_optional_id("idempotency_key", idempotency_key)
        batch = messages_of(messages, field=field)
        check_count(batch, self._limits, field=field)
        batch = checked(batch, self._limits, field=field)
        now = self._clock()
        return AppendRequest(
            session_id=session_id,
            user_id=user_id,
            messages=await in_thread_if_long(
                characters_of(batch), lambda: self._stamped(batch, now, counter or self._counter)
            ),
            now=now,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint(batch) if idempotency_key is not None else "",
            work_every=self._work_every,
            agent_name=agent_name,
        )

    @staticmethod
    def _stamped(messages: Sequence[Message], now: int, counter: MessageCounter) -> tuple[Message, ...]:
        """The messages as they are stored: counted once, so that no load ever counts them."""
        random = BytesIO(os.urandom(8 * len(messages))).read  # asking the system for each message would cost more
        return tuple(
            [
                msgspec.structs.replace(
                    message,
                    seq=None,
                    message_id=new_message_id(now, random),
                    created_at=now if message.created_at is None else message.created_at,
                    token_count=counter.counted(message),
                    tokenizer=counter.name,
                )
                for message in messages
            ]
        )
