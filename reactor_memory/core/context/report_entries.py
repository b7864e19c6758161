"""From what became of all that was offered for a context to its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import lt
from typing import TypeAlias

from reactor_memory.core.context.accounting import (
    BlockAccount,
    ChoiceAccount,
    CutAccount,
    Fate,
    FittedPart,
    Outcome,
    RunAccount,
    TurnAccount,
    VerbatimAccount,
)
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.excerpts import shown_as
from reactor_memory.core.context.report import ContextReport, Reason, ReportEntry, digest
from reactor_memory.models import Message
from reactor_memory.models.seq_ranges import joined_ranges

Entries: TypeAlias = list[tuple[Outcome, ReportEntry]]


def report_of(
    draft: Draft, limits: ContextLimits, shown: Sequence[FittedPart], messages: Sequence[Message]
) -> ContextReport:
    """The report of the context that shows these parts of a draft, with these messages."""
    names = [name for part in shown for name, _ in part.placed()]
    shown = [each for part in shown for each in (part, *part.inside)]
    entries: dict[Outcome, list[ReportEntry]] = {"kept": [], "dropped": [], "clamped": []}
    for part in shown:
        for outcome, entry in _entries(part):
            entries[outcome].append(entry)
    blocks = [part.account.block for part in shown if isinstance(part.account, BlockAccount)]
    verbatim = [part.account.verbatim for part in shown if isinstance(part.account, VerbatimAccount)]
    return ContextReport(
        session_id=draft.session_id,
        strategy=draft.strategy,
        budget=limits.budget,
        overhead=limits.overhead,
        total_tokens=sum([part.tokens for part in shown]),
        tokens={part.name: part.tokens for part in shown if part.messages},
        parts=tuple(names),
        offered={part.name: part.offered for part in shown},
        kept=tuple(entries["kept"]),
        dropped=tuple(entries["dropped"]),
        clamped=tuple(entries["clamped"]),
        freshness=draft.freshness,
        covered_seq=draft.covered_seq,
        window_start_seq=messages[names.index("window")].seq if "window" in names else None,
        superseded=draft.superseded,
        unread=joined_ranges([*draft.unread, *_unread(entries["dropped"], draft.covered_seq)]),
        cache_breakpoints=_breakpoints(shown),
        remarks=draft.remarks,
        frames=tuple([block.frame for block in blocks]),
        verbatim={each.part: each.hashes for each in verbatim},
        digest=digest(messages),
        seqs=tuple([message.seq for message in messages]),
        sources={part.name: sources for part in shown if (sources := _sources(part))},
        compaction=next((part.account.compaction() for part in shown if isinstance(part.account, RunAccount)), None),
    )


def _sources(part: FittedPart) -> tuple[tuple[int, ...], ...]:
    match part.account:
        case BlockAccount(block):
            return tuple([line.source_seqs for line in block.lines])
        case VerbatimAccount(verbatim):
            return tuple([(seq,) for seq in verbatim.sources])
        case _:
            return ()


def _entries(part: FittedPart) -> Entries:
    match part.account:
        case CutAccount() as account:
            return _cut_entries(part.name, account)
        case VerbatimAccount() as account:
            return _verbatim_entries(part.name, account)
        case BlockAccount() as account:
            return _block_entries(part.name, account)
        case TurnAccount() as account:
            return _runs(part.name, account.turn.offered, list(_turn_fates(account)))
        case RunAccount() as account:
            return _runs(part.name, account.offered, account.fates())
        case ChoiceAccount() as account:
            return _choice_entries(part.name, account)


def _cut_entries(part: Part, account: CutAccount) -> Entries:
    """What was cut off at the front is one entry, unless it stands in another order than in the log."""
    entries: Entries = []
    begin, gone, offered, cut, cost = account
    is_in_order = _is_in_log_order([*gone, *offered])
    if gone and is_in_order:
        ends = gone[0], _last_stored(gone)
        entries.append(("dropped", _entry(part, *ends, range(begin, cut.start), "over_budget", None)))
    elif gone:
        lost = [Fate("dropped", "over_budget", cost(message)) for message in gone]
        entries += _neighbour_runs(part, gone, lost, at=begin)
    is_in_order = is_in_order and (not offered or (offered[0].seq is None) == (offered[-1].seq is None))
    if cut.orphans or cut.excerpts or not is_in_order:
        fates = [_cut_fate(account, index, message) for index, message in enumerate(offered, cut.start)]
        entries += (_runs if is_in_order else _neighbour_runs)(part, offered, fates, at=cut.start)
    elif offered:
        entries.append(("kept", _entry(part, offered[0], offered[-1], range(cut.start, cut.end), "fits", cut.tokens)))
    return entries


def _is_in_log_order(messages: Sequence[Message]) -> bool:
    """Not where turns that ran at once stand one after the other. Results that nobody told have no place."""
    seqs = [message.seq for message in messages if message.seq is not None]
    return all(map(lt, seqs, seqs[1:]))


def _last_stored(messages: Sequence[Message]) -> Message:
    """Results that nobody told stand behind the last message of a log."""
    return next((each for each in reversed(messages) if each.seq is not None), messages[-1])


def _cut_fate(account: CutAccount, index: int, message: Message) -> Fate:
    cost = account.cost(message)
    if reason := account.cut.orphans.get(index):
        return Fate("dropped", reason, cost)
    if excerpt := account.cut.excerpts.get(index):
        return Fate("clamped", "too_long", account.cost(message) - account.cost(shown_as(message, excerpt)))
    return Fate("kept", "fits", cost)


def _verbatim_entries(part: Part, account: VerbatimAccount) -> Entries:
    """Each message has an entry of its own: they do not stand in the order of the log."""
    entries: Entries = []
    for index, message in enumerate(account.verbatim.messages):
        is_kept = account.cut.start <= index < account.cut.end
        reason: Reason = "protected" if is_kept else "over_budget"
        entry = _entry(part, message, message, range(index, index + 1), reason, account.cost(message))
        entries.append(("kept" if is_kept else "dropped", entry))
    return entries


def _block_entries(part: Part, account: BlockAccount) -> Entries:
    """The lines are named by position."""
    lines = account.block.lines
    entries: Entries = []
    for is_kept, run in groupby(range(len(lines)), key=set(account.kept).__contains__):
        positions = list(run)
        entry = ReportEntry(
            part=part,
            first=positions[0],
            last=positions[-1],
            count=len(positions),
            reason="fits" if is_kept else "low_value",
            tokens=sum([lines[index].tokens for index in positions]),
            by="position",
        )
        entries.append(("kept" if is_kept else "dropped", entry))
    return entries


def _turn_fates(account: TurnAccount) -> Iterator[Fate]:
    turn, fitted = account.turn, account.fitted
    others = enumerate(turn.costs)
    for position, message in enumerate(turn.offered):
        if position in turn.orphans:
            yield Fate("dropped", turn.orphans[position], account.cost(message))
            continue
        index, cost = next(others)
        if index not in fitted.kept:
            yield Fate("dropped", "over_budget", cost)
        elif index in fitted.clamped:
            yield Fate("clamped", "too_long", cost - fitted.costs[index])
        else:
            yield Fate("kept", "protected", cost)


def _choice_entries(part: Part, account: ChoiceAccount) -> Entries:
    return _neighbour_runs(part, *account)


def _neighbour_runs(part: Part, offered: Sequence[Message], fates: Sequence[Fate], *, at: int = 0) -> Entries:
    """Only neighbours in the log share an entry."""
    entries: Entries = []
    for _, run in groupby(range(len(offered)), key=lambda index: (offered[index].seq or 0) - index):
        positions = list(run)
        begin, end = positions[0], positions[-1] + 1
        entries += _runs(part, offered[begin:end], fates[begin:end], at=at + begin)
    return entries


def _runs(part: Part, messages: Sequence[Message], fates: Sequence[Fate], *, at: int = 0) -> Entries:
    """Entries for neighbours of one fate; stored messages and others are named differently, so they never share one.

    The first of the messages stands at position `at` of all that was offered.
    """
    entries: Entries = []
    for (outcome, reason, _), run in groupby(
        range(len(fates)), key=lambda index: (*fates[index][:2], messages[index].seq is None)
    ):
        positions = list(run)
        first, last = positions[0], positions[-1]
        tokens = sum([fates[index].tokens for index in positions])
        entry = _entry(part, messages[first], messages[last], range(at + first, at + last + 1), reason, tokens)
        entries.append((outcome, entry))
    return entries


def _entry(
    part: Part, first: Message, last: Message, positions: range, reason: Reason, tokens: int | None
) -> ReportEntry:
    """The entry of the messages from `first` to `last`, which stand at these positions of all that was offered."""
    begin, end, count = first.seq, last.seq, len(positions)
    if begin is not None and end is not None:
        return ReportEntry(part=part, first=begin, last=end, count=count, reason=reason, tokens=tokens)
    begin, end = positions[0], positions[-1]
    return ReportEntry(part=part, first=begin, last=end, count=count, reason=reason, tokens=tokens, by="position")


def _unread(dropped: Iterable[ReportEntry], covered_seq: int) -> list[tuple[int, int]]:
    """What left the window although no summary covers it."""
    return [
        (max(entry.first, covered_seq + 1), entry.last)
        for entry in dropped
        if entry.last > covered_seq and entry.by == "seq" and entry.part in ("window", "current")
        if entry.reason != "posted_summary"
    ]


def _breakpoints(shown: Sequence[FittedPart]) -> tuple[int, ...]:
    """After the memory, and after the window that follows it."""
    names = [part.name for part in shown]
    memory = sum(len(part.messages) for part in shown if _is_memory(part))
    window = len(shown[names.index("window")].messages) if "window" in names else 0
    return tuple(sorted({memory, memory + window} - {0}))


def _is_memory(part: FittedPart) -> bool:
    """Whether a part stands before the window."""
    if isinstance(part.account, BlockAccount):
        return part.account.block.frame.place in ("first", "memory")
    return part.name == "system" or isinstance(part.account, VerbatimAccount)
