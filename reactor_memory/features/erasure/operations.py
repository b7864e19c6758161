"""Content destroyed for good: a tombstone stays for each message, so that no position
is used again.

Each generator is one transaction, or a part of one that the log began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.log import background_work, deletion, withdrawals
from reactor_memory.core.log import operations as log
from reactor_memory.core.log.branches import group_of, is_fork, ranges_between
from reactor_memory.core.log.hooks import Gone, hooks
from reactor_memory.core.log.rows import key_of, session_from
from reactor_memory.core.log.scrubbing import note_scrub
from reactor_memory.core.log.tombstones import branches_showing, entomb
from reactor_memory.core.log.user_rows import name_user
from reactor_memory.core.log.walks import list_groups
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.erasure.models import Erased
from reactor_memory.models import BranchRange, Session
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import ERASE, ERASE_USER, ErasedBranch, Withdrawn

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


def erase(
    session_id: str, user_id: str | None, *, ranges: Sequence[tuple[int, int]], now: int, refold: LedgerFold
) -> Steps[Erased]:
    session = yield from log.lock_required(session_id, user_id)
    parts = parts_to_erase(session, ranges)
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": session.group_id}))]
    others: tuple[BranchRange, ...] = ()
    for hook in hooks():
        others += yield from hook.also_gone(group, parts)
    parts = (*parts, *others)
    branches = branches_showing(group, parts)
    yield from withdrawals.forget_titles(group, parts)
    destroyed = 0
    for part in parts:
        destroyed += yield from entomb(
            part.conversation_id, [(part.start_seq, part.end_seq or session.last_seq)], now=now
        )
    yield Query("touch_session", key_of(session_id) | {"now": now})
    branches = yield from _with_emptied(branches)
    gone = Gone(parts=parts, branches=branches, with_others=bool(others))
    for hook in hooks():
        yield from hook.forget(gone, now=now, refold=refold)
    yield Query("delete_answers_of_group", {"group_id": session.group_id})
    return Erased(message_count=destroyed, branches=branches)


def begin(
    session_id: str,
    user_id: str | None,
    *,
    ranges: Sequence[tuple[int, int]],
    now: int,
    refold: LedgerFold,
    lease_microseconds: int,
) -> Steps[tuple[Erased, Lease | None]]:
    """`erase`, and the lease of what is left to do after it: whoever finds it expired goes on. None if an earlier
    erasure in this session is not finished: then somebody will do what is left of both.
    """
    erased = yield from erase(session_id, user_id, ranges=ranges, now=now, refold=refold)
    return erased, (yield from _lease(session_id, now, lease_microseconds))


def begin_withdrawal(
    session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold, lease_microseconds: int
) -> Steps[tuple[Withdrawn, Lease | None]]:
    """`withdrawals.withdraw`, and the lease of what is left to do after it, as `begin` does."""
    withdrawn = yield from withdrawals.withdraw(session_id, user_id, seq=seq, now=now, refold=refold)
    return withdrawn, (yield from _lease(session_id, now, lease_microseconds))


def _lease(session_id: str, now: int, lease_microseconds: int) -> Steps[Lease | None]:
    if (yield from background_work.work_state(session_id, ERASE)) is not None:
        yield Query("make_due", key_of(session_id) | {"kind": ERASE, "now": now})
        return None
    return (yield from background_work.claim(session_id, ERASE, now=now, lease_microseconds=lease_microseconds))


def finish(lease: Lease, *, left: Sequence[str], now: int) -> Steps[None]:
    """Nothing is left to do, unless more was erased meanwhile, which took the lease away. What is `left` elsewhere is
    due now.
    """
    if left:
        yield from background_work.release(lease, due_at=now, attempts=1, parked=False, error=", ".join(left))
    else:
        yield Query("finish_work", key_of(lease.session_id) | {"kind": lease.kind, "fence": lease.fence})


def tombstones(session_id: str) -> Steps[tuple[tuple[ErasedBranch, ...], tuple[str, ...]]]:
    """Everything that was ever erased or withdrawn in the group of this session: the branches that showed it, and the
    ids.
    """
    key = {"group_id": group_of(session_id)}
    rows = yield Query("messages_taken_away", key)
    group = [session_from(row) for row in (yield Query("lock_group", key))]
    parts = tuple(BranchRange(conversation_id=row[0], start_seq=row[1], end_seq=row[1]) for row in rows)
    branches = yield from _with_emptied(branches_showing(group, parts))
    return branches, tuple(row[2] for row in rows if row[2] is not None)


def _with_emptied(branches: Sequence[ErasedBranch]) -> Steps[tuple[ErasedBranch, ...]]:
    """These branches, which showed what is erased now, and whether it was all that they had."""
    found: list[ErasedBranch] = []
    for branch in branches:
        is_left = False
        for part in branch.session.branch:
            end = branch.session.last_seq if part.end_seq is None else part.end_seq
            values = {"start_seq": part.start_seq, "end_seq": end}
            is_left = is_left or bool((yield Query("is_message_left", key_of(part.conversation_id) | values)))
        found.append(replace(branch, is_emptied=not is_left))
    return tuple(found)


def begin_user(user_id: str, *, now: int, lease_microseconds: int) -> Steps[int]:
    """`forget_user`, and a note for each group of the user that it is to be erased: whoever finds one later goes on."""
    values = {"kind": ERASE_USER, "now": now, "lease_until": now + lease_microseconds}
    after, limit = "", 1_000
    while roots := (yield from list_groups(owner_id=user_id, after=after, limit=limit)):
        yield Batch("note_erasure_of_group", [key_of(root) | values for root in roots])
        after = roots[-1]
    return (yield from forget_user(user_id, now=now))


def drop_work(session_ids: Sequence[str], kind: str) -> Steps[None]:
    """Take the notes away that this kind of work is to be done."""
    yield Batch("drop_work", [key_of(each) | {"kind": kind} for each in session_ids])


def settle(session_ids: Sequence[str], kind: str, *, left: Sequence[str], now: int) -> Steps[None]:
    """This kind of work is done, or due now because of what is `left` elsewhere."""
    if not left:
        return (yield from drop_work(session_ids, kind))
    values = {"kind": kind, "now": now, "error": ", ".join(left)}
    yield Batch("note_left", [key_of(each) | values for each in session_ids])


def group_to_erase(group_id: str) -> Steps[tuple[str | None, tuple[str, ...]]]:
    """Who owns the group, if it was not erased already, and its sessions, the root first."""
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": group_id}))]
    ids = sorted((each.session_id for each in group), key=lambda each: (is_fork(each), each))
    return next((each.owner_id for each in group if each.owner_id is not None), None), tuple(ids)


def owned_groups(user_id: str, *, after: str = "", limit: int = 100) -> Steps[tuple[tuple[str, ...], ...]]:
    groups: list[tuple[str, ...]] = []
    for root in (yield from list_groups(owner_id=user_id, after=after, limit=limit)):
        group = yield Query("group_ids", {"group_id": root})
        groups.append(tuple(sorted((row[0] for row in group), key=lambda each: (is_fork(each), each))))
    return tuple(groups)


def purge_group(group_id: str, user_id: str, *, now: int) -> Steps[tuple[str, ...]]:
    """Destroy the sessions of a group that is the user's; those that were not destroyed before."""
    group = yield Query("lock_group", {"group_id": group_id})
    went: list[str] = []
    for session in map(session_from, group):
        if session.owner_id is None:
            continue
        log.check_owner(session.session_id, user_id, session.owner_id)
        yield Query("mark_deleted", key_of(session.session_id) | {"now": now})
        if (yield from deletion.purge_session(session.session_id, now)):
            went.append(session.session_id)
    return tuple(went)


def settle_group(group_id: str, user_id: str, *, left: Sequence[str], now: int) -> Steps[None]:
    """The group is nobody's any more, unless something is `left` of it elsewhere: then it is to be found again."""
    if not left:
        yield Query("disown_group", {"group_id": group_id, "owner_id": user_id})
    yield from settle([group_id], ERASE_USER, left=left, now=now)


def forget_user(user_id: str, *, now: int) -> Steps[int]:
    """Destroy what is kept about a user beside sessions; how many rows."""
    yield from note_scrub(now)
    yield from name_user(user_id)
    rows = 0
    for hook in hooks():
        rows += yield from hook.on_user_forgotten(user_id, now)
    return rows


def parts_to_erase(session: Session, ranges: Sequence[tuple[int, int]]) -> tuple[BranchRange, ...]:
    """Where the messages of these ranges are stored. Raises `InvalidInputError` for what is not in the session."""
    if not ranges:
        raise InvalidInputError("seq", "names no message")
    for start, end in ranges:
        if not 1 <= start <= end <= session.last_seq:
            raise InvalidInputError("seq", f"must be from 1 to {session.last_seq}, where this session ends")
    return tuple(part for start, end in sorted(ranges) for part in ranges_between(session.branch, start - 1, end))
