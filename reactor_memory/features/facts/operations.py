"""The operations on what is derived from the log (`SummaryStore`).

Each generator is one transaction, or a part of one that the log began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.context.withheld import Statement, Withheld
from reactor_memory.core.log.archived_ranges import read_archived
from reactor_memory.core.log.branches import group_of, ranges_between
from reactor_memory.core.log.rows import key_of, to_json, whole
from reactor_memory.core.log.summaries import get_summary, get_summary_head, hold, summary_from
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Steps, bounded
from reactor_memory.errors import StoreCorruptError
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.facts.amendment_fold import amended, taken_back
from reactor_memory.features.facts.ledger_rows import (
    OUTDATED,
    WAITS,
    anchor_number,
    correction_from,
    correction_values,
    facts_from,
    records_of,
    segment_from,
    segment_values,
    summary_values,
)
from reactor_memory.features.facts.segments import segments_of_branch
from reactor_memory.features.facts.withheld_facts import facts_without_cleared, ledger_without_cleared
from reactor_memory.features.facts.working_state import ANCHOR as STATE_ANCHOR
from reactor_memory.models import LARGEST, BranchRange, Session
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import (
    Fact,
    FactCorrection,
    Ledger,
    PostedSummary,
    SealedSegment,
    Segment,
    Spending,
    Summary,
    SummaryHead,
)
from reactor_memory.models.requests import SUMMARIZE, ErasedBranch, LeaseLostError
from reactor_memory.models.seq_ranges import is_inside, is_within

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold

# Summaries and layouts


# The ledger


def read_ledger(branch: Sequence[BranchRange], *, cleared_too: bool = False) -> Steps[Ledger]:
    """As `SummaryStore.read_ledger`; `cleared_too`: with what cleared messages state."""
    segments: dict[str, list[Segment]] = {}
    parts = _up_to((part.conversation_id, part.end_seq) for part in branch)
    found, is_whole = whole((yield Query("segments_of_branch", _group(branch) | {"parts": parts})), segment_from)
    for segment in found:
        segments.setdefault(segment.conversation_id, []).append(segment)
    rows = yield Query("facts_of_branch", _group(branch) | {"parts": parts})
    stored, all_of_it = whole(rows, _with_place)
    facts, is_whole = dict(stored), is_whole and all_of_it
    shown = segments_of_branch(branch, segments)
    of_shown = (facts.get((segment.conversation_id, segment.end_seq), ()) for segment in shown)
    ledger = Ledger(
        segments=shown,
        facts=tuple(chain.from_iterable(of_shown)),
        corrections=(yield from read_corrections(branch[-1].conversation_id)),
        posted=(yield from read_posted(branch)),
        is_damaged=not is_whole,
    )
    return ledger if cleared_too else ledger_without_cleared(ledger, (yield from read_archived(branch)).cleared)


def _with_place(row: Row) -> tuple[tuple[str, int], tuple[Fact, ...]]:
    """The facts of a segment behind what names it."""
    return (row[0], row[1]), facts_from(row)


def _group(branch: Sequence[BranchRange]) -> dict[str, str]:
    return {"group_id": group_of(branch[-1].conversation_id)}


def _up_to(ends: Iterable[tuple[str, int | None]]) -> str | None:
    """Conversations, each with the last seq that counts, as one value of a query."""
    return to_json([(owner, LARGEST if end is None else end) for owner, end in ends])


def read_facts_about(branch: Sequence[BranchRange], anchors: Sequence[str]) -> Steps[tuple[Fact, ...]]:
    """With the corrections of the branch itself, and without what cleared messages state."""
    found = yield from _stated_about(branch, anchors)
    about = key_of(branch[-1].conversation_id) | {"anchors": to_json(anchors)}
    corrections = [correction_from(row) for row in (yield Query("corrections_about", about))]
    cleared = (yield from read_archived(branch)).cleared if found or corrections else ()
    return amended(
        facts_without_cleared([fact for fact in found if fact.verified], cleared),
        [each for each in corrections if not is_within(each.source_seq, cleared)],
    )


def _stated_about(branch: Sequence[BranchRange], anchors: Sequence[str]) -> Steps[list[Fact]]:
    """The facts of the branch with one of these anchors."""
    parts = _up_to((yield from _ends_of_segments(branch)))
    values = _group(branch) | {"parts": parts, "anchors": _numbers(anchors)}
    found, _ = whole((yield Query("facts_about", values)), facts_from)
    wanted = frozenset(anchors)
    return [fact for facts in found for fact in facts if fact.anchor in wanted]


# The gate


@bounded
def may_withhold(branch: Sequence[BranchRange]) -> Steps[bool]:
    """Whether there is anything that contexts of the branch may not say: of most sessions there is nothing."""
    parts = [[part.conversation_id, part.start_seq, part.end_seq or LARGEST] for part in branch]
    values = key_of(branch[-1].conversation_id) | {"parts": to_json(parts)}
    return bool((yield Query("anything_withheld", values)))


def read_withheld(branch: Sequence[BranchRange]) -> Steps[Withheld]:
    """What contexts of the branch do not say. Costs what there is of it."""
    cleared = (yield from read_archived(branch)).cleared
    corrections = yield from read_corrections(branch[-1].conversation_id)
    if not corrections:
        return Withheld(cleared=cleared)
    facts = yield from _facts_corrected(branch, corrections)
    statements = yield from _with_answers(branch, taken_back(facts, corrections))
    return Withheld(cleared=cleared, statements=statements)


def _numbers(anchors: Iterable[str]) -> str | None:
    return to_json(sorted(set(map(anchor_number, anchors))))


def _facts_corrected(branch: Sequence[BranchRange], corrections: Sequence[FactCorrection]) -> Steps[tuple[Fact, ...]]:
    """The facts of the branch that the corrections may name."""
    if any(not each.anchor for each in corrections):
        ends = yield from _ends_of_segments(branch)
        rows = yield Query("facts_of_branch", _group(branch) | {"parts": _up_to(ends)})
        return tuple(chain.from_iterable(whole(rows, facts_from)[0]))
    found = yield from _stated_about(branch, [each.anchor for each in corrections])
    return tuple(fact for fact in found if fact.verified)


def _with_answers(branch: Sequence[BranchRange], statements: Sequence[Statement]) -> Steps[tuple[Statement, ...]]:
    """The statements, each with the last message of its turn: what is said before the user speaks again answers it."""
    parts = {each.seq: ranges_between(branch, each.seq - 1, each.seq) for each in statements}
    wanted = [[part[0].conversation_id, seq] for seq, part in parts.items() if part]
    values = {"group_id": group_of(branch[-1].conversation_id), "wanted": to_json(wanted) or "[]"}
    rows = (yield Query("asked_after", values)) if wanted else ()
    asked = {row[0]: row[1] for row in rows if row[1] is not None}
    return tuple(replace(each, answered_seq=asked.get(each.seq, LARGEST + 1) - 1) for each in statements)


def read_corrections(session_id: str) -> Steps[tuple[FactCorrection, ...]]:
    return tuple(map(correction_from, (yield Query("corrections", key_of(session_id)))))


def _ends_of_segments(branch: Sequence[BranchRange]) -> Steps[list[tuple[str, int | None]]]:
    """The last seq of the segments of each conversation of the branch that has some count (`segments_of_branch`)."""
    if len(branch) == 1:
        return [(branch[0].conversation_id, None)]
    parts = _up_to((part.conversation_id, part.end_seq) for part in branch)
    rows = yield Query("first_segments", _group(branch) | {"parts": parts})
    firsts = {row[0]: (row[1], row[2]) for row in rows}
    ends: list[tuple[str, int | None]] = []
    next_start = LARGEST
    for part in reversed(branch):
        last_end = min(next_start - 1, LARGEST if part.end_seq is None else part.end_seq)
        start, end = firsts.get(part.conversation_id, (0, LARGEST))
        if end <= last_end:
            ends.append((part.conversation_id, last_end))
            next_start = start
    return ends


def is_damaged(conversation_id: str) -> Steps[bool]:
    """Whether something that was drawn from the conversation's own messages cannot be read."""
    segments = yield Query("segments", key_of(conversation_id))
    of_own = {"group_id": group_of(conversation_id), "parts": _up_to([(conversation_id, None)])}
    facts = yield Query("facts_of_branch", of_own)
    summaries = yield Query("summary", key_of(conversation_id))
    try:
        for row in segments:
            segment_from(row)
        for row in facts:
            facts_from(row)
        for row in summaries:
            check_whole(summary_from(row))
    except DAMAGE:
        return True
    return False


