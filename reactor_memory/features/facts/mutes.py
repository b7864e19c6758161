"""What a session's contexts are not to say: everything about a thing, or a whole category of facts.

A mute stands among the corrections, under a name that no fact has: the anchor without a key, or the category as the key
without an anchor. So it goes where corrections go, with forks, copies and erasures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from reactor_memory.core.log.rows import key_of
from reactor_memory.core.log.summaries import get_summary_head
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts import operations as facts
from reactor_memory.features.facts.amendment_fold import LIFTED, muted_names
from reactor_memory.features.facts.ledger_rows import correction_values
from reactor_memory.models import Session
from reactor_memory.models.ledger import Category, Fact, FactCorrection

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


def checked_mute(category: object, anchor: object) -> tuple[str, str]:
    """The name under which the mute stands. Raises `InvalidInputError`."""
    if (category is None) == (anchor is None):
        raise InvalidInputError("category", "give either category or anchor, and only one of them")
    if category is None:
        if not isinstance(anchor, str) or not anchor:
            raise InvalidInputError("anchor", "must be the anchor of a fact, as the list of facts gives it")
        return anchor, ""
    if category not in get_args(Category):
        raise InvalidInputError("category", f"must be one of {', '.join(get_args(Category))}")
    return "", str(category)


def set_mute(
    session: Session, name: tuple[str, str], *, on: bool, author_id: str | None, now: int, refold: LedgerFold
) -> Steps[bool]:
    """Mute what has this name, or end that; whether it changed anything.

    Raises `InvalidInputError` for an anchor that no fact of the session has (a mute goes with the newest message that
    it is about), and in ``full`` mode, where no ledger tells which messages state what is muted.
    """
    yield Query("lock_session", key_of(session.session_id))
    ledger = yield from facts.read_ledger(session.branch)
    summary = yield from get_summary_head(session.session_id)
    if not ledger.segments and summary is not None and summary.covered_seq:
        raise InvalidInputError("summary.mode", "is full, where no ledger can keep it: set it to ledger to mute facts")
    if (name in muted_names(ledger.corrections)) == on:
        return False
    source = _source(ledger.facts, name[0])
    mute = FactCorrection(
        anchor=name[0],
        key=name[1],
        value=None if on else LIFTED,
        seq=source,
        source_seq=source,
        author_id=author_id,
        created_at=now,
    )
    yield Query("insert_correction", key_of(session.session_id) | correction_values(mute))
    yield from facts.tell_anew(session, now=now, refold=refold)
    return True


def _source(facts: Iterable[Fact], anchor: str) -> int:
    """The newest message about the thing; 0 for a category, which no message names."""
    if not anchor:
        return 0
    about = [fact.source_seq for fact in facts if fact.anchor == anchor]
    if not about:
        raise InvalidInputError("anchor", "no fact has this anchor now: give it as the list of facts does")
    return max(about)
