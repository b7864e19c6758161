"""The operations on the layouts of contexts: where the window of a session starts, and what its blocks hold."""

from __future__ import annotations

from typing import Any

from reactor_memory.core.log.rows import key_of, layout_from, layout_values
from reactor_memory.core.log.summaries import get_summary_head, hold
from reactor_memory.database.operations import Query, Steps
from reactor_memory.models.block_lines import Layout


def get_layout(session_id: str, budget: int, settings_fingerprint: str) -> Steps[Layout | None]:
    rows = yield Query("layout", _layout_key(session_id, budget, settings_fingerprint))
    return layout_from(rows[0]) if rows else None


def put_layout(session_id: str, layout: Layout, budget: int, settings_fingerprint: str) -> Steps[None]:
    if not (yield from hold(session_id)):
        return
    summary = yield from get_summary_head(session_id)
    if layout.epoch == (summary.epoch if summary else 0):
        yield Query("store_layout", _layout_key(session_id, budget, settings_fingerprint) | layout_values(layout))


def _layout_key(session_id: str, budget: int, settings_fingerprint: str) -> dict[str, Any]:
    return key_of(session_id) | {"budget": budget, "settings_fingerprint": settings_fingerprint}
