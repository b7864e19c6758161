"""The summary of a session as it is stored: every load reads its head."""

from __future__ import annotations

from reactor_memory.core.log.rows import key_of, summary_from, summary_head_from
from reactor_memory.database.operations import Query, Steps
from reactor_memory.models.ledger import Summary, SummaryHead


def get_summary(session_id: str) -> Steps[Summary | None]:
    rows = yield Query("summary", key_of(session_id))
    return summary_from(rows[0]) if rows else None


def get_summary_head(session_id: str) -> Steps[SummaryHead | None]:
    rows = yield Query("summary_head", key_of(session_id))
    return summary_head_from(rows[0]) if rows else None


def hold(session_id: str) -> Steps[bool]:
    """Whether the session lives; if so, it is neither deleted nor changed by an invalidation until we are done."""
    rows = yield Query("hold_session", key_of(session_id))
    return bool(rows) and rows[0][0] is None