def check_whole(summary: Summary) -> Summary:
    """Raises `StoreCorruptError` if something of it cannot be read."""
    summary.facts()
    summary.spare()
    return summary


def drop_drawn(conversation_id: str, *, now: int) -> Steps[None]:
    """Everything that was drawn from the conversation's own messages goes, and is due to be drawn again."""
    for query in ("delete_segments", "delete_facts", "delete_anchors", "delete_summary", "delete_layouts"):
        yield Query(query, key_of(conversation_id))
    yield Query("make_due", key_of(conversation_id) | {"kind": SUMMARIZE, "now": now})


def _segments(conversation_id: str, *, now: int) -> Steps[list[Segment]]:
    """None if some cannot be read: then nothing stays of what was drawn from these messages."""
    found, is_whole = whole((yield Query("segments", key_of(conversation_id))), segment_from)
    if is_whole:
        return found
    yield from drop_drawn(conversation_id, now=now)
    return []


def _stored_head(session_id: str, *, now: int) -> Steps[SummaryHead | None]:
    """As `get_summary_head`, for who changes it; one that cannot be read goes, as `_segments` do."""
    try:
        return (yield from get_summary_head(session_id))
    except StoreCorruptError:
        yield from drop_drawn(session_id, now=now)
        return None


def record_segments(lease: Lease, sealed: Sequence[SealedSegment], summary: Summary) -> Steps[bool]:
    """All of them or, where one is there already, none."""
    if not (yield from _follows(lease, summary)):
        return False
    for place, each in enumerate(sealed):
        segment = each.segment
        if not (yield Query("store_segment", segment_values(segment))):
            if place:
                raise LeaseLostError  # takes back what was written
            return False
        end = key_of(segment.conversation_id) | {"end_seq": segment.end_seq}
        if (yield Query("delete_facts_of_segment", end)):
            yield Query("delete_anchors_of_segment", end)
        if each.facts:
            yield Query("store_facts", end | {"records": records_of(each.facts)})
            yield Query("store_anchors", end | {"anchors": _numbers(fact.anchor for fact in each.facts)})
    yield Query("store_summary", summary_values(lease.session_id, summary, lease.fence))
    return True


