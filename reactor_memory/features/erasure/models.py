"""What an erasure did."""

from __future__ import annotations

from reactor_memory.models import Value
from reactor_memory.models.requests import ErasedBranch


class ErasedMessages(Value, frozen=True, kw_only=True):
    """What an erasure did: how many messages were destroyed now, and which sessions had shown them.

    One that was a tombstone already does not count.
    """

    message_count: int
    session_ids: tuple[str, ...]


class ErasedUser(Value, frozen=True, kw_only=True):
    """What the erasure of a user did: how many sessions were destroyed now, forks included, and how many rows of notes
    and active sessions.
    """

    session_count: int
    row_count: int


class Erased(Value, frozen=True, kw_only=True):
    """How many messages were destroyed now (those that were tombstones already do not count), and every branch that
    showed one of those that were asked for, deleted ones included.
    """

    message_count: int
    branches: tuple[ErasedBranch, ...] = ()
