"""Where the view of a session begins: so that no load looks through what was put away before."""

from __future__ import annotations

from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Steps


def hide(session_id: str, start_seq: int, end_seq: int) -> Steps[None]:
    """All own messages of this range, ends included, went out of the session's view."""
    yield Query("hide_beginning", key_of(session_id) | {"start_seq": start_seq, "seq": end_seq + 1})


def show(session_id: str, start_seq: int) -> Steps[None]:
    """Own messages from there on may be in view again."""
    yield Query("show_from", key_of(session_id) | {"seq": start_seq})
