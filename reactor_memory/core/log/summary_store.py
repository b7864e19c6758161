"""Layouts, background work and the ledger in the database of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reactor_memory.core import log
from reactor_memory.database.database import Database
from reactor_memory.models import BranchRange
from reactor_memory.models.ledger import SealedSegment
from reactor_memory.models.requests import EVER, Ahead, ErasedBranch

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold
    from reactor_memory.models.block_lines import Layout
    from reactor_memory.models.leases import Lease, WorkState
    from reactor_memory.models.ledger import Fact, Ledger, Segment, Summary, SummaryHead


class SqlSummaryStore:
    """`SummaryStore` over the database of the log."""

    def __init__(self, database: Database, ledger: Callable[[], Any]) -> None:
        """`ledger` imports the operations on segments and facts (`reactor_memory.features.facts.operations`) when one
        is first needed: without summaries, none is.
        """
        self._database = database
        self._ledger = ledger

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def get_summary(self, session_id: str) -> Summary | None:
        return await self._database.read(log.summaries.get_summary, session_id)

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        return await self._database.read(log.summaries.get_summary_head, session_id)

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None:
        return await self._database.read(log.context_layouts.get_layout, session_id, budget, settings_fingerprint)

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        await self._database.write_relaxed(
            log.context_layouts.put_layout, session_id, layout, budget, settings_fingerprint
        )

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        return await self._database.read(self._ledger().read_ledger, branch)

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        return await self._database.read(self._ledger().read_facts_about, branch, anchors)

    async def record_segment(
        self,
        lease: Lease,
        segment: Segment,
        facts: Sequence[Fact],
        summary: Summary,
        *,
        earlier: Sequence[SealedSegment] = (),
    ) -> bool:
        sealed = (*earlier, SealedSegment(segment=segment, facts=tuple(facts)))
        return await self._database.write(self._ledger().record_segments, lease, sealed, summary)

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        return await self._database.write(self._ledger().put_summary, lease, summary)

    async def invalidate(self, branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold) -> None:
        await self._database.write(self._ledger().lock_and_forget_messages, branches, now=now, refold=refold)

    async def forget(self, session_ids: Sequence[str]) -> None:
        await self._database.write(self._ledger().forget, session_ids)

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None:
        return await self._database.write_relaxed(
            log.background_work.claim,
            session_id,
            kind,
            now=now,
            lease_microseconds=lease_microseconds,
            wait_microseconds=wait_microseconds,
        )

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        return await self._database.write_relaxed(
            log.background_work.renew, lease, now=now, lease_microseconds=lease_microseconds
        )

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        await self._database.write_relaxed(
            log.background_work.release, lease, due_at=due_at, attempts=attempts, parked=parked, error=error
        )

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> Mapping[str, tuple[str, ...]]:
        return await self._database.read(log.background_work.due, kinds, now=now, limit=limit, ahead=ahead)

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        return await self._database.read(log.background_work.work_state, session_id, kind)
