"""Sessions in pages, with what lists show of them."""

from __future__ import annotations

from itertools import islice

from reactor_memory.core.log.branches import group_of, is_fork
from reactor_memory.core.log.operations import stored_parts
from reactor_memory.core.log.paging import PREVIEW_SOURCE_LENGTH, Cursor, decode_cursor, encode_cursor, preview_of
from reactor_memory.core.log.rows import branch_from, first_range, session_from
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.models import LARGEST, BranchRange, Session
from reactor_memory.models.session_pages import SessionPage, SessionPreview

_AS_THEY_ARE = str.maketrans({sign: f"!{sign}" for sign in "!%_"})
"""What else means something in a pattern of `list_matching`."""

LAST_CHARACTER = "\U0010ffff"
"""No id that begins with a text sorts behind the text with this: ids sort by code point on both engines."""


def list_sessions(
    user_id: str | None, *, limit: int, cursor: str | None, of_all: bool = False, text: str | None = None
) -> Steps[SessionPage]:
    """The sessions of a user, of nobody (None), or `of_all`, for whoever owns the database: with `text`, those whose
    id, owner or title holds it.
    """
    begin = Cursor(updated_at=LARGEST, session_id="") if cursor is None else decode_cursor(cursor)
    values = {"updated_at": begin.updated_at, "conversation_id": begin.session_id, "limit": limit + 1}
    if of_all:
        rows = yield Query("list_matching", values | _pattern_of(text or ""))
    elif user_id is None:
        rows = yield Query("list_open", values)
    else:
        rows = yield Query("list_owned", values | {"owner_id": user_id})
    previews: list[SessionPreview] = []
    for row in islice(rows, limit):
        previews.append((yield from _preview(row)))  # noqa: PERF401 (a comprehension cannot yield)
    return SessionPage(
        sessions=tuple(previews),
        next_cursor=_cursor_after(previews[-1]) if previews and len(rows) > limit else None,
    )


def _pattern_of(text: str) -> dict[str, str]:
    return {"pattern": f"%{text.lower().translate(_AS_THEY_ARE)}%", "escape": "!"}


def read_group(session_id: str) -> Steps[tuple[Session, ...]]:
    """The sessions that are not deleted of the group of a session, whoever owns it; oldest first."""
    rows = yield Query("group", {"group_id": group_of(session_id)})
    return tuple(map(session_from, rows))


def list_beginning(text: str, user_id: str | None, *, limit: int) -> Steps[tuple[Session, ...]]:
    """At most `limit` sessions whose ids begin with `text`, by id: roots, or the forks of one root if `text` has the
    mark of forks. Those that the user may open, without one everybody's; one of exactly this id also if it was deleted.
    """
    forks = is_fork(text)
    group, beyond = (group_of(text), group_of(text)) if forks else (text, text + LAST_CHARACTER)
    bounds = {"first_group": group, "last_group": beyond, "first_id": text, "last_id": text + LAST_CHARACTER}
    rows = yield Query("list_beginning", bounds | {"owner_id": user_id, "of_forks": int(forks), "limit": limit})
    return tuple(map(session_from, rows))


def _cursor_after(session: SessionPreview) -> str:
    return encode_cursor(Cursor(updated_at=session.updated_at, session_id=session.session_id))


def _preview(row: Row) -> Steps[SessionPreview]:
    """One whose rows are damaged is listed as that: it does not take the others along."""
    session_id, _, owner_id, last_seq, path, created_at, updated_at, title, forked_from_id, *_ = row
    try:
        preview = preview_of((yield from _first_user_text(session_id, path)))
        is_damaged = False
    except DAMAGE:
        preview, is_damaged = "", True
    numbers = [each if isinstance(each, int) else 0 for each in (last_seq, created_at, updated_at)]
    texts = [each if isinstance(each, str) else None for each in (owner_id, title, forked_from_id)]
    return SessionPreview(
        session_id=session_id,
        owner_id=texts[0],
        forked_from_id=texts[2],
        title=texts[1],
        preview=preview,
        last_seq=numbers[0],
        created_at=numbers[1],
        updated_at=numbers[2],
        is_damaged=is_damaged
        or numbers != [last_seq, created_at, updated_at]
        or texts != [owner_id, title, forked_from_id],
    )


def _first_user_text(session_id: str, path: str | None) -> Steps[str]:
    """It nearly always stands in the first part of the branch: the others are not even decoded before."""
    text = yield from _user_text_of(first_range(session_id, path))
    for part in branch_from(session_id, path)[1:] if text is None else ():
        if (text := (yield from _user_text_of(part))) is not None:
            break
    return text or ""


def _user_text_of(part: BranchRange) -> Steps[str | None]:
    (stored,) = stored_parts([part], part.start_seq - 1, None)
    rows = yield Query("first_shown_text", stored.values() | {"length": PREVIEW_SOURCE_LENGTH})
    return rows[0][0] if rows else None