def mark_outdated(session_id: str, *, now: int) -> Steps[int]:
    if not (yield from hold(session_id)):
        return 0
    marked = yield Query("mark_outdated", key_of(session_id))
    yield Query("make_due", key_of(session_id) | {"kind": SUMMARIZE, "now": now})
    return len(marked)


def outdated_ranges(session_id: str) -> Steps[tuple[tuple[int, int], ...]]:
    return (yield from _ranges(session_id, OUTDATED))


def waiting_ranges(session_id: str) -> Steps[tuple[tuple[int, int], ...]]:
    return (yield from _ranges(session_id, WAITS))


def wait_no_more(session_id: str, *, start_seq: int, end_seq: int) -> Steps[None]:
    yield Query("wait_no_more", key_of(session_id) | {"start_seq": start_seq, "end_seq": end_seq})


def _ranges(session_id: str, stale: int) -> Steps[tuple[tuple[int, int], ...]]:
    rows = yield Query("ranges_to_read", key_of(session_id) | {"stale": stale})
    return tuple((row[0], row[1]) for row in rows)


def put_summary(lease: Lease, summary: Summary) -> Steps[bool]:
    if not (yield from _follows(lease, summary)):
        return False
    yield Query("store_summary", summary_values(lease.session_id, summary, lease.fence))
    return True


def _follows(lease: Lease, summary: Summary) -> Steps[bool]:
    """Whether this writer has the newest lease of a living session, and `summary` is the next version."""
    if not (yield from hold(lease.session_id)):
        return False
    newest = yield Query("lock_work", key_of(lease.session_id) | {"kind": lease.kind})
    if not newest or newest[0][0] != lease.fence:
        return False
    stored = (yield from get_summary_head(lease.session_id)) or Summary()
    return summary.version == stored.version + 1 and summary.covered_seq >= stored.covered_seq


# Content that went out of view


def lock_and_forget_messages(branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold) -> Steps[None]:
    yield from _lock_all([branch.session for branch in branches])
    yield from forget_messages(branches, now=now, refold=refold)


def _lock_all(branches: Sequence[Session]) -> Steps[None]:
    for session_id in sorted(branch.session_id for branch in branches):
        yield Query("lock_session", key_of(session_id))


