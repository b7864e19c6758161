"""Who did what: the records of changes, and of agents that call without a user."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.validation import new_message_id
from reactor_memory.database.database import Database
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing.models import AuditRecord, Conversation
from reactor_memory.features.sharing.principals import Operation, Principal
from reactor_memory.models import JsonObject

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

HOUR = 3_600_000_000
"""Microseconds."""

REMEMBERED = 10_000
"""Notes of this hour that one process remembers, so that it does not write them again."""

EACH: tuple[Operation, ...] = ("append", "instruct", "summarize")
"""What is noted each time: it writes."""

_Note: TypeAlias = tuple[str | None, str, str, int]


class Audit:
    """Makes records with the time and the actor, and keeps those that change nothing else."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._noted: set[_Note] = set()

    def record(
        self,
        principal: Principal,
        conversation_id: str,
        action: str,
        *,
        target: str | None = None,
        details: JsonObject | None = None,
    ) -> AuditRecord:
        """What a store keeps together with a change. Its id sorts by time."""
        now = self._clock()
        return AuditRecord(
            record_id=new_message_id(now),
            group_id=group_of(conversation_id),
            conversation_id=conversation_id,
            actor_id=principal.user_id,
            client_id=principal.client_id,
            action=action,
            target=target,
            details=details or {},
            created_at=now,
        )

    async def note(self, principal: Principal, conversation: Conversation, operation: Operation) -> None:
        """An agent does this: each writing is a record, the rest one for each hour."""
        now = self._clock()
        if operation in EACH:
            await self._database.write(
                member_operations.add_audit,
                self._of_agent(principal, conversation, operation, now, new_message_id(now)),
            )
            return
        note = (principal.client_id, conversation.conversation_id, operation, now // HOUR)
        if note in self._noted:
            return
        hour = note[-1] * HOUR
        await self._database.write(
            member_operations.add_audit, self._of_agent(principal, conversation, operation, hour, _note_id(note))
        )
        self._remember(note)

    def _remember(self, note: _Note) -> None:
        if len(self._noted) >= REMEMBERED:
            self._noted.clear()
        self._noted.add(note)

    def _of_agent(
        self, principal: Principal, conversation: Conversation, operation: Operation, now: int, record_id: str
    ) -> AuditRecord:
        return AuditRecord(
            record_id=record_id,
            group_id=conversation.session.group_id,
            conversation_id=conversation.conversation_id,
            actor_id=principal.user_id,
            client_id=principal.client_id,
            action=operation,
            created_at=now,
        )


def _note_id(note: _Note) -> str:
    """The same in every process, so that together they write one record; it sorts as the beginning of the hour."""
    seed = "\0".join(map(str, note)).encode()
    return new_message_id(note[-1] * HOUR, lambda size: blake2b(seed, digest_size=size).digest())
