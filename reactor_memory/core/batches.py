"""Messages before they are appended: checked, counted, and given their ids."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

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
from reactor_memory.models.tool_roles import NO_ROLES, ToolRole, ToolRoles, roles_of, with_roles

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock


MOST_SESSIONS, MOST_TOOLS = 1_000, 256
"""Of so many sessions, those that loaded last, the roles of so many tools are remembered."""


class BatchMaker:
    """Makes the batches that the log appends.

    `work_every`: after so many messages the background work of a session becomes due, whether this process does it or
    not. So whoever switches summaries on later finds all that there is to do. `tool_roles`: what plug-ins know.
    """

    def __init__(
        self,
        *,
        counter: MessageCounter,
        clock: Clock,
        limits: MessageLimits,
        work_every: int,
        tool_roles: ToolRoles = NO_ROLES,
    ) -> None:
        self._counter = counter
        self._clock = clock
        self._limits = limits
        self._work_every = work_every
        self._tool_roles = tool_roles
        self._declared: OrderedDict[str, dict[str, ToolRole]] = OrderedDict()

    def tools_declared(self, session_id: str, tools: Sequence[Any]) -> None:
        """What the tools of a session do, as their annotations tell, stands with the messages that call them. It is no
        part of what a repeated batch must have in common with the first one.
        """
        if roles := roles_of(tools):
            known = self._declared.get(session_id, {}) | roles
            self._declared[session_id] = dict(list(known.items())[-MOST_TOOLS:])
            self._declared.move_to_end(session_id)
            if len(self._declared) > MOST_SESSIONS:
                self._declared.popitem(last=False)

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
        roles: ToolRoles = {**self._tool_roles, **self._declared.get(session_id, {})}
        return AppendRequest(
            session_id=session_id,
            user_id=user_id,
            messages=await in_thread_if_long(
                characters_of(batch),
                lambda: self._stamped(with_roles(batch, roles) if roles else batch, now, counter or self._counter),
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
