"""A `SummaryStore` without a database, over the same dictionaries as the log."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from reactor_memory.core.ports import LedgerFold
from reactor_memory.features.facts.operations import all_gone, overlaps, refolded
from reactor_memory.features.facts.segments import segments_of_branch
from reactor_memory.models import BranchRange
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.ledger import Fact, Ledger, SealedSegment, Segment, Summary, SummaryHead
from reactor_memory.models.requests import EVER, SUMMARIZE, Ahead, ErasedBranch
from reactor_memory.wiring.settings import Settings
from sample_plugin.state import State, Work, state_at


class SampleSummaries:
    """Segments, facts, summaries, layouts and leases in dictionaries."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def get_summary(self, session_id: str) -> Summary | None:
        return self._state.derived[session_id].summary

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        summary = self._state.derived[session_id].summary
        return None if summary is None else summary.head

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None:
        return self._state.derived[session_id].layouts.get((budget, settings_fingerprint))

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        derived = self._state.derived[session_id]
        epoch = 0 if derived.summary is None else derived.summary.epoch
        known = derived.layouts.get((budget, settings_fingerprint))
        is_newer = known is None or (layout.seq, layout.covered_seq) > (known.seq, known.covered_seq)
        if self._state.lives(session_id) and layout.epoch == epoch and is_newer:
            derived.layouts[budget, settings_fingerprint] = layout

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        return self._ledger(branch)

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        return tuple(fact for fact in self._ledger(branch).facts if fact.verified and fact.anchor in anchors)

    async def record_segment(
        self,
        lease: Lease,
        segment: Segment,
        facts: Sequence[Fact],
        summary: Summary,
        *,
        earlier: Sequence[SealedSegment] = (),
    ) -> bool:
        segments = self._state.derived[segment.conversation_id].segments
        sealed = (*earlier, SealedSegment(segment=segment, facts=tuple(facts)))
        for new in (each.segment for each in sealed):
            known, _ = segments.get(new.end_seq, (None, ()))
            may_replace = known is None or (known.start_seq == new.start_seq and (known.stale or known.outdated))
            if not may_replace:
                return False
        if not await self.put_summary(lease, summary):
            return False
        segments.update({each.segment.end_seq: (each.segment, each.facts) for each in sealed})
        return True

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        derived = self._state.derived[lease.session_id]
        stored = derived.summary or Summary()
        follows = summary.version == stored.version + 1 and summary.covered_seq >= stored.covered_seq
        if not (follows and self._holds(lease) and self._state.lives(lease.session_id)):
            return False
        derived.summary = summary
        return True

    async def invalidate(self, branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold) -> None:
        holding: list[Segment] = []
        for branch in branches:
            self._take_leases_away(branch.session.session_id)
            segments = self._segments(branch.session.session_id)
            holding += (segment for segment in segments if overlaps(segment, branch.ranges))
        if all_gone(holding, branches):
            return
        for segment in holding:
            blank = replace(segment, source_hash="", narrative="", headline="", stale=True, outdated=False)
            self._state.derived[segment.conversation_id].segments[segment.end_seq] = (blank, ())
        for branch in branches:
            self._refold(branch, now, refold)

    def _refold(self, branch: ErasedBranch, now: int, refold: LedgerFold) -> None:
        session = branch.session
        derived = self._state.derived[session.session_id]
        derived.layouts.clear()
        if derived.summary is None or derived.summary.covered_seq < branch.ranges[0][0]:
            return
        derived.summary = refolded(derived.summary, self._ledger(session.branch), refold, now)
        self._state.work[session.session_id, SUMMARIZE].make_due(now)

    async def forget(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            self._state.forget(session_id)

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None:
        if not self._state.lives(session_id):
            return None
        work = self._state.work[session_id, kind]
        if now < work.lease_until <= now + 2 * lease_microseconds:
            return None
        if wait_microseconds is not None and (work.is_parked or _is_put_off(work, now, wait_microseconds)):
            return None
        work.fence += 1
        work.make_due(now)
        work.is_parked = False
        work.lease_until = now + lease_microseconds
        work.is_touched = False
        return Lease(
            session_id=session_id, kind=kind, fence=work.fence, lease_until=work.lease_until, attempts=work.attempts
        )

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        work = self._state.work.get((lease.session_id, lease.kind))
        if work is None or work.fence != lease.fence or not work.lease_until:
            return False
        work.lease_until = now + lease_microseconds
        return True

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        work = self._state.work.get((lease.session_id, lease.kind))
        if work is None or work.fence != lease.fence:
            return
        if not work.is_touched:
            work.due_at = due_at
        work.lease_until = 0
        work.attempts, work.is_parked, work.last_error = attempts, parked, error

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> dict[str, tuple[str, ...]]:
        return {kind: self._due(kind, now, limit, ahead) for kind in kinds}

    def _due(self, kind: str, now: int, limit: int, ahead: Ahead) -> tuple[str, ...]:
        waiting = (
            (work.due_at, session_id)
            for (session_id, of_kind), work in self._state.work.items()
            if of_kind == kind and self._state.lives(session_id) and _is_due(work, now, ahead)
        )
        return tuple(session_id for _, session_id in heapq.nsmallest(limit, waiting))

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        work = self._state.work.get((session_id, kind))
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

    def _ledger(self, branch: Sequence[BranchRange]) -> Ledger:
        owners = {part.conversation_id: list(self._segments(part.conversation_id)) for part in branch}
        segments = segments_of_branch(branch, owners)
        facts = (self._state.derived[each.conversation_id].segments[each.end_seq][1] for each in segments)
        return Ledger(segments=segments, facts=tuple(chain.from_iterable(facts)))

    def _segments(self, conversation_id: str) -> Iterator[Segment]:
        return (segment for segment, _ in self._state.derived[conversation_id].segments.values())

    def _holds(self, lease: Lease) -> bool:
        work = self._state.work.get((lease.session_id, lease.kind))
        return work is not None and work.fence == lease.fence

    def _take_leases_away(self, session_id: str) -> None:
        for (owner, _), work in self._state.work.items():
            if owner == session_id:
                work.fence += 1
                work.lease_until = 0


def _is_due(work: Work, now: int, ahead: Ahead) -> bool:
    is_free = not now < work.lease_until <= now + 2 * ahead.lease_microseconds
    return (
        is_free
        and not work.is_parked
        and work.due_at is not None
        and not _is_put_off(work, now, ahead.wait_microseconds)
    )


def _is_put_off(work: Work, now: int, wait_microseconds: int) -> bool:
    """What is put off for longer was so by a wrong clock."""
    return work.due_at is not None and now < work.due_at <= now + 2 * wait_microseconds


def make_summaries(settings: Settings) -> SampleSummaries:
    return SampleSummaries(state_at(settings.store.url))
