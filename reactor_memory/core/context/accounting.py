"""From the fitted parts to a context with its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from reactor_memory.core.context.blocks import Block, FittedBlock, Frame, Part, Verbatim
from reactor_memory.core.context.current_turn import Count, FittedTurn, TurnClamp
from reactor_memory.core.context.draft import Freshness
from reactor_memory.core.context.newest_turns import Cut
from reactor_memory.core.context.report import Context, ContextReport, Reason, ReportEntry, digest
from reactor_memory.models import Message, Value
from reactor_memory.models.turns import OrphanReason

if TYPE_CHECKING:
    from reactor_memory.models.block_lines import BlockLine

Outcome: TypeAlias = Literal["kept", "dropped", "clamped"]


class Fate(NamedTuple):
    """What became of one message or line, and the tokens to report for it."""

    outcome: Outcome
    reason: Reason
    tokens: int


Entries: TypeAlias = list[tuple[Outcome, ReportEntry]]
Sources: TypeAlias = tuple[tuple[int, ...], ...]


class FittedPart(NamedTuple):
    """A part of the context. `entries` and `sources` account for all that was offered for it, when a report is read;
    `of` is what the feature said that brought it.
    """

    name: Part
    messages: Sequence[Message] = ()
    tokens: int = 0
    offered: int = 0
    entries: Callable[[], Entries] = list
    sources: Callable[[], Sources] = tuple
    of: Frame | Verbatim | None = None


class Heading(Value, frozen=True, kw_only=True):
    """The fields of a report that do not come from its parts."""

    session_id: str
    strategy: str
    budget: int
    overhead: int
    freshness: Freshness = "none"
    covered_seq: int = 0
    unread: tuple[tuple[int, int], ...] = ()
    remarks: tuple[str, ...] = ()


def cut_part(name: Part, messages: Sequence[Message], begin: int, cut: Cut, cost: Count) -> FittedPart:
    """A part that shows `cut` of the messages from `begin` on. What was cut off at its front is one entry.

    Nothing looks at `messages` later: the list may be the caller's, who goes on with it.
    """
    offered = messages[cut.start : cut.end]
    shown = offered
    if cut.orphans:
        shown = [message for index, message in enumerate(offered, cut.start) if index not in cut.orphans]
    front = _entry(name, messages, begin, cut.start - 1, "over_budget", None) if begin < cut.start else None
    entries = partial(_cut_entries, name, front, offered, cut, cost)
    return FittedPart(name, shown, cut.tokens, cut.end - begin, entries)


def _cut_entries(name: Part, front: ReportEntry | None, offered: Sequence[Message], cut: Cut, cost: Count) -> Entries:
    entries: Entries = [("dropped", front)] if front else []
    if not cut.orphans:
        if offered:
            kept = _entry(name, offered, 0, len(offered) - 1, "fits", cut.tokens, at=cut.start)
            entries.append(("kept", kept))
        return entries
    fates = [
        Fate("dropped", cut.orphans[index], cost(message))
        if index in cut.orphans
        else Fate("kept", "fits", cost(message))
        for index, message in enumerate(offered, cut.start)
    ]
    return entries + _runs(name, offered, range(len(offered)), fates, at=cut.start)


def verbatim_part(verbatim: Verbatim, cut: Cut, cost: Count) -> FittedPart:
    """What stands as it is, and is cut only at its front."""
    messages = verbatim.messages
    entries = partial(_verbatim_entries, verbatim, cut, cost)
    sources = partial(_verbatim_sources, verbatim)
    shown = messages[cut.start : cut.end]
    return FittedPart(verbatim.part, shown, cut.tokens, len(messages), entries, sources, verbatim)


def _verbatim_entries(verbatim: Verbatim, cut: Cut, cost: Count) -> Entries:
    """Each message has an entry of its own: they do not stand in the order of the log."""
    entries: Entries = []
    for index, message in enumerate(verbatim.messages):
        is_kept = cut.start <= index < cut.end
        reason: Reason = "protected" if is_kept else "over_budget"
        entry = _entry(verbatim.part, verbatim.messages, index, index, reason, cost(message))
        entries.append(("kept" if is_kept else "dropped", entry))
    return entries


def _verbatim_sources(verbatim: Verbatim) -> Sources:
    return tuple([(seq,) for seq in verbatim.sources])


def block_part(block: Block, message: Message | None, fitted: FittedBlock) -> FittedPart:
    """A block; its lines are accounted for by position."""
    name, lines = block.frame.part, block.lines
    entries = partial(_block_entries, name, lines, fitted.kept)
    shown = [message] if message else []
    return FittedPart(name, shown, fitted.tokens, len(lines), entries, partial(_line_sources, lines), block.frame)


def _block_entries(name: Part, lines: Sequence[BlockLine], kept: Sequence[int]) -> Entries:
    if len(kept) == len(lines):
        return [("kept", _lines(name, lines, kept, kept=True))]
    runs = groupby(range(len(lines)), key=set(kept).__contains__)
    return [("kept" if is_kept else "dropped", _lines(name, lines, list(run), kept=is_kept)) for is_kept, run in runs]


def _line_sources(lines: Sequence[BlockLine]) -> Sources:
    return tuple([line.source_seqs for line in lines])


def turn_part(
    offered: Sequence[Message], orphans: dict[int, OrphanReason], clamp: TurnClamp, fitted: FittedTurn, cost: Count
) -> FittedPart:
    """The current turn: `clamp` and `fitted` count without the orphans."""
    entries = partial(_turn_entries, offered, orphans, clamp, fitted, cost)
    return FittedPart("current", list(fitted.kept.values()), fitted.tokens, len(offered), entries)


def _turn_entries(
    offered: Sequence[Message], orphans: dict[int, OrphanReason], clamp: TurnClamp, fitted: FittedTurn, cost: Count
) -> Entries:
    rest = iter(_turn_fates(clamp, fitted))
    fates = [
        Fate("dropped", orphans[index], cost(message)) if index in orphans else next(rest)
        for index, message in enumerate(offered)
    ]
    return _runs("current", offered, range(len(offered)), fates)


def message_part(name: Part, offered: Sequence[Message], shown: Sequence[Message], fates: Sequence[Fate]) -> FittedPart:
    """A part whose messages, oldest first, were chosen one by one."""
    tokens = sum(fate.tokens for fate in fates if fate.outcome == "kept")
    return FittedPart(name, shown, tokens, len(offered), partial(_message_entries, name, offered, fates))


def _message_entries(name: Part, offered: Sequence[Message], fates: Sequence[Fate]) -> Entries:
    """Only neighbours in the log share an entry."""
    entries: Entries = []
    begin = 0
    for end in range(1, len(offered) + 1):
        if end == len(offered) or (offered[end].seq or 0) != (offered[end - 1].seq or 0) + 1:
            entries += _runs(name, offered, range(begin, end), fates[begin:end])
            begin = end
    return entries


def _turn_fates(clamp: TurnClamp, fitted: FittedTurn) -> Iterable[Fate]:
    for index, cost in enumerate(clamp.costs):
        if index not in fitted.kept:
            yield Fate("dropped", "over_budget", cost)
        elif index in fitted.clamped:
            yield Fate("clamped", "too_long", cost - fitted.costs[index])
        else:
            yield Fate("kept", "protected", cost)


def _runs(part: Part, messages: Sequence[Message], positions: range, fates: Sequence[Fate], *, at: int = 0) -> Entries:
    """Entries for neighbours of one fate; stored messages and others are named differently, so they never share one."""
    entries: Entries = []
    begin, tokens, stored = 0, 0, [messages[index].seq is not None for index in positions]
    for end, fate in enumerate(fates):
        tokens += fate.tokens
        if end + 1 == len(fates) or fates[end + 1][:2] != fate[:2] or stored[end + 1] != stored[end]:
            entry = _entry(part, messages, positions[begin], positions[end], fate.reason, tokens, at=at)
            entries.append((fate.outcome, entry))
            begin, tokens = end + 1, 0
    return entries


def _entry(
    part: Part,
    messages: Sequence[Message],
    first: int,
    last: int,
    reason: Reason,
    tokens: int | None,
    *,
    at: int = 0,
) -> ReportEntry:
    """The entry of messages `first`..`last`, which stand at `at` + `first` and so on among all that was offered."""
    begin, end, count = messages[first].seq, messages[last].seq, last - first + 1
    if begin is not None and end is not None:
        return ReportEntry(part=part, first=begin, last=end, count=count, reason=reason, tokens=tokens)
    begin, end = at + first, at + last
    return ReportEntry(part=part, first=begin, last=end, count=count, reason=reason, tokens=tokens, by="position")


def _lines(part: Part, lines: Sequence[BlockLine], indices: Sequence[int], *, kept: bool) -> ReportEntry:
    return ReportEntry(
        part=part,
        first=indices[0],
        last=indices[-1],
        count=len(indices),
        reason="fits" if kept else "low_value",
        tokens=sum([lines[index].tokens for index in indices]),
        by="position",
    )


def make_context(heading: Heading, shown: Iterable[FittedPart], *, system: str | None = None) -> Context:
    """The messages of all parts in their order, and what makes the report over them."""
    shown = [part for part in shown if part.offered]
    messages = [message for part in shown for message in part.messages]
    return Context(messages=messages, report=partial(_report, heading, shown, tuple(messages)), system=system)


def _report(heading: Heading, shown: Sequence[FittedPart], messages: Sequence[Message]) -> ContextReport:
    names: list[Part] = []
    entries: dict[Outcome, list[ReportEntry]] = {"kept": [], "dropped": [], "clamped": []}
    for part in shown:
        names.extend(repeat(part.name, len(part.messages)))
        for outcome, entry in part.entries():
            entries[outcome].append(entry)
    return ContextReport(
        session_id=heading.session_id,
        strategy=heading.strategy,
        budget=heading.budget,
        overhead=heading.overhead,
        total_tokens=sum([part.tokens for part in shown]),
        tokens={part.name: part.tokens for part in shown if part.messages},
        parts=tuple(names),
        offered={part.name: part.offered for part in shown},
        kept=tuple(entries["kept"]),
        dropped=tuple(entries["dropped"]),
        clamped=tuple(entries["clamped"]),
        freshness=heading.freshness,
        covered_seq=heading.covered_seq,
        window_start_seq=messages[names.index("window")].seq if "window" in names else None,
        unread=_merge([*heading.unread, *_unread(entries["dropped"], heading.covered_seq)]),
        cache_breakpoints=_breakpoints(shown),
        remarks=heading.remarks,
        frames=tuple([part.of for part in shown if isinstance(part.of, Frame)]),
        verbatim={part.name: part.of.hashes for part in shown if isinstance(part.of, Verbatim)},
        digest=digest(messages),
        seqs=tuple([message.seq for message in messages]),
        sources={part.name: sources for part in shown if (sources := part.sources())},
    )


def _unread(dropped: Iterable[ReportEntry], covered_seq: int) -> list[tuple[int, int]]:
    """What left the window although no summary covers it."""
    return [
        (max(entry.first, covered_seq + 1), entry.last)
        for entry in dropped
        if entry.last > covered_seq and entry.by == "seq" and entry.part in ("window", "current")
        if entry.reason != "posted_summary"
    ]


def _merge(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _breakpoints(shown: Sequence[FittedPart]) -> tuple[int, ...]:
    """After the memory, and after the window that follows it."""
    names = [part.name for part in shown]
    memory = sum(len(part.messages) for part in shown if _is_memory(part))
    window = len(shown[names.index("window")].messages) if "window" in names else 0
    return tuple(sorted({memory, memory + window} - {0}))


def _is_memory(part: FittedPart) -> bool:
    """Whether a part stands before the window."""
    if isinstance(part.of, Frame):
        return part.of.place != "last"
    return part.name == "system" or part.of is not None
