"""What one step of progressive summarisation writes: a pure function of what is in view.

Condensed summaries move up whole: as soon as all messages of one are older than the condensed tier, it is merged, with
everything older, into the one compressed summary. So every message is in view exactly once, as itself or behind one
summary, and the counts of messages add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED, Level, Tiers, TierSizes, classify, split
from reactor_memory.models import Message, Session, Value
from reactor_memory.models.ledger import RangeSummary

Run: TypeAlias = tuple[Message, ...]
"""Messages in view with no summary between them."""

Item: TypeAlias = RangeSummary | Message


class View(Value, frozen=True, kw_only=True):
    """What a session shows of itself: live summaries and messages that none of them covers, both oldest first.

    A branch summarises what is its own, from `own_start` on.
    """

    summaries: tuple[RangeSummary, ...] = ()
    messages: tuple[Message, ...] = ()
    own_start: int = 1

    @property
    def message_count(self) -> int:
        """All original messages, those behind summaries included."""
        return len(self.messages) + sum(summary.message_count for summary in self.summaries)


class Writing(Value, frozen=True, kw_only=True):
    """A summary to be written: of `messages`, and of those behind the summaries whose place it takes."""

    kind: Level
    start_seq: int
    end_seq: int
    replaced: tuple[RangeSummary, ...] = ()
    messages: Run = ()

    @property
    def message_count(self) -> int:
        return len(self.messages) + sum(summary.message_count for summary in self.replaced)

    @property
    def message_ids(self) -> tuple[str, ...]:
        return tuple(message.message_id or "" for message in self.messages)

    @property
    def period(self) -> tuple[int, int]:
        """The times of the first and the last original."""
        times = [message.created_at for message in self.messages if message.created_at is not None]
        times += [time for summary in self.replaced for time in (summary.started_at, summary.ended_at)]
        return min(times, default=0), max(times, default=0)


class Step(Value, frozen=True, kw_only=True):
    """What to write, oldest first. Without `writings`, nothing is due."""

    writings: tuple[Writing, ...] = ()

    def count(self, kind: Level) -> int:
        """Messages that become part of a summary of this kind."""
        return sum(writing.message_count for writing in self.writings if writing.kind == kind)


def view_of(session: Session, live: Sequence[RangeSummary], messages: Sequence[Message]) -> View:
    """The view of a session with these live summaries, of all its messages that are not out of view."""
    return View(summaries=tuple(live), messages=uncovered(messages, live), own_start=session.branch[-1].start_seq)


def uncovered(messages: Sequence[Message], live: Sequence[RangeSummary]) -> Run:
    """The messages for which no summary stands; a retention of ``keep`` leaves the others in view of the store."""
    covered = [(summary.start_seq, summary.end_seq) for summary in live]
    return tuple(
        message for message in messages if not any(first <= (message.seq or 0) <= last for first, last in covered)
    )


def covered_until(live: Sequence[RangeSummary]) -> int:
    """The summaries cover every message up to here."""
    covered = 0
    for summary in live:
        if summary.start_seq > covered + 1:
            break
        covered = max(covered, summary.end_seq)
    return covered


def plan(view: View, sizes: TierSizes) -> Step:
    """The step that brings every message of `view` where it belongs."""
    left = sizes.condensed_count
    older: list[Item] = []
    condensed: list[Run] = []
    items = list(_timeline(view))
    for place, item in reversed(list(enumerate(items, start=1))):
        if isinstance(item, RangeSummary):
            left = 0 if item.kind == COMPRESSED else left
            older[:0] = [item] if left <= 0 else []
            left -= item.message_count
            continue
        tiers = classify(item, sizes) if place == len(items) else _old(item, left, sizes)
        older[:0] = tiers.to_compress
        condensed.append(tiers.to_condense)
        left -= len(tiers.to_condense)
    return Step(writings=tuple(_writings(view, older, condensed)))


def _old(run: Run, room: int, sizes: TierSizes) -> Tiers:
    """A run with a summary behind it, such as one whose summary was undone: nothing of it is recent."""
    if room <= 0:
        return Tiers(to_compress=run)
    older, newer = split(run, room, sizes.longest_turn)
    return Tiers(to_compress=tuple(older), to_condense=tuple(newer))


def _timeline(view: View) -> Iterator[RangeSummary | Run]:
    """Summaries and runs of messages in the order of the log."""
    start = 0
    for summary in view.summaries:
        end = next((i for i, m in enumerate(view.messages) if (m.seq or 0) > summary.start_seq), len(view.messages))
        if end > start:
            yield view.messages[start:end]
        yield summary
        start = end
    if start < len(view.messages):
        yield view.messages[start:]


def _writings(view: View, older: Sequence[Item], condensed: Sequence[Run]) -> Iterator[Writing]:
    own = [item for item in older if _start(item) >= view.own_start]
    if own and not (len(own) == 1 and isinstance(own[0], RangeSummary) and own[0].kind == COMPRESSED):
        yield _writing(COMPRESSED, own, view)
    for run in reversed(condensed):
        if mine := [message for message in run if _start(message) >= view.own_start]:
            yield _writing(CONDENSED, mine, view)


def _writing(kind: Level, items: Sequence[Item], view: View) -> Writing:
    return Writing(
        kind=kind,
        start_seq=max(view.own_start, _end_before(_start(items[0]), view) + 1),
        end_seq=_end(items[-1]),
        replaced=tuple(item for item in items if isinstance(item, RangeSummary)),
        messages=tuple(item for item in items if isinstance(item, Message)),
    )


def _end_before(seq: int, view: View) -> int:
    """Where what comes before `seq` ends: so that ranges follow each other although messages were taken back."""
    return max((_end(item) for item in (*view.summaries, *view.messages) if _end(item) < seq), default=0)


def _start(item: Item) -> int:
    return item.start_seq if isinstance(item, RangeSummary) else item.seq or 0


def _end(item: Item) -> int:
    return item.end_seq if isinstance(item, RangeSummary) else item.seq or 0
