"""Messages put out of view by a caller, and brought back. Nothing is destroyed, and no position is used again.

A branch archives its own messages, and forks that were made before go on showing them. What is archived stays readable
(`log.read_originals`), and its facts are drawn and shown. What is cleared is out of memory, too: facts,
narrative, pins, what recall and searches find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reactor_memory.core.log import operations as log
from reactor_memory.core.log import view_start
from reactor_memory.core.log.archived_ranges import read_archived
from reactor_memory.core.log.hooks import hooks
from reactor_memory.core.log.rows import key_of, session_from
from reactor_memory.core.log.turn_borders import check_border, turn_around
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.archiving.models import Archived
from reactor_memory.features.posted_summaries.posting import Post
from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.models.seq_ranges import Ranges, is_inside, is_within

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


def archive(
    session_id: str,
    user_id: str | None,
    *,
    until_seq: int | None,
    cleared: bool,
    post: Post | None,
    now: int,
    refold: LedgerFold,
) -> Steps[Archived]:
    """Archive the session's own messages up to `until_seq` (None: all there are), and `post` something in their place.
    What was posted before archives nothing more.

    Raises `InvalidInputError` for a position that is not the session's own, or between a tool call and its results.
    """
    session = yield from log.lock_required(session_id, user_id)
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": session.group_id}))]
    last = session.last_seq if until_seq is None else until_seq
    known = yield from read_archived(session.branch)
    if until_seq is not None and not is_within(until_seq, (*known.kept, *known.cleared)):
        yield from _check(session, until_seq)
    posted, is_known = (yield from post(last)) if post else (None, False)
    if is_known:
        return Archived(message_count=0, summary=posted)
    own = BranchRange(conversation_id=session_id, start_seq=session.branch[-1].start_seq, end_seq=last)
    # Those that are archived are cleared with the others. Those that are cleared are told of again if they are named.
    other = "archived" if cleared else "" if until_seq is None else "cleared"
    count = yield from _put_away(own, group, "cleared" if cleared else "archived", other)
    yield from view_start.hide(session_id, own.start_seq, last)
    if count and cleared:
        for hook in hooks():
            yield from hook.out_of_view(session_id, own.start_seq, last, destroyed=False)
        count += yield from _clear_posted(session, own, group, posted)
    if count:
        yield from _settle(session, known.cleared, now=now, refold=refold)
    return Archived(message_count=count, summary=posted)


def restore(session_id: str, user_id: str | None, *, from_seq: int, now: int, refold: LedgerFold) -> Steps[int]:
    """Bring the session's own archived messages from `from_seq` on back into view and memory; how many there were."""
    session = yield from log.lock_required(session_id, user_id)
    yield Query("lock_group", {"group_id": session.group_id})
    untold = (yield from read_archived(session.branch)).cleared
    rows = yield Query("restore_own", key_of(session_id) | {"start_seq": from_seq})
    if rows:
        yield from view_start.show(session_id, from_seq)
        yield from _settle(session, untold, now=now, refold=refold)
    return len(rows)


def _settle(session: Session, untold: Ranges, *, now: int, refold: LedgerFold) -> Steps[None]:
    """Contexts are laid out anew, and what is archived is sealed. `untold` is what was cleared until now: if that has
    changed, so has what memory tells, and what is cleared no more has to be found again.
    """
    key = key_of(session.session_id)
    yield Query("touch_session", key | {"now": now})
    cleared = (yield from read_archived(session.branch)).cleared
    back = [start for start, end in untold if not is_inside((start, end), cleared)]
    yield Query("delete_layouts", key)
    for hook in hooks():
        yield from hook.on_memory_changed(
            session,
            back_from=back[0] if back else None,
            is_other=cleared != untold,
            now=now,
            refold=refold,
        )
    yield Query("make_due", key | {"kind": SUMMARIZE, "now": now})


def _check(session: Session, until_seq: int) -> Steps[None]:
    first = session.branch[-1].start_seq
    if not 1 <= until_seq <= session.last_seq:
        raise InvalidInputError("until_seq", f"must be from 1 to {session.last_seq}, where this session ends")
    if until_seq < first:
        raise InvalidInputError(
            "until_seq", f"message {until_seq} is inherited; archive it in the session it belongs to"
        )
    try:
        check_border((yield from turn_around(session.branch, until_seq)), until_seq)
    except InvalidInputError as error:
        raise InvalidInputError("until_seq", error.problem) from None


def _clear_posted(session: Session, own: BranchRange, group: Sequence[Session], kept: Message | None) -> Steps[int]:
    """What was posted behind these messages and tells of them is cleared with them, but for what was posted now."""
    count = 0
    telling: tuple[BranchRange, ...] = ()
    for hook in hooks():
        telling += yield from hook.telling_of([session], [own])
    for part in telling:
        if part.start_seq > (own.end_seq or 0) and part.start_seq != (kept.seq if kept else None):
            for hook in hooks():
                yield from hook.out_of_view(session.session_id, part.start_seq, part.start_seq, destroyed=False)
            count += yield from _put_away(part, group, "cleared", "archived")
    return count


def _put_away(own: BranchRange, group: Sequence[Session], state: str, other: str) -> Steps[int]:
    """Change the state of these messages; how many there were. Branches that show any of them keep them."""
    start, end = own.start_seq, own.end_seq or 0
    shown_until = [
        part.end_seq
        for session in group
        for part in session.branch
        if part.conversation_id == own.conversation_id and part.end_seq is not None and part.end_seq >= start
    ]
    values = {
        "start_seq": start,
        "end_seq": end,
        "archived_until": max(end, max(shown_until, default=0) + 1),
        "state": state,
        "other": other,
    }
    return len((yield Query("archive_own", key_of(own.conversation_id) | values)))
