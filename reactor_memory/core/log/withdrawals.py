"""The newest message taken out of view, with the posted summaries that were made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, hooks
from reactor_memory.core.log.operations import lock_required, read_along
from reactor_memory.core.log.paging import PREVIEW_SOURCE_LENGTH, title_from
from reactor_memory.core.log.rows import key_of, session_from
from reactor_memory.core.log.tombstones import branches_showing, entomb
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.requests import Withdrawn

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


def withdraw(
    session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold
) -> Steps[Withdrawn]:
    session = yield from lock_required(session_id, user_id)
    newest = yield from read_along(session.branch, last=1)
    message, position = _withdrawable(session, newest, seq)
    group = [session_from(row) for row in (yield Query("lock_group", {"group_id": session.group_id}))]
    withdrawn = BranchRange(conversation_id=session_id, start_seq=position, end_seq=position)
    yield from forget_titles(group, [withdrawn])
    yield Query("withdraw_message", key_of(session_id) | {"seq": position})
    yield Query("touch_session", key_of(session_id) | {"now": now})
    others: tuple[BranchRange, ...] = ()
    for hook in hooks():
        others += yield from hook.also_gone(group, [withdrawn])
    for part in others:
        # A posted summary that is itself withdrawn too: no erasure of what it tells would find it any more.
        yield from entomb(part.conversation_id, [(part.start_seq, part.start_seq)], now=now)
    if withdrawn not in others:
        for hook in hooks():
            yield from hook.out_of_view(session_id, position, position, destroyed=False)
    gone = tuple(dict.fromkeys((withdrawn, *others)))
    holding = branches_showing(group, gone)
    went = Gone(parts=gone, branches=holding, with_others=bool(others))
    for hook in hooks():
        yield from hook.forget(went, now=now, refold=refold)
    branches = tuple(each.session for each in holding if each.session.deleted_at is None)
    return Withdrawn(message=message, conversation_id=session_id, branches=branches)


def forget_titles(group: Iterable[Session], parts: Sequence[BranchRange]) -> Steps[None]:
    """Before these stored messages go, take away the titles in their group that were made of them. No part is open."""
    titles = {session.title for session in group if session.title is not None}
    for part in parts if titles else ():
        values = {"start_seq": part.start_seq, "end_seq": part.end_seq, "length": PREVIEW_SOURCE_LENGTH}
        for row in (yield Query("shown_texts", key_of(part.conversation_id) | values)):
            title = title_from(row[0])
            if title in titles:
                yield Query("take_title_away", key_of(part.conversation_id) | {"title": title})


def _withdrawable(session: Session, newest: Sequence[Message], seq: int | None) -> tuple[Message, int]:
    """The newest visible message, if it is the session's own and the one asked for."""
    if not newest or newest[0].seq is None:
        raise InvalidInputError("seq", "there is no message to withdraw")
    position = newest[0].seq
    if position < session.branch[-1].start_seq:
        raise InvalidInputError("seq", f"message {position} is inherited; withdraw it in the session it belongs to")
    if seq is not None and seq != position:
        raise InvalidInputError("seq", f"only the newest message can be withdrawn, which is {position}")
    return newest[0], position
