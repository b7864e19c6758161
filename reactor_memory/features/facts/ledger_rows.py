"""Rows of segments, facts and corrections to values and back. The order of columns is the one of `queries.sql`."""

from __future__ import annotations

from typing import Any

import msgspec

from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.core.log.summaries import packed
from reactor_memory.database.operations import Row
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models.ledger import Fact, FactCorrection, Segment, Summary

STALE, OUTDATED, WAITS = 1, 2, 3
"""The column `stale` of a segment; 0 is none of them."""


def segment_from(row: Row) -> Segment:
    """Raises what msgspec raises for a damaged one, or `StoreCorruptError`."""
    conversation_id, start, end, source_hash, summarizer, prompt, narrative, headline, read, written, created, stale = (
        row
    )
    values = {
        "conversation_id": conversation_id,
        "start_seq": start,
        "end_seq": end,
        "source_hash": source_hash,
        "summarizer": summarizer,
        "prompt_version": prompt,
        "narrative": narrative,
        "headline": headline,
        "usage": {"tokens_read": read, "tokens_written": written},
        "created_at": created,
        "stale": stale == STALE,
        "outdated": stale == OUTDATED,
        "waits": stale == WAITS,
    }
    segment = msgspec.convert(values, Segment)
    if not 0 < segment.start_seq <= segment.end_seq or stale not in (0, STALE, OUTDATED, WAITS):
        raise StoreCorruptError("store: a segment of a summary is damaged; it is made again from the log")
    return segment


def segment_values(segment: Segment) -> dict[str, Any]:
    return {
        **key_of(segment.conversation_id),
        "start_seq": segment.start_seq,
        "end_seq": segment.end_seq,
        "source_hash": segment.source_hash,
        "summarizer": segment.summarizer,
        "prompt_version": segment.prompt_version,
        "narrative": segment.narrative,
        "headline": segment.headline,
        "tokens_read": segment.usage.tokens_read,
        "tokens_written": segment.usage.tokens_written,
        "created_at": segment.created_at,
        "stale": STALE if segment.stale else OUTDATED if segment.outdated else WAITS if segment.waits else 0,
    }


def fact_from(row: Row) -> Fact:
    """`row` without its first column, the end of the segment. Raises as `segment_from` does."""
    anchor, key, value, category, source_seq, start, end, said_by, act, failed, verified, salience = row
    values = {
        "anchor": anchor,
        "key": key,
        "value": value,
        "category": category,
        "source_seq": source_seq,
        "span": (start, end),
        "said_by": said_by,
        "act": act,
        "failed": bool(failed),
        "verified": bool(verified),
        "salience": salience,
    }
    fact = msgspec.convert(values, Fact)
    if fact.source_seq < 1 or not 0 <= start <= end:
        raise StoreCorruptError("store: a fact is damaged; it is drawn again from the log")
    return fact


def fact_values(segment: Segment, ordinal: int, fact: Fact) -> dict[str, Any]:
    return {
        **key_of(segment.conversation_id),
        "end_seq": segment.end_seq,
        "ordinal": ordinal,
        "anchor": fact.anchor,
        "key": fact.key,
        "value": fact.value,
        "category": fact.category,
        "source_seq": fact.source_seq,
        "span_start": fact.span[0],
        "span_end": fact.span[1],
        "said_by": fact.said_by,
        "act": fact.act,
        "failed": int(fact.failed),
        "verified": int(fact.verified),
        "salience": fact.salience,
    }


def correction_from(row: Row) -> FactCorrection:
    names = ("ordinal", "anchor", "key", "value", "seq", "source_seq", "author_id", "created_at")
    return msgspec.convert(dict(zip(names, row, strict=True)), FactCorrection)


def correction_about(row: Row) -> FactCorrection:
    """A row of `facts_about` that is a correction: its `seq` and `ordinal` come last but one."""
    anchor, key, value, _, source_seq, *_, seq, ordinal, _ = row
    fields = {"anchor": anchor, "key": key, "value": value, "seq": seq, "source_seq": source_seq, "ordinal": ordinal}
    return msgspec.convert(fields, FactCorrection)


def correction_values(correction: FactCorrection) -> dict[str, Any]:
    return {
        "anchor": correction.anchor,
        "key": correction.key,
        "value": correction.value,
        "seq": correction.seq,
        "source_seq": correction.source_seq,
        "author_id": correction.author_id,
        "now": correction.created_at,
    }


def summary_values(session_id: str, summary: Summary, fence: int) -> dict[str, Any]:
    return {
        **key_of(session_id),
        "covered_seq": summary.covered_seq,
        "version": summary.version,
        "epoch": summary.epoch,
        "fence": fence,
        "truncated": int(summary.truncated),
        "stale_ranges": to_json(summary.stale_ranges),
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "narrative": summary.narrative,
        "facts_json": packed(summary.facts_json),
        "spare_json": packed(summary.spare_json),
        "lines_json": packed(summary.lines_json),
    }