def forget_messages(
    branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold, untold: bool = False
) -> Steps[None]:
    """As `SummaryStore.invalidate`; the branches are locked. A worker that read the messages cannot write any
    more: its lease is gone, also one that was claimed while the branches were locked. `untold`: posted summaries went,
    too, which may have told of messages that no segment holds.
    """
    holding: list[Segment] = []
    uncorrected = 0
    for branch in branches:
        session_id = branch.session.session_id
        yield Query("ensure_work", key_of(session_id) | {"kind": SUMMARIZE})
        yield Query("take_leases_away", key_of(session_id))
        for start, end in branch.ranges:
            of_range = key_of(session_id) | {"start_seq": start, "end_seq": end}
            uncorrected += len((yield Query("delete_corrections_of_messages", of_range)))
            yield from _delete_items(session_id, start, end)
        holding += (
            segment for segment in (yield from _segments(session_id, now=now)) if overlaps(segment, branch.ranges)
        )
    for segment in holding:
        end = key_of(segment.conversation_id) | {"end_seq": segment.end_seq}
        yield Query("blank_segment", end)
        yield Query("delete_facts_of_segment", end)
        yield Query("delete_anchors_of_segment", end)
    if not uncorrected and not untold and all_gone(holding, branches):
        return
    for branch in branches:
        yield from _refold(branch.session, branch.ranges[0][0], now, refold, untold=untold)


def _delete_items(session_id: str, start: int, end: int) -> Steps[None]:
    """Items of the working state that rest on these messages, also those of later segments."""
    key = key_of(session_id)
    of_state = {"parts": _up_to([(session_id, None)]), "anchors": _numbers([STATE_ANCHOR])}
    rows = yield Query("facts_about", {"group_id": key["group_id"]} | of_state)
    for (_, end_seq), facts in whole(rows, _with_place)[0]:
        kept = [fact for fact in facts if not _is_item_of(fact, start, end)]
        if len(kept) < len(facts):
            yield Query("store_facts", key | {"end_seq": end_seq, "records": records_of(kept)})


def _is_item_of(fact: Fact, start: int, end: int) -> bool:
    is_item = fact.anchor == STATE_ANCHOR and fact.key.startswith("state.")
    return is_item and fact.span[0] <= end and fact.span[1] >= start


def all_gone(holding: Sequence[Segment], branches: Sequence[ErasedBranch]) -> bool:
    """Whether what was made of these ranges is gone already: each lies inside a segment, and all of them are stale."""
    return all(segment.stale for segment in holding) and all(
        any(segment.start_seq <= start and end <= segment.end_seq for segment in holding)
        for branch in branches
        for start, end in branch.ranges
    )


