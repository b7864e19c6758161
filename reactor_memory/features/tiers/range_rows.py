"""Rows of summaries of ranges to values and back. The order of columns is the one of `queries.sql`."""

from __future__ import annotations

from typing import Any

import msgspec

from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Row
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models.ledger import RangeSummary

_IDS = msgspec.json.Decoder(tuple[str, ...])


def range_summary_from(row: Row) -> RangeSummary:
    """Raises what msgspec raises for a damaged one, or `StoreCorruptError`."""
    (
        summary_id,
        kind,
        start,
        end,
        count,
        ids,
        retention,
        replaced_by,
        started,
        ended,
        text,
        tokens,
        tokenizer,
        created,
    ) = row
    values = {
        "summary_id": summary_id,
        "kind": kind,
        "start_seq": start,
        "end_seq": end,
        "message_count": count,
        "message_ids": _IDS.decode(ids) if ids else (),
        "retention": retention,
        "replaced_by": replaced_by,
        "started_at": started,
        "ended_at": ended,
        "text": text,
        "token_count": tokens,
        "tokenizer": tokenizer,
        "created_at": created,
    }
    summary = msgspec.convert(values, RangeSummary)
    if not 0 < summary.start_seq <= summary.end_seq or summary.message_count < 1:
        raise StoreCorruptError("store: a summary of a range of messages is damaged")
    return summary


def range_summary_values(session_id: str, summary: RangeSummary) -> dict[str, Any]:
    """The columns of a live summary."""
    return {
        **key_of(session_id),
        "summary_id": summary.summary_id,
        "kind": summary.kind,
        "start_seq": summary.start_seq,
        "end_seq": summary.end_seq,
        "message_count": summary.message_count,
        "message_ids": to_json(summary.message_ids),
        "retention": summary.retention,
        "started_at": summary.started_at,
        "ended_at": summary.ended_at,
        "text": summary.text,
        "token_count": summary.token_count,
        "tokenizer": summary.tokenizer,
        "created_at": summary.created_at,
    }
