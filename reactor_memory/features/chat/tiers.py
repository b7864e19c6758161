"""`ChatSummaries` of the strategy ``progressive``."""

from __future__ import annotations

from reactor_memory.database.database import Database
from reactor_memory.errors import SessionNotFoundError, SummarizationError
from reactor_memory.features.chat.columns import columns, count
from reactor_memory.features.chat.coverage import CoverageWatch
from reactor_memory.features.chat.hierarchical_summaries import unchanged
from reactor_memory.features.chat.replies import Progress, Reply
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers, TierReport, TierStats
from reactor_memory.models import Session


class TierSummaries:
    """Older messages are condensed, and later compressed, by texts that stand for them."""

    def __init__(self, *, tiers: ProgressiveTiers, database: Database) -> None:
        self._tiers = tiers
        self._database = database
        self._watch = CoverageWatch()

    async def summarize(self, session: Session, user_id: str | None, progress: Progress) -> Reply:
        asked = session.session_id
        planned = await self._tiers.summarize(asked, user_id=user_id, dry_run=True)
        if planned.skipped_reason:
            return _nothing(planned, await self._tiers.stats(asked, user_id=user_id))
        progress.announce(_plan(planned))
        try:
            report = await self._tiers.summarize(asked, user_id=user_id)
        except SummarizationError as error:
            return Reply(text=unchanged(error.reason), report=planned, failed=True)
        self._watch.note(asked, await self._covered(asked, user_id))
        if report.skipped_reason:
            return Reply(text=f"nothing was summarised: {report.skipped_reason}", report=report)
        return Reply(text=_done(report), report=report)

    async def stats(self, session: Session, user_id: str | None) -> Reply:
        stats = await self._tiers.stats(session.session_id, user_id=user_id)
        return Reply(text=_stats_text(stats), report=stats)

    async def news(self, session_id: str, user_id: str | None) -> str | None:
        return self._watch.look(session_id, await self._covered(session_id, user_id))

    async def _covered(self, session_id: str, user_id: str | None) -> int:
        try:
            live = await self._database.read(range_summaries.read_range_summaries, session_id, user_id)
        except SessionNotFoundError:  # nothing has been said yet
            return 0
        return sum(summary.message_count for summary in live)


def _nothing(planned: TierReport, stats: TierStats) -> Reply:
    if stats.disabled:
        return Reply(text=f"summaries are off: {stats.disabled}", report=planned)
    counts = f"{count(stats.total, 'message')}, {stats.recent:,} recent"
    return Reply(text=f"no messages need a summary: {counts}", report=planned)


def _plan(planned: TierReport) -> str:
    return f"compressing {planned.compressed_n:,}, condensing {planned.condensed_n:,}, keeping {planned.recent_n:,}"


def _done(report: TierReport) -> str:
    tokens = f", {count(report.tokens, 'token')} read and written" if report.tokens else ""
    return f"summarised: messages and summaries {report.before:,} → {report.after:,}{tokens}"


def _stats_text(stats: TierStats) -> str:
    if stats.auto_threshold is None:
        threshold = stats.disabled or "none: tiers.auto_summarize is false"
    else:
        threshold = f"above {stats.auto_threshold:,} not summarised: {stats.unsummarized:,} now"
    return columns(
        [
            ("messages", f"{stats.total:,}"),
            ("recent", f"{stats.recent:,}"),
            ("to condense", f"{stats.to_condense:,}"),
            ("to compress", f"{stats.to_compress:,}"),
            ("condensed", f"{stats.condensed:,}"),
            ("compressed", f"{stats.compressed:,}"),
            ("summaries", f"{len(stats.summaries):,}"),
            ("threshold", threshold),
        ]
    )