def overlaps(segment: Segment, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether the segment holds a message of one of these ranges of seq."""
    return any(segment.start_seq <= end and start <= segment.end_seq for start, end in ranges)


def _refold(branch: Session, seq: int, now: int, refold: LedgerFold, *, untold: bool = False) -> Steps[None]:
    yield Query("delete_layouts", key_of(branch.session_id))
    stored = yield from _stored_head(branch.session_id, now=now)
    if stored is None or stored.covered_seq < seq:
        if untold:
            yield from renew_narrative(branch, now=now, refold=refold)
        return
    folded = refolded(stored, (yield from read_ledger(branch.branch)), refold, now)
    yield Query("store_summary", summary_values(branch.session_id, folded, fence=0))
    yield Query("make_due", key_of(branch.session_id) | {"kind": SUMMARIZE, "now": now})


def tell_anew(session: Session, *, now: int, refold: LedgerFold) -> Steps[None]:
    """What people said of the facts has changed: contexts are laid out anew."""
    yield from _refold(session, 0, now, refold)


def fold_again(session: Session, *, now: int, refold: LedgerFold) -> Steps[None]:
    """What memory tells of the session has changed, and its ledger has not. A worker that read it before cannot write
    any more. What was covered without segments (`full` mode) waits for a new extraction, but for what was cleared.
    """
    key = key_of(session.session_id)
    yield Query("ensure_work", key | {"kind": SUMMARIZE})
    yield Query("take_leases_away", key)
    stored = yield from _stored_head(session.session_id, now=now)
    if stored is not None:
        folded = refolded(stored, (yield from read_ledger(session.branch)), refold, now)
        cleared = (yield from read_archived(session.branch)).cleared
        waiting = tuple(each for each in folded.stale_ranges if not is_inside(each, cleared))
        folded = replace(folded, stale_ranges=waiting)
        yield Query("store_summary", summary_values(session.session_id, folded, fence=0))


def refolded(stored: SummaryHead, ledger: Ledger, refold: LedgerFold, now: int) -> Summary:
    """What follows `stored`. What it covered without segments (`full` mode) waits for a new extraction, too."""
    folded = refold(ledger)
    start = ledger.segments[-1].end_seq + 1 if ledger.segments else 1
    missing = ((start, stored.covered_seq),) if start <= stored.covered_seq else ()
    return replace(
        folded,
        covered_seq=stored.covered_seq,
        version=stored.version + 1,
        epoch=stored.epoch + 1,
        stale_ranges=folded.stale_ranges + missing,
        created_at=stored.created_at,
        updated_at=now,
    )


# Posted summaries


def read_posted(branch: Sequence[BranchRange]) -> Steps[PostedSummary | None]:
    """The posted summary that covers most, of equals the newest: so a late one that covers less never replaces it."""
    parts = _up_to((part.conversation_id, part.end_seq) for part in branch)
    rows = yield Query("ruling_posted", _group(branch) | {"parts": parts})
    return PostedSummary(seq=rows[0][0], until_seq=rows[0][1], text=rows[0][2]) if rows else None


def put_posted(session: Session, posted: PostedSummary, *, now: int, refold: LedgerFold) -> Steps[None]:
    """The posted summary counts from now on; the log has its text."""
    yield from _lock_all([session])
    name = str(posted.seq)
    entry = Entry(kind="posted", name=name, start_seq=1, end_seq=posted.until_seq, seq=posted.seq, state="keep")
    yield from entries.put(entries.of_session(session.session_id), entry)
    yield from renew_narrative(session, now=now, refold=refold, begin=True)


def renew_narrative(session: Session, *, now: int, refold: LedgerFold, begin: bool = False) -> Steps[None]:
    """Make the narrative of the session anew; `begin`: also where there is no summary yet."""
    stored = yield from get_summary(session.session_id)
    if stored is None and not begin:
        return
    told = with_new_narrative(stored or Summary(), (yield from read_ledger(session.branch)), refold, now)
    yield Query("store_summary", summary_values(session.session_id, told, fence=0))
    yield Query("delete_layouts", key_of(session.session_id))


def with_new_narrative(stored: Summary, ledger: Ledger, refold: LedgerFold, now: int) -> Summary:
    """What follows `stored` when only the narrative changed. In `full` mode, where no segments are, the narrative is
    the posted summary until everything is read again.
    """
    return replace(
        stored,
        narrative=refold(ledger).narrative,
        version=stored.version + 1,
        epoch=stored.epoch + 1,
        created_at=stored.created_at or now,
        updated_at=now,
    )


# Corrections


def put_correction(session: Session, correction: FactCorrection, *, now: int, refold: LedgerFold) -> Steps[bool]:
    key = key_of(session.session_id)
    yield from _lock_all([session])
    source = ranges_between(session.branch, correction.source_seq - 1, correction.source_seq)
    if not (yield from hold(session.session_id)) or not source:
        return False
    seen = yield Query("is_in_view", key_of(source[0].conversation_id) | {"seq": correction.source_seq})
    if not seen:
        return False
    yield Query("insert_correction", key | correction_values(correction))
    changed = {(correction.anchor, correction.key), *(yield from _names_gone(session.branch))}
    yield from entries.remove_about(entries.of_session(session.session_id), changed)
    yield from _refold(session, 0, now, refold)
    return True


def _names_gone(branch: Sequence[BranchRange]) -> Steps[Iterable[tuple[str, str]]]:
    """The names of facts that corrections left nothing of."""
    ledger = yield from read_ledger(branch)
    known = {(fact.anchor, fact.key) for fact in ledger.facts}
    return known - {(fact.anchor, fact.key) for fact in amended(ledger.facts, ledger.corrections)}


def forget(session_ids: Sequence[str]) -> Steps[None]:
    """As `SummaryStore.forget`."""
    for session_id in session_ids:
        yield from forget_derived(session_id)
        yield Query("delete_layouts", key_of(session_id))
        yield Query("forget_work", key_of(session_id))


def forget_derived(session_id: str) -> Steps[None]:
    """Remove everything that was made of the messages of the session."""
    for query in ("delete_segments", "delete_facts", "delete_anchors", "delete_summary", "delete_corrections"):
        yield Query(query, key_of(session_id))


# What summarizers cost


def add_spending(session_id: str, *, day: int, tokens: int) -> Steps[None]:
    yield Query("add_spending", key_of(session_id) | {"day": day, "tokens": tokens})


def read_spending(session_id: str, *, day: int) -> Steps[Spending]:
    rows = yield Query("spending", key_of(session_id) | {"day": day, "of_owner": 0})
    return Spending(session=rows[0][0], day=rows[0][1])


def spent_for_owner(session_id: str, *, day: int) -> Steps[int]:
    """Tokens of all sessions of the session's owner on this day; 0 without one."""
    return (yield Query("spending", key_of(session_id) | {"day": day, "of_owner": 1}))[0][2]


# Background work
