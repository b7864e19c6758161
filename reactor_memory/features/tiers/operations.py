"""The operations on summaries of ranges: texts that stand for ranges of messages, beside the log that they stand for.
Owners are checked as in `MessageStore`; an unknown session raises `SessionNotFoundError`.

A branch summarises its own messages only, and shows the summaries of inherited ranges that end before it began. A
summary is live in a branch unless the branch shows what replaced it. So a branch that begins inside a range shows the
messages of that range themselves, archived or not.

What is archived is out of view: of `MessageStore.read`, of windows, of pinning. It is not forgotten:
`log.read_originals` gives it, and so does `MessageStore.read_background`, so that facts are drawn from it as from any
other message. When a message of a range is withdrawn or erased, the text goes that was made of it, as if it had been
restored. Deleting a session deletes its summaries.

Each generator is one transaction. Checks that refuse an operation come before its first write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from reactor_memory.core.context.withheld import NOTHING_WITHHELD
from reactor_memory.core.log import operations as log
from reactor_memory.core.log import view_start
from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import key_of, session_from, whole
from reactor_memory.core.log.tombstones import entomb
from reactor_memory.core.log.turn_borders import check_border, turn_around
from reactor_memory.database.operations import Query, Row, Rows, Steps
from reactor_memory.errors import InvalidInputError, StoreCorruptError
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.entries.operations import entry_from
from reactor_memory.features.facts.operations import read_withheld
from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED
from reactor_memory.features.tiers.covered_ranges import (
    check_forks,
    in_order,
    is_current,
    ranges_of_branch,
    replaced_by,
    restorable,
)
from reactor_memory.models import LARGEST, BranchRange, Message, Session
from reactor_memory.models.ledger import RangeSummary
from reactor_memory.models.seq_ranges import overlaps

_SHARED = ("start_seq", "end_seq", "text", "token_count", "tokenizer", "created_at", "replaced_by")
NAME, STATE = (Entry.__struct_fields__.index(name) for name in ("name", "state"))
"""Their columns in a row that need not be readable."""

_DETAILS = ("kind", "message_count", "message_ids", "started_at", "ended_at")


def range_summary_from(row: Row) -> RangeSummary:
    """Raises what msgspec raises for a damaged one, or `StoreCorruptError`."""
    entry = entry_from(row)
    shared = {name: getattr(entry, name) for name in _SHARED}
    values = entry.details | shared | {"summary_id": entry.name, "retention": entry.state}
    summary = msgspec.convert(values, RangeSummary)
    if not 0 < summary.start_seq <= summary.end_seq or summary.message_count < 1:
        raise StoreCorruptError("store: a summary of a range of messages is damaged")
    return summary


def entry_of(summary: RangeSummary) -> Entry:
    shared = {name: getattr(summary, name) for name in _SHARED}
    details = {name: getattr(summary, name) for name in _DETAILS}
    return Entry(kind="range", name=summary.summary_id, state=summary.retention, details=details, **shared)


def read_range_summaries(session_id: str, user_id: str | None, *, live: bool = True) -> Steps[tuple[RangeSummary, ...]]:
    """The live ones (or all), in the order of their ranges."""
    session = yield from log.require(session_id, user_id)
    return (yield from _read_ranges(session.branch, live=live))


def _read_ranges(branch: Sequence[BranchRange], *, live: bool) -> Steps[tuple[RangeSummary, ...]]:
    return (yield from _told(branch, (yield from _rows_of_branch(branch)), live=live))


def _rows_of_branch(branch: Sequence[BranchRange]) -> Steps[dict[str, Rows]]:
    rows: dict[str, Rows] = {}
    for part in branch:
        rows[part.conversation_id] = yield from entries.rows_of(entries.of_session(part.conversation_id), "range")
    return rows


def _told(branch: Sequence[BranchRange], rows: Mapping[str, Rows], *, live: bool) -> Steps[tuple[RangeSummary, ...]]:
    """The summaries of a branch that can be read; live ones only where none of their messages is cleared, and without
    what is withheld of the others.
    """
    summaries = {session_id: whole(stored, range_summary_from)[0] for session_id, stored in rows.items()}
    found = ranges_of_branch(branch, summaries, live=live)
    withheld = (yield from read_withheld(branch)) if live and found else NOTHING_WITHHELD
    shown = [each for each in found if not overlaps((each.start_seq, each.end_seq), withheld.cleared)]
    return tuple(replace(each, text=withheld.without(each.text, each.start_seq, each.end_seq)) for each in shown)


class OfLoad(NamedTuple):
    """What a load reads of a branch: live summaries, the system messages at its head if a tier put them out of view,
    and the rows of summaries that cannot be read, each with whose it is.
    """

    live: tuple[RangeSummary, ...]
    leading: tuple[Message, ...]
    damaged: tuple[tuple[str, Row], ...]


def read_of_load(branch: Sequence[BranchRange]) -> Steps[OfLoad]:
    stored = yield from _rows_of_branch(branch)
    damaged = [
        (owner, row) for owner, rows in stored.items() for row in rows if not whole([row], range_summary_from)[1]
    ]
    live = yield from _told(branch, stored, live=True)
    has_head = bool(live) and live[0].start_seq == 1 and live[0].kind in (CONDENSED, COMPRESSED)
    leading = (yield from _archived_head(branch)) if has_head else ()
    return OfLoad(live, leading, tuple(damaged))


def _archived_head(branch: Sequence[BranchRange]) -> Steps[tuple[Message, ...]]:
    """Those system messages always stand."""
    return log.leading_of((yield from log.read_along(branch, limit=log.MOST_LEADING, wanted="archived too")))


# Storing


def put_range_summaries(
    session_id: str, user_id: str | None, new: Sequence[RangeSummary], *, expected: Sequence[str], now: int
) -> Steps[bool]:
    """Store `new`: live summaries inside the range of a new one are replaced by it, and what becomes of its messages is
    told by its `retention`. `delete` leaves a tombstone for each message; it is meant to save space (`erase` forgets).

    Nothing happens, and the answer is False, if the ids of the live summaries are no longer those of `expected`, in any
    order, or if `message_ids` are no longer the messages of the range that are in view and that no replaced summary
    stands for. `InvalidInputError` for ranges that overlap a live summary without holding it or another new one, are
    not the branch's own or hold half a pair (a call whose results may still come is half a pair); for a `message_count`
    that is not the one of `message_ids` and the replaced summaries; for an id that is taken; for `delete`, if a fork
    begins inside the range.
    """
    session = yield from log.lock_required(session_id, user_id)
    ordered = in_order(session, new)
    live = yield from _read_ranges(session.branch, live=True)
    if {each.summary_id for each in live} != set(expected):
        return False
    replaced = {summary.summary_id: replaced_by(summary, live) for summary in ordered}
    for summary in ordered:
        if not is_current(summary, replaced[summary.summary_id], (yield from _in_view(session_id, summary))):
            return False
    yield from _check(session, ordered)
    for summary in ordered:
        yield from _store(session_id, summary, replaced[summary.summary_id], now=now)
    yield Query("touch_session", key_of(session_id) | {"now": now})
    return True


def _in_view(session_id: str, summary: RangeSummary) -> Steps[dict[int, str]]:
    rows = yield Query("ids_in_view", _range_of(session_id, summary))
    return {row[0]: row[1] for row in rows}


def _range_of(session_id: str, summary: RangeSummary) -> dict[str, Any]:
    return key_of(session_id) | {"start_seq": summary.start_seq, "end_seq": summary.end_seq}


def _check(session: Session, new: Sequence[RangeSummary]) -> Steps[None]:
    group = yield Query("lock_group", {"group_id": session.group_id})
    taken = {row[NAME] for row in (yield from entries.rows_of(entries.of_session(session.session_id), "range"))}
    for summary in new:
        if summary.summary_id in taken:
            raise InvalidInputError("summary_id", "is taken; choose another one")
        if summary.retention == "delete":
            check_forks(summary, session.session_id, [session_from(row) for row in group])
        for border in (summary.start_seq - 1, summary.end_seq):
            check_border((yield from turn_around(session.branch, border)), border)


def _store(session_id: str, summary: RangeSummary, replaced: Sequence[RangeSummary], *, now: int) -> Steps[None]:
    names = [each.summary_id for each in replaced]
    yield from entries.replace(entries.of_session(session_id), entry_of(summary), names)
    if summary.retention == "archive":
        yield Query("archive_messages", _range_of(session_id, summary) | {"summary_id": summary.summary_id})
        yield from view_start.hide(session_id, summary.start_seq, summary.end_seq)
    if summary.retention == "delete":
        yield from entomb(session_id, [(summary.start_seq, summary.end_seq)], now=now)


# Undoing


def undo_damaged(damaged: Sequence[tuple[str, Row]]) -> Steps[None]:
    """What these stood for is in view again, where it is there, and due to be summarised anew."""
    for session_id, row in damaged:
        if row[STATE] in ("keep", "archive"):
            yield from entries.undo_row(entries.of_session(session_id), ("range", row[NAME], 0, LARGEST, row[STATE]))


def restore_range_summary(session_id: str, user_id: str | None, summary_id: str, *, now: int) -> Steps[bool]:
    """Undo a live summary exactly: it goes, what it replaced is live again, archived messages are back in view.

    False if it is not live (any more). `InvalidInputError` if its messages were deleted.
    """
    session = yield from log.lock_required(session_id, user_id)
    live = yield from _read_ranges(session.branch, live=True)
    summary = restorable(session, live, summary_id)
    if summary is None:
        return False
    yield from entries.undo(entries.of_session(session_id), entry_of(summary))
    yield Query("touch_session", key_of(session_id) | {"now": now})
    return True


# What is not summarised


def behind_in_tiers(*, after: str, threshold: int, limit: int) -> Steps[tuple[tuple[str, int], ...]]:
    """Sessions behind `after`, in the order of their ids, with more messages than that behind their newest summary;
    and how long they are.
    """
    position = {"group_id": group_of(after), "conversation_id": after}
    rows = yield Query("behind_in_tiers", position | {"threshold": threshold, "limit": limit})
    return tuple((row[0], row[1]) for row in rows)
