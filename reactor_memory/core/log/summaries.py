"""The summary of a session as it is stored: every load reads its head."""

from __future__ import annotations

import zlib
from binascii import a2b_base64, b2a_base64
from typing import Any

import msgspec

from reactor_memory.core.log.rows import key_of
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models.ledger import Summary, SummaryHead

MOST_PLAIN = 2_000
"""Longer texts of a summary are compressed: it is written with each segment, and its facts have much in common."""

_UNREADABLE = "?"
"""What stands for a text that cannot be unpacked: nothing that anybody decodes."""

_INT = {int}
_RANGES = msgspec.json.Decoder(tuple[tuple[int, int], ...])


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


def summary_head_from(row: Row) -> SummaryHead:
    """Raises `StoreCorruptError`, as `summary_from` does."""
    return SummaryHead(**_head_fields(row))


def summary_from(row: Row) -> Summary:
    *head, facts_json, spare_json, lines_json = row
    texts = {"facts_json": facts_json, "spare_json": spare_json, "lines_json": lines_json}
    return Summary(**_head_fields(head), **{name: _unpacked(text) for name, text in texts.items()})


def packed(text: str) -> str:
    """JSON as it is stored."""
    if len(text) <= MOST_PLAIN:
        return text
    return b2a_base64(zlib.compress(text.encode(errors="surrogatepass"), level=1), newline=False).decode()


def _unpacked(stored: Any) -> Any:
    """The inverse of `packed`. What is damaged fails when it is decoded, as it does where it is not packed."""
    if type(stored) is not str or stored[:1] in ("", "[", "{"):
        return stored
    try:
        return zlib.decompress(a2b_base64(stored, strict_mode=True)).decode(errors="surrogatepass")
    except (ValueError, zlib.error):
        return _UNREADABLE


def _damaged() -> StoreCorruptError:
    return StoreCorruptError("store: the summary of a session is damaged; it is made again from the log")


def _ranges_from(stored: str) -> tuple[tuple[int, int], ...]:
    try:
        return _RANGES.decode(stored)
    except DAMAGE:
        raise _damaged() from None


def _head_fields(row: Row) -> dict[str, Any]:
    covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative = row
    if not {type(covered_seq), type(version), type(epoch), type(created_at), type(updated_at)} == _INT or not (
        type(narrative) is str and covered_seq >= 0 and version >= 0 and epoch >= 0
    ):
        raise _damaged()
    return {
        "covered_seq": covered_seq,
        "version": version,
        "epoch": epoch,
        "truncated": bool(truncated),
        "stale_ranges": _ranges_from(stale_ranges) if stale_ranges else (),
        "created_at": created_at,
        "updated_at": updated_at,
        "narrative": narrative,
    }
