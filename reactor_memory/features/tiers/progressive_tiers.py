"""The tiers of a session: how they stand, the step that moves messages up, and its undoing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError
from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED, Level, TierSizes, is_complete
from reactor_memory.features.tiers.plan import Step, View, plan
from reactor_memory.features.tiers.ranges import Ranges
from reactor_memory.models import Session, Value
from reactor_memory.models.ledger import RangeSummary

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore

log = logging.getLogger(__name__)

DISABLED = "disabled: set tiers.enabled: true"
OTHER_STRATEGY = "the setting history.strategy is not progressive"
EMPTY = "the session is empty"
NOTHING_OLDER = "no messages beyond the recent ones"
OVERTAKEN = "the session was changed meanwhile"


class TierOptions(Value, frozen=True, kw_only=True):
    """`disabled` says why no text is written, if none is. Without an `auto_threshold`, none is by itself."""

    sizes: TierSizes
    auto_threshold: int | None = None
    disabled: str = ""


class TierStats(Value, frozen=True, kw_only=True):
    """How a session stands, in messages: `total` = `recent` + `to_condense` + `to_compress` (not summarised yet)
    + `condensed` + `compressed` (behind summaries).

    Messages that a branch inherited and cannot summarise count as recent. `auto_threshold` is None if nothing is
    summarised by itself. `disabled` says why nothing is summarised at all.
    """

    total: int = 0
    recent: int = 0
    to_condense: int = 0
    to_compress: int = 0
    condensed: int = 0
    compressed: int = 0
    summaries: tuple[RangeSummary, ...] = ()
    auto_threshold: int | None = None
    disabled: str = ""

    @property
    def unsummarized(self) -> int:
        """Messages for which no summary stands: what `auto_threshold` is compared with."""
        return self.total - self.condensed - self.compressed

    @property
    def needs_summarization(self) -> bool:
        return bool(self.to_condense or self.to_compress)


class TierReport(Value, frozen=True, kw_only=True):
    """What a step did, or with `dry_run` would do. `before` and `after` count what the context shows: messages and
    summaries. `compressed_n` and `condensed_n` are the messages, or those behind summaries, that became part of such a
    text; `recent_n` stay as they are. `tokens` were read and written by the model. With a `skipped_reason` nothing
    changed.
    """

    before: int
    after: int
    compressed_n: int = 0
    condensed_n: int = 0
    recent_n: int = 0
    tokens: int = 0
    summary_ids: tuple[str, ...] = ()
    skipped_reason: str | None = None


class ProgressiveTiers:
    """Reads once, decides purely, and lets `Ranges` ask the model and store once.

    Owners are checked as by `ConversationManager`. Whatever fails on the way, the session shows what it showed before.
    """

    def __init__(
        self,
        *,
        messages: MessageStore,
        ranges: Ranges,
        options: TierOptions,
    ) -> None:
        self._messages = messages
        self._ranges = ranges
        self._options = options
        self._listeners: list[Callable[[str, TierReport], None]] = []

    async def stats(self, session_id: str, *, user_id: str | None = None) -> TierStats:
        """How the session stands. An unknown one is empty."""
        _, view = await self._ranges.view(session_id, user_id)
        step = plan(view, self._options.sizes)
        raw = {kind: _raw(step, kind) for kind in (CONDENSED, COMPRESSED)}
        compressed = sum(each.message_count for each in view.summaries if each.kind == COMPRESSED)
        return TierStats(
            total=view.message_count,
            recent=len(view.messages) - sum(raw.values()),
            to_condense=raw[CONDENSED],
            to_compress=raw[COMPRESSED],
            condensed=view.message_count - len(view.messages) - compressed,
            compressed=compressed,
            summaries=view.summaries,
            auto_threshold=None if self._options.disabled else self._options.auto_threshold,
            disabled=self._options.disabled,
        )

    async def summarize(
        self, session_id: str, *, user_id: str | None = None, level: Level | None = None, dry_run: bool = False
    ) -> TierReport:
        """Bring every message where it belongs, however few there are.

        With a `level`, everything beyond the recent messages is brought to that level: ``condensed`` leaves what is
        compressed as it is. Raises `SummarizationError` if a text could not be made; then nothing changed. If another
        step was faster, nothing changes either, and the report says so.
        """
        if level not in (None, CONDENSED, COMPRESSED):
            raise InvalidInputError("level", "must be condensed, compressed or None")
        session, view = await self._ranges.view(session_id, user_id)
        step = plan(view, self._options.sizes.at(level))
        reason = self._options.disabled or _nothing_to_do(view, step)
        if reason or session is None:
            return _report(view, Step(), skipped_reason=reason or EMPTY)
        if dry_run:
            return _report(view, step)
        return await self._carry_out(session, user_id, view, step)

    async def restore(self, session_id: str, summary_id: str, *, user_id: str | None = None) -> bool:
        """Undo a live summary exactly: what it covered is in view again, what it replaced is live again.

        False if it is not live. Raises `InvalidInputError` if its messages were deleted, and `SessionNotFoundError`.
        """
        return await self._ranges.restore(session_id, user_id, summary_id)

    # -- by itself ----------------------------------------------------------------------------------------------

    @property
    def auto_threshold(self) -> int:
        """A session of no more messages than this is never summarised by itself."""
        return self._options.auto_threshold or 0

    def listen(self, listener: Callable[[str, TierReport], None]) -> None:
        """Call `listener` with the session and the report whenever a session was summarised by itself. It should
        return soon: the background work waits for it.
        """
        self._listeners.append(listener)

    async def summarize_if_due(self, session_id: str) -> int:
        """Summarise if more than `auto_threshold` messages are not, and the turn is complete. For background work:
        nobody's right to the session is checked.

        Returns how many messages may be added before it is worth to look again.
        """
        threshold = self._options.auto_threshold
        if threshold is None or self._options.disabled:
            return 0
        owner = (await self._messages.read_background(session_id, limit=1)).session.owner_id
        session, view = await self._ranges.view(session_id, owner)
        step = plan(view, self._options.sizes)
        if session is None or len(view.messages) <= threshold or not is_complete(view.messages) or not step.writings:
            return max(0, threshold - len(view.messages))
        report = await self._carry_out(session, owner, view, step)
        if report.skipped_reason is None:
            self._tell(session_id, report)
        return max(0, threshold - report.recent_n)

    def _tell(self, session_id: str, report: TierReport) -> None:
        fields = {"session_id": session_id, "before": report.before, "after": report.after}
        log.info("session summarised", extra=fields)
        for listener in self._listeners:
            listener(session_id, report)

    async def _carry_out(self, session: Session, user_id: str | None, view: View, step: Step) -> TierReport:
        done = await self._ranges.carry_out(session.session_id, user_id, view, step)
        if done.summary_ids:
            return replace(_report(view, step), tokens=done.tokens, summary_ids=done.summary_ids)
        return replace(_report(view, Step(), skipped_reason=OVERTAKEN), tokens=done.tokens)


def _nothing_to_do(view: View, step: Step) -> str:
    if not view.message_count:
        return EMPTY
    return "" if step.writings else NOTHING_OLDER


def _report(view: View, step: Step, *, skipped_reason: str | None = None) -> TierReport:
    before = len(view.messages) + len(view.summaries)
    gone = sum(len(writing.messages) + len(writing.replaced) for writing in step.writings)
    return TierReport(
        before=before,
        after=before - gone + len(step.writings),
        compressed_n=step.count(COMPRESSED),
        condensed_n=step.count(CONDENSED),
        recent_n=len(view.messages) - _raw(step, CONDENSED) - _raw(step, COMPRESSED),
        skipped_reason=skipped_reason,
    )


def _raw(step: Step, kind: Level) -> int:
    return sum(len(writing.messages) for writing in step.writings if writing.kind == kind)
