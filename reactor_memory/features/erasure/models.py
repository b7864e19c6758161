"""What an erasure did."""

from __future__ import annotations

from reactor_memory.models import Value
from reactor_memory.models.requests import ErasedBranch


class ErasedMessages(Value, frozen=True, kw_only=True):
    """What an erasure did: how many messages were destroyed now, and which sessions had shown them.

    One that was a tombstone already does not count. `is_scrubbed`: no byte is left of them where this library can
    reach, in the files of the database and elsewhere. If not, nobody is shown them, `left` names where they are, and
    background work goes on until they are gone.
    """

    message_count: int
    session_ids: tuple[str, ...]
    is_scrubbed: bool = True
    left: tuple[str, ...] = ()


class ErasedUser(Value, frozen=True, kw_only=True):
    """What the erasure of a user did: how many sessions were destroyed now, forks included, and how many rows of notes
    and active sessions. `is_scrubbed` and `left` as of `ErasedMessages`.
    """

    session_count: int
    row_count: int
    is_scrubbed: bool = True
    left: tuple[str, ...] = ()


class Erased(Value, frozen=True, kw_only=True):
    """How many messages were destroyed now (those that were tombstones already do not count), and every branch that
    showed one of those that were asked for, deleted ones included.
    """

    message_count: int
    branches: tuple[ErasedBranch, ...] = ()
