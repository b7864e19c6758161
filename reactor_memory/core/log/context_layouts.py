"""The operations on the layouts of contexts: where the window of a session starts, and what its blocks hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.core.log.summaries import get_summary_head, hold
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Rows, Steps
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models.block_lines import BlockLine, BlockLines, Layout, line_details, lines_text
from reactor_memory.models.excerpts import Excerpt

_INT = {int}
_FACT_BLOCK = msgspec.json.Decoder(tuple[int, int, str, msgspec.Raw, int, tuple[float, int], tuple[Excerpt, ...]])
_BLOCK = msgspec.json.Decoder(tuple[int, int, str, msgspec.Raw])


def get_layout(session_id: str, budget: int, settings_fingerprint: str) -> Steps[Layout | None]:
    rows = yield from stored_layout(session_id, budget, settings_fingerprint)
    return read_layout(rows[0])[0] if rows else None


def stored_layout(session_id: str, budget: int, settings_fingerprint: str) -> Steps[Rows]:
    return (yield Query("layout", _layout_key(session_id, budget, settings_fingerprint)))


def read_layout(row: Row) -> tuple[Layout | None, tuple[str, ...]]:
    """The layout; None for a damaged one, which is made anew, and its name as that of what is damaged."""
    try:
        return layout_from(row), ()
    except DAMAGE:
        return None, ("layout",)


def put_layout(session_id: str, layout: Layout, budget: int, settings_fingerprint: str) -> Steps[None]:
    if not (yield from hold(session_id)):
        return
    summary = yield from get_summary_head(session_id)
    if layout.epoch == (summary.epoch if summary else 0):
        stored = yield from stored_layout(session_id, budget, settings_fingerprint)
        if stored and read_layout(stored[0])[1]:  # else it would stay, if it says that it is newer
            yield Query("delete_layouts", key_of(session_id))
        yield Query("store_layout", _layout_key(session_id, budget, settings_fingerprint) | _layout_values(layout))


def _layout_key(session_id: str, budget: int, settings_fingerprint: str) -> dict[str, Any]:
    return key_of(session_id) | {"budget": budget, "settings_fingerprint": settings_fingerprint}


def layout_from(row: Row) -> Layout:
    seq, window_start_seq, covered_seq, epoch, facts_json, narrative_json = row
    if not {type(seq), type(window_start_seq), type(covered_seq), type(epoch)} == _INT or window_start_seq < 0:
        raise StoreCorruptError("store: the layout of a context is damaged; it is made again from the log")
    fact_tokens, fact_count, facts, fact_details, left_out, floor, excerpts = _FACT_BLOCK.decode(facts_json)
    narrative_tokens, count, narrative, details = _BLOCK.decode(narrative_json)
    return Layout(
        seq=seq,
        window_start_seq=window_start_seq,
        fact_lines=BlockLines(facts, fact_details, fact_count),
        narrative=BlockLines(narrative, details, count),
        fact_tokens=fact_tokens,
        narrative_tokens=narrative_tokens,
        left_out=left_out,
        floor=floor,
        covered_seq=covered_seq,
        epoch=epoch,
        excerpts=excerpts,
    )


def _layout_values(layout: Layout) -> dict[str, Any]:
    return {
        "seq": layout.seq,
        "window_start_seq": layout.window_start_seq,
        "fact_lines": to_json(
            (
                *(layout.fact_tokens, *_stored(layout.fact_lines)),
                *(layout.left_out, layout.floor, layout.excerpts),
            )
        ),
        "narrative": to_json((layout.narrative_tokens, *_stored(layout.narrative))),
        "covered_seq": layout.covered_seq,
        "epoch": layout.epoch,
    }


def _stored(lines: Sequence[BlockLine]) -> tuple[int, str, list[tuple[int, float, tuple[int, ...]]]]:
    return len(lines), lines_text([line.text for line in lines]), line_details(lines)
