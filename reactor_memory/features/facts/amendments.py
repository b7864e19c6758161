"""What people and agents said of a session beside its messages, in the database of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reactor_memory.core.context.withheld import NOTHING_WITHHELD, Withheld
from reactor_memory.core.log.archived_ranges import ArchivedRanges, read_archived
from reactor_memory.database.database import Database
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.models import BranchRange
from reactor_memory.models.ledger import FactCorrection, PostedSummary


class Amendments(Protocol):
    """What people and agents said of a session beside its messages, for the fold of its summary."""

    async def read_posted(self, branch: Sequence[BranchRange]) -> PostedSummary | None:
        """The posted summary that counts in this branch (`Ledger.posted`)."""
        ...

    async def read_archived(self, branch: Sequence[BranchRange]) -> ArchivedRanges:
        """What callers archived of this branch."""
        ...

    async def read_withheld(self, branch: Sequence[BranchRange]) -> Withheld:
        """What contexts of the branch do not say."""
        ...

    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]:
        """The corrections of the session's facts, in the order in which they were made."""
        ...

    async def outdated_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        """The segments of the session that are to be extracted anew, oldest first."""
        ...

    async def waiting_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        """The segments that the offline reader read and a model is to read with others, oldest first."""
        ...

    async def wait_no_more(self, session_id: str, start_seq: int, end_seq: int) -> None:
        """What the offline reader read of these segments stays: a model refused them."""
        ...


class SqlAmendments:
    """`Amendments` over the database of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_posted(self, branch: Sequence[BranchRange]) -> PostedSummary | None:
        return await self._database.read(fact_operations.read_posted, branch)

    async def read_archived(self, branch: Sequence[BranchRange]) -> ArchivedRanges:
        return await self._database.read(read_archived, branch)

    async def read_withheld(self, branch: Sequence[BranchRange]) -> Withheld:
        if not await self._database.read(fact_operations.may_withhold, branch):
            return NOTHING_WITHHELD
        return await self._database.read(fact_operations.read_withheld, branch)

    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]:
        return await self._database.read(fact_operations.read_corrections, session_id)

    async def outdated_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        return await self._database.read(fact_operations.outdated_ranges, session_id)

    async def waiting_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        return await self._database.read(fact_operations.waiting_ranges, session_id)

    async def wait_no_more(self, session_id: str, start_seq: int, end_seq: int) -> None:
        await self._database.write(fact_operations.wait_no_more, session_id, start_seq=start_seq, end_seq=end_seq)


class NoAmendments:
    """A store that is no database keeps none."""

    async def read_posted(self, branch: Sequence[BranchRange]) -> None:
        return None

    async def read_archived(self, branch: Sequence[BranchRange]) -> ArchivedRanges:
        return ArchivedRanges()

    async def read_withheld(self, branch: Sequence[BranchRange]) -> Withheld:
        return NOTHING_WITHHELD

    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]:
        return ()

    async def outdated_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        return ()

    async def waiting_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        return ()

    async def wait_no_more(self, session_id: str, start_seq: int, end_seq: int) -> None: ...
