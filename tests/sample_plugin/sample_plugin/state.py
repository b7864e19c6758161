"""What the sample store holds: dictionaries in the memory of this process, one set for each address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from reactor_memory.core.log.branches import ranges_between
from reactor_memory.errors import SessionDeletedError, SessionNotFoundError, SessionOwnershipError
from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.ledger import Fact, Segment, Summary
from reactor_memory.models.requests import Appended


@dataclass
class Conversation:
    """A session and the messages that are stored under its own id: `seq` is `messages[seq - first_seq]`."""

    session: Session
    first_seq: int = 1
    messages: list[Message] = field(default_factory=list[Message])
    withdrawn: set[int] = field(default_factory=set[int])
    batches: dict[str, tuple[str, Appended]] = field(default_factory=dict[str, Any])
    is_purged: bool = False

    def visible(self, part: BranchRange) -> Iterator[Message]:
        """The messages of `part`, newest first."""
        last = self.session.last_seq if part.end_seq is None else min(part.end_seq, self.session.last_seq)
        for seq in range(last, part.start_seq - 1, -1):
            if seq not in self.withdrawn:
                yield self.messages[seq - self.first_seq]

    def purge(self) -> None:
        self.messages.clear()
        self.withdrawn.clear()
        self.batches.clear()
        self.is_purged = True


@dataclass
class Derived:
    """What was made from one conversation. Segments and their facts are found by the end of the segment."""

    segments: dict[int, tuple[Segment, tuple[Fact, ...]]] = field(default_factory=dict[int, Any])
    summary: Summary | None = None
    layouts: dict[tuple[int, str], Layout] = field(default_factory=dict[tuple[int, str], Layout])


@dataclass
class Work:
    """The state of background work. `is_touched`: it was made due while a lease was out."""

    due_at: int | None = None
    lease_until: int = 0
    fence: int = 0
    attempts: int = 0
    is_parked: bool = False
    last_error: str | None = None
    is_touched: bool = False

    def make_due(self, now: int) -> None:
        self.due_at = now if self.due_at is None else min(self.due_at, now)
        self.is_touched = True


@dataclass
class State:
    """Everything. No method of the stores awaits between its first look at it and its last change, so each is atomic
    under asyncio; and each checks before it changes, so a refused call has changed nothing.
    """

    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    derived: defaultdict[str, Derived] = field(default_factory=lambda: defaultdict[str, Derived](Derived))
    work: defaultdict[tuple[str, str], Work] = field(default_factory=lambda: defaultdict[tuple[str, str], Work](Work))

    def find(self, session_id: str, user_id: str | None) -> Conversation | None:
        conversation = self.conversations.get(session_id)
        if conversation is None:
            return None
        if conversation.session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        check_owner(conversation.session, user_id)
        return conversation

    def required(self, session_id: str, user_id: str | None) -> Conversation:
        conversation = self.find(session_id, user_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        return conversation

    def lives(self, session_id: str) -> bool:
        conversation = self.conversations.get(session_id)
        return conversation is not None and conversation.session.deleted_at is None

    def newest_first(
        self, branch: Sequence[BranchRange], after: int = 0, until: int | None = None
    ) -> Iterator[Message]:
        parts = reversed(ranges_between(branch, after, until))
        return chain.from_iterable(self.conversations[part.conversation_id].visible(part) for part in parts)

    def forget(self, session_id: str) -> None:
        """Everything derived; who holds a lease cannot store what it made."""
        self.derived.pop(session_id, None)
        for key, work in self.work.items():
            if key[0] == session_id:
                self.work[key] = Work(fence=work.fence + 1)


def check_owner(session: Session, user_id: str | None) -> None:
    if session.owner_id is not None and session.owner_id != user_id:
        raise SessionOwnershipError(session.session_id)


_states: dict[str, State] = {}


def state_at(url: str) -> State:
    """What is kept under this address, as long as the process lives."""
    return _states.setdefault(url, State())
