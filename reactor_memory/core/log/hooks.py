"""What features do when the log changes, in its transaction. The log runs registered hooks and names no feature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from reactor_memory.core import HOOK_MODULES
from reactor_memory.database.operations import Steps
from reactor_memory.models import BranchRange, Session, Value
from reactor_memory.models.requests import ErasedBranch

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class Gone(Value, frozen=True, kw_only=True):
    """Stored messages that went out of view for good, and the branches that showed some of them, with their own seqs.
    `with_others`: other messages went only because they tell of these.
    """

    parts: tuple[BranchRange, ...]
    branches: tuple[ErasedBranch, ...]
    with_others: bool = False


class LogHook:
    """The hook of a feature. Each method does nothing unless it is overridden. The group of the session is locked.

    `refold` is the fold of a ledger into a summary under the settings of the caller.
    """

    merges: ClassVar[Sequence[str]] = ()
    """Statements that each merge a part of a full-text index of SQLite, until they change no row any more."""

    def on_fork(self, parent: Session, fork_id: str, at_seq: int) -> Steps[None]:
        """A branch begins at `at_seq`: it takes along what is kept for the messages before."""
        yield from ()

    def telling_of(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        """The messages that tell of these ones. Changes nothing."""
        yield from ()
        return ()

    def also_gone(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        """As `telling_of`, before all of them go: what is read from them must be read now."""
        yield from ()
        return ()

    def out_of_view(self, conversation_id: str, start: int, end: int, *, destroyed: bool) -> Steps[None]:
        """These stored messages are cleared, withdrawn or `destroyed`."""
        yield from ()

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        """Remove what is derived from these messages, in every branch that showed them."""
        yield from ()

    def on_memory_changed(
        self, session: Session, *, back_from: int | None, is_other: bool, now: int, refold: LedgerFold
    ) -> Steps[None]:
        """What is archived has changed. `is_other`: memory changes with it; `back_from`: from there on, messages that
        were cleared may be found again.
        """
        yield from ()

    def on_delete(self, session_id: str) -> Steps[None]:
        """The session was marked as deleted; it may be restored until it is purged."""
        yield from ()

    def on_purge(self, session_id: str) -> Steps[None]:
        """Remove everything that is kept of the session."""
        yield from ()

    def on_user_forgotten(self, user_id: str, now: int) -> Steps[int]:
        """Remove what is kept about a user beside sessions; how many rows."""
        yield from ()
        return 0

    derives: ClassVar[str] = ""
    """What the feature keeps of a session that it can make again from the log."""

    def damaged(self, session_id: str | None) -> Steps[tuple[str, ...]]:
        """The sessions, or this one, of which some of what it `derives` cannot be read."""
        yield from ()
        return ()

    def make_again(self, session_id: str) -> Steps[None]:
        """Take away what it `derives` of a damaged session; background work makes it again."""
        yield from ()

    def health(self) -> Steps[tuple[tuple[str, str], ...]]:
        """Details for a report on the database."""
        yield from ()
        return ()


@cache
def hooks() -> list[LogHook]:
    """The registered ones, in the order of `HOOK_MODULES`, imported when one is needed::

    for hook in hooks():
        yield from hook.on_delete(session_id)
    """
    return [import_module(module).HOOK for module in HOOK_MODULES]
