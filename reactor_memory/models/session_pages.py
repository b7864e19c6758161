"""Lists of sessions, page by page."""

from __future__ import annotations

from reactor_memory.models import Value


class SessionPreview(Value, frozen=True, kw_only=True):
    """A row of the list of sessions. `owner_id` is None for a session that is open to everybody, `forked_from_id` for
    one that is no fork. `preview` is the beginning of the first message of the user that users see, on one line.

    `is_damaged`: rows of the session hold what this library never wrote, and of what is told here some is left out.
    """

    session_id: str
    owner_id: str | None
    title: str | None
    preview: str
    last_seq: int
    created_at: int
    updated_at: int
    forked_from_id: str | None = None
    is_damaged: bool = False


class SessionPage(Value, frozen=True, kw_only=True):
    """One page of sessions, newest activity first. `next_cursor` is None on the last page."""

    sessions: tuple[SessionPreview, ...]
    next_cursor: str | None = None
