"""Summaries of ranges as entries, and back."""

from __future__ import annotations

import msgspec

from reactor_memory.database.operations import Row
from reactor_memory.errors import StoreCorruptError
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.entries.operations import entry_from
from reactor_memory.models.ledger import RangeSummary

_SHARED = ("start_seq", "end_seq", "text", "token_count", "tokenizer", "created_at", "replaced_by")
NAME, STATE = (Entry.__struct_fields__.index(name) for name in ("name", "state"))
"""Their columns in a row that need not be readable."""

_DETAILS = ("kind", "message_count", "message_ids", "started_at", "ended_at")


def range_summary_from(row: Row) -> RangeSummary:
    """Raises what msgspec raises for a damaged one, or `StoreCorruptError`."""
    entry = entry_from(row)
    shared = {name: getattr(entry, name) for name in _SHARED}
    values = entry.details | shared | {"summary_id": entry.name, "retention": entry.state}
    summary = msgspec.convert(values, RangeSummary)
    if not 0 < summary.start_seq <= summary.end_seq or summary.message_count < 1:
        raise StoreCorruptError("store: a summary of a range of messages is damaged")
    return summary


def entry_of(summary: RangeSummary) -> Entry:
    shared = {name: getattr(summary, name) for name in _SHARED}
    details = {name: getattr(summary, name) for name in _DETAILS}
    return Entry(kind="range", name=summary.summary_id, state=summary.retention, details=details, **shared)
