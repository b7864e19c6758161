"""What `/summarize` and `/stats` do, and what a chat tells of summaries that were made without being asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reactor_memory.features.chat.columns import columns, count
from reactor_memory.features.chat.coverage import CoverageWatch
from reactor_memory.features.chat.replies import Progress, Reply
from reactor_memory.features.facts.facts import Facts
from reactor_memory.features.pins.pins import Pins
from reactor_memory.models import Session, Value
from reactor_memory.models.ledger import Summary, SummaryHead
from reactor_memory.models.requests import SUMMARIZE

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, SummaryStore

PROGRESS_SECONDS = 0.5
MAX_SECONDS = 600.0
OFF = "summaries are off: set summary.enabled to true (REACTOR_MEMORY_SUMMARY__ENABLED=true)"


class ChatSummaries(Protocol):
    """How the history of a session is made shorter, whatever the strategy. `user_id` has been checked."""

    async def summarize(self, session: Session, user_id: str | None, progress: Progress) -> Reply:
        """Make the summaries that can be made now. If that fails, all stays as it was."""
        ...

    async def stats(self, session: Session, user_id: str | None) -> Reply:
        """How long the session is, and how much of it summaries stand for."""
        ...

    async def news(self, session_id: str, user_id: str | None) -> str | None:
        """What was summarised since the last call for this session without being asked for; None: nothing."""
        ...


class HierarchyOptions(Value, frozen=True, kw_only=True):
    """The settings that decide when there is something to do. `segment_message_count` None: the mode ``full``."""

    enabled: bool
    trigger_message_count: int
    recent_message_count: int
    segment_message_count: int | None
    summarizer: str


class Covered(Value, frozen=True, kw_only=True):
    """The report of `/summarize`: how many messages and facts memory held before and after.

    `outcome` is how the work ended: ``idle`` (all done), ``nothing`` (there was nothing to do), ``off``, or why not:
    ``failed``, ``open``, ``timeout``.
    """

    outcome: str
    messages: int
    before: int = 0
    after: int = 0
    facts_before: int = 0
    facts_after: int = 0


class HierarchyStats(Value, frozen=True, kw_only=True):
    """The report of `/stats`. `covered` messages are in memory, `waiting` ones follow them and are not."""

    session_id: str
    messages: int
    covered: int
    waiting: int
    segments: int
    facts: int
    pins: int
    tokens_read: int
    tokens_written: int


class HierarchicalSummaries:
    """`ChatSummaries` of hierarchical memory: segments that are read in the background."""

    def __init__(
        self,
        *,
        facts: Facts,
        pins: Pins,
        summaries: SummaryStore,
        background: BackgroundWork,
        options: HierarchyOptions,
    ) -> None:
        self._facts = facts
        self._pins = pins
        self._summaries = summaries
        self._background = background
        self._options = options
        self._watch = CoverageWatch()

    async def summarize(self, session: Session, user_id: str | None, progress: Progress) -> Reply:
        if not self._options.enabled:
            return Reply(text=OFF, report=Covered(outcome="off", messages=session.last_seq))
        before = await self._summary(session.session_id)
        if not _is_due(session.last_seq, before, self._options):
            return _nothing(session.last_seq, before, self._options)
        progress.announce(_plan(session.last_seq, before, self._options))
        outcome = await self._until_done(session, progress)
        after = await self._summary(session.session_id)
        self._watch.note(session.session_id, after.covered_seq)
        change = _change(session.last_seq, outcome, before, after)
        if outcome in ("failed", "open", "timeout"):
            return Reply(text=await self._problem(session.session_id, outcome), report=change, failed=True)
        if after.version == before.version:
            return _nothing(session.last_seq, after, self._options)
        return Reply(text=_done(change), report=change)

    async def stats(self, session: Session, user_id: str | None) -> Reply:
        asked, options = session.session_id, self._options
        segments = await self._facts.segments(asked, user_id=user_id)
        pins = await self._pins.list(asked, user_id=user_id)
        summary = await self._summary(asked)
        stats = HierarchyStats(
            session_id=asked,
            messages=session.last_seq,
            covered=summary.covered_seq,
            waiting=session.last_seq - summary.covered_seq,
            segments=len(segments),
            facts=len(summary.facts()),
            pins=len(pins),
            tokens_read=sum(segment.usage.tokens_read for segment in segments),
            tokens_written=sum(segment.usage.tokens_written for segment in segments),
        )
        return Reply(text=_stats_text(stats, options), report=stats)

    async def news(self, session_id: str, user_id: str | None) -> str | None:
        head = await self._summaries.get_summary_head(session_id)
        return self._watch.look(session_id, head.covered_seq if head else 0)

    async def _summary(self, session_id: str) -> Summary:
        return await self._summaries.get_summary(session_id) or Summary()

    async def _until_done(self, session: Session, progress: Progress) -> str:
        """How it ended, in the words of `BackgroundWork.ensure`."""
        beyond = session.last_seq + 1  # never covered, so this waits until there is nothing left to do
        self._background.request(session.session_id)
        for _ in range(int(MAX_SECONDS / PROGRESS_SECONDS)):
            outcome = await self._background.ensure(session.session_id, beyond, timeout_seconds=PROGRESS_SECONDS)
            if outcome != "timeout":
                return outcome
            head = await self._summaries.get_summary_head(session.session_id) or SummaryHead()
            progress.update(f"{head.covered_seq:,} of {count(session.last_seq, 'message')} covered")
        return "timeout"

    async def _problem(self, session_id: str, outcome: str) -> str:
        state = await self._summaries.work_state(session_id, SUMMARIZE)
        return unchanged(state.last_error if state is not None and state.last_error else outcome)


def unchanged(reason: str) -> str:
    """How a reply says that summarizing failed."""
    return f"summarizing did not succeed ({reason}); what was said and summarised before is as it was"


def _is_due(messages: int, head: SummaryHead, options: HierarchyOptions) -> bool:
    if messages <= options.trigger_message_count:
        return False
    if head.stale_ranges:
        return True
    if options.segment_message_count is None:
        return messages - options.recent_message_count > head.covered_seq
    return messages - head.covered_seq >= options.segment_message_count


def _plan(messages: int, head: SummaryHead, options: HierarchyOptions) -> str:
    if options.segment_message_count is None:
        first, how = 1, f"all but the newest {options.recent_message_count:,} at once"
    else:
        first, how = head.covered_seq + 1, f"in segments of about {options.segment_message_count:,}"
    return f"reading messages {first:,} to {messages:,}, {how}, with {options.summarizer}"


def _nothing(messages: int, head: SummaryHead, options: HierarchyOptions) -> Reply:
    if messages <= options.trigger_message_count:
        limit = f"summaries begin above {options.trigger_message_count:,}"
        text = f"no messages need a summary: {count(messages, 'message')}, all recent; {limit}"
    else:
        recent = messages - head.covered_seq
        text = (
            f"no messages need a summary: {count(messages, 'message')}, {head.covered_seq:,} covered, {recent:,} recent"
        )
    covered = Covered(outcome="nothing", messages=messages, before=head.covered_seq, after=head.covered_seq)
    return Reply(text=text, report=covered)


def _change(messages: int, outcome: str, before: Summary, after: Summary) -> Covered:
    return Covered(
        outcome=outcome,
        messages=messages,
        before=before.covered_seq,
        after=after.covered_seq,
        facts_before=len(before.facts()),
        facts_after=len(after.facts()),
    )


def _done(change: Covered) -> str:
    facts = f"facts in memory {change.facts_before:,} → {change.facts_after:,}"
    return f"summarised: messages covered {change.before:,} → {change.after:,} of {change.messages:,}, {facts}"


def _stats_text(stats: HierarchyStats, options: HierarchyOptions) -> str:
    rows = [("messages", f"{stats.messages:,}"), ("pins", f"{stats.pins:,}")]
    if not options.enabled:
        return columns([*rows, ("summaries", OFF.removeprefix("summaries are "))])
    trigger = options.trigger_message_count
    reached = "reached" if stats.messages > trigger else f"not reached ({stats.messages:,})"
    return columns(
        [
            *rows,
            ("covered by memory", f"{stats.covered:,}"),
            ("not covered", f"{stats.waiting:,}"),
            ("segments", f"{stats.segments:,}"),
            ("facts in memory", f"{stats.facts:,}"),
            ("threshold", f"above {trigger:,} messages: {reached}"),
            (
                "summarizer",
                f"{options.summarizer}: {stats.tokens_read:,} tokens read, {stats.tokens_written:,} written",
            ),
        ]
    )
