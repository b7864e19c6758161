"""What is made of a log, as records: a `SummaryStore` over a `RecordStore`."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.ports import LedgerFold
from reactor_memory.features.facts.operations import all_gone, overlaps, refolded
from reactor_memory.features.facts.segments import segments_of_branch
from reactor_memory.features.facts.working_state import is_touched
from reactor_memory.features.record_store.families import Families, Records
from reactor_memory.features.record_store.record_family import Family, Work, due_for
from reactor_memory.models import BranchRange
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.ledger import Fact, Ledger, SealedSegment, Segment, Summary, SummaryHead
from reactor_memory.models.requests import EVER, SUMMARIZE, Ahead, ErasedBranch

T = TypeVar("T")


class RecordSummaryStore:
    """Segments, facts, summaries, layouts and leases beside the log of the same records, which opens them."""

    def __init__(self, families: Families) -> None:
        self._families = families

    async def open(self) -> None:
        """The log opens the records."""

    async def close(self) -> None:
        """The log closes them."""

    async def get_summary(self, session_id: str) -> Summary | None:
        return (await self._family(session_id)).derived(session_id).summary

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        summary = await self.get_summary(session_id)
        return None if summary is None else summary.head

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None:
        return (await self._family(session_id)).derived(session_id).layout(budget, settings_fingerprint)

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        def deed(family: Family) -> None:
            if not family.lives(session_id):
                return
            derived = family.derived(session_id)
            epoch = 0 if derived.summary is None else derived.summary.epoch
            known = derived.layout(budget, settings_fingerprint)
            if layout.epoch == epoch and (known is None or _rank(layout) > _rank(known)):
                derived.put_layout(layout, budget, settings_fingerprint)

        await self._change(session_id, deed)

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        return _ledger(await self._family(session_id), branch)

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        ledger = await self.read_ledger(session_id, branch)
        return tuple(fact for fact in ledger.facts if fact.verified and fact.anchor in anchors)

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

        def deed(family: Family) -> bool:
            segments = family.derived(segment.conversation_id).segments
            if not all(_may_replace(segments.get(each.segment.end_seq), each.segment) for each in sealed):
                return False
            if not _put(family, lease, summary):
                return False
            segments.update({each.segment.end_seq: each for each in sealed})
            return True

        return await self._change(lease.session_id, deed)

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        return await self._change(lease.session_id, lambda family: _put(family, lease, summary))

    async def invalidate(self, branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold) -> None:
        by_group: defaultdict[str, list[ErasedBranch]] = defaultdict(list)
        for branch in branches:
            by_group[group_of(branch.session.session_id)].append(branch)
        for group_id, own in by_group.items():
            await self._change(group_id, lambda family, own=own: _invalidate(family, own, now, refold))

    async def forget(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            await self._change(session_id, lambda family, session_id=session_id: family.forget(session_id))

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None:
        def deed(family: Family) -> Lease | None:
            if not family.lives(session_id):
                return None
            work = family.find_work(session_id, kind) or Work()
            if _is_leased(work, now, lease_microseconds):
                return None
            if wait_microseconds is not None and (work.is_parked or _is_put_off(work, now, wait_microseconds)):
                return None
            work = family.work(session_id, kind)
            work.fence += 1
            work.make_due(now)
            work.is_parked = work.is_touched = False
            work.lease_until = now + lease_microseconds
            return Lease(
                session_id=session_id, kind=kind, fence=work.fence, lease_until=work.lease_until, attempts=work.attempts
            )

        return await self._change(session_id, deed)

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        def deed(family: Family) -> bool:
            work = family.find_work(lease.session_id, lease.kind)
            if work is None or work.fence != lease.fence or not work.lease_until:
                return False
            work.lease_until = now + lease_microseconds
            return True

        return await self._change(lease.session_id, deed)

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        def deed(family: Family) -> None:
            work = family.find_work(lease.session_id, lease.kind)
            if work is None or work.fence != lease.fence:
                return
            if not work.is_touched:
                work.due_at = due_at
            work.lease_until = 0
            work.attempts, work.is_parked, work.last_error = attempts, parked, error

        await self._change(lease.session_id, deed)

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> Mapping[str, tuple[str, ...]]:
        return {kind: await self._due(kind, now, limit, ahead) for kind in kinds}

    async def _due(self, kind: str, now: int, limit: int, ahead: Ahead) -> tuple[str, ...]:
        waiting: list[tuple[int, str]] = []
        async for family in self._families.groups(due_for(kind)):
            for session_id, kinds in family.made.work.items():
                work = kinds.get(kind)
                if work is not None and work.due_at is not None and family.lives(session_id):
                    waiting += [(work.due_at, session_id)] if _is_due(work, now, ahead) else []
        return tuple(session_id for _, session_id in heapq.nsmallest(limit, waiting))

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        work = (await self._family(session_id)).find_work(session_id, kind)
        if work is None:
            return None
        return WorkState(
            session_id=session_id,
            kind=kind,
            due_at=work.due_at,
            lease_until=work.lease_until,
            fence=work.fence,
            attempts=work.attempts,
            parked=work.is_parked,
            last_error=work.last_error,
        )

    async def _family(self, session_id: str) -> Family:
        return await self._families.family(group_of(session_id))

    async def _change(self, session_id: str, deed: Callable[[Family], T]) -> T:
        def changed(family: Family, found: Mapping[str, bytes]) -> tuple[T, Records]:
            return deed(family), {}

        return await self._families.change(group_of(session_id), changed)


def _rank(layout: Layout) -> tuple[int, int]:
    return layout.seq, layout.covered_seq


def _may_replace(known: SealedSegment | None, new: Segment) -> bool:
    if known is None:
        return True
    stored = known.segment
    return stored.start_seq == new.start_seq and (stored.stale or stored.outdated or stored.waits)


def _put(family: Family, lease: Lease, summary: Summary) -> bool:
    work = family.find_work(lease.session_id, lease.kind)
    if work is None or work.fence != lease.fence or not family.lives(lease.session_id):
        return False
    derived = family.derived(lease.session_id)
    stored = derived.summary or Summary()
    if summary.version != stored.version + 1 or summary.covered_seq < stored.covered_seq:
        return False
    derived.summary = summary
    return True


def _ledger(family: Family, branch: Sequence[BranchRange]) -> Ledger:
    segments = segments_of_branch(
        branch, {part.conversation_id: family.segments(part.conversation_id) for part in branch}
    )
    sealed = [family.derived(each.conversation_id).segments[each.end_seq] for each in segments]
    return Ledger(segments=segments, facts=tuple([fact for each in sealed for fact in each.facts]))


def _invalidate(family: Family, branches: Sequence[ErasedBranch], now: int, refold: LedgerFold) -> None:
    holding: list[Segment] = []
    for branch in branches:
        for work in family.made.work.get(branch.session.session_id, {}).values():
            work.fence += 1
            work.lease_until = 0
        holding += (each for each in family.segments(branch.session.session_id) if overlaps(each, branch.ranges))
    if all_gone(holding, branches):
        return
    for segment in holding:
        blank = replace(segment, source_hash="", narrative="", headline="", stale=True, outdated=False, waits=False)
        family.derived(segment.conversation_id).segments[segment.end_seq] = SealedSegment(segment=blank)
    for branch in branches:
        _forget_items(family, branch)
        _refold(family, branch, now, refold)


def _forget_items(family: Family, branch: ErasedBranch) -> None:
    """Those of later segments that rest on what went."""
    segments = family.derived(branch.session.session_id).segments
    for end_seq, sealed in segments.items():
        left = (each for each in sealed.facts if not any(is_touched(each, *gone) for gone in branch.ranges))
        segments[end_seq] = replace(sealed, facts=tuple(left))


def _refold(family: Family, branch: ErasedBranch, now: int, refold: LedgerFold) -> None:
    session = branch.session
    derived = family.derived(session.session_id)
    derived.layouts.clear()
    if derived.summary is None or derived.summary.covered_seq < branch.ranges[0][0]:
        return
    derived.summary = refolded(derived.summary, _ledger(family, session.branch), refold, now)
    family.work(session.session_id, SUMMARIZE).make_due(now)


def _is_due(work: Work, now: int, ahead: Ahead) -> bool:
    is_free = not _is_leased(work, now, ahead.lease_microseconds)
    return is_free and not work.is_parked and not _is_put_off(work, now, ahead.wait_microseconds)


def _is_leased(work: Work, now: int, lease_microseconds: int) -> bool:
    """What is leased for longer was so by a wrong clock."""
    return now < work.lease_until <= now + 2 * lease_microseconds


def _is_put_off(work: Work, now: int, wait_microseconds: int) -> bool:
    """What is put off for longer was so by a wrong clock."""
    return work.due_at is not None and now < work.due_at <= now + 2 * wait_microseconds
