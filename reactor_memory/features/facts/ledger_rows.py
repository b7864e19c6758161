"""Rows of segments, facts and corrections to values and back. The order of columns is the one of `queries.sql`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.core.log.summaries import packed
from reactor_memory.database.operations import Row
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import Role, Value
from reactor_memory.models.ledger import Act, Category, Fact, FactCorrection, Segment, Summary

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


MOST_PLAIN, LEVEL = 300, 6
"""The facts of a segment that take more bytes are compressed, once and for all: to a quarter."""

_Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class _Record(Value, frozen=True, array_like=True):
    """A fact as it is stored: a list of these."""

    anchor: str
    key: str
    value: str
    category: Category
    source_seq: Annotated[int, msgspec.Meta(ge=1)]
    start: _Natural
    end: _Natural
    said_by: Role
    act: Act
    failed: int
    verified: int
    salience: int


_RECORDS = msgspec.json.Decoder(list[_Record])


def facts_from(row: Row) -> tuple[Fact, ...]:
    """The facts of a segment, of a row that ends with them. Raises as `segment_from` does."""
    stored = row[-1]
    try:
        return tuple(map(_fact_from, _RECORDS.decode(stored if stored[:1] == b"[" else zlib.decompress(stored))))
    except zlib.error:
        raise _damaged() from None


def _damaged() -> StoreCorruptError:
    return StoreCorruptError("store: a fact is damaged; it is drawn again from the log")


def _fact_from(record: _Record) -> Fact:
    if record.start > record.end:
        raise _damaged()
    return Fact(
        anchor=record.anchor,
        key=record.key,
        value=record.value,
        category=record.category,
        source_seq=record.source_seq,
        span=(record.start, record.end),
        said_by=record.said_by,
        act=record.act,
        failed=bool(record.failed),
        verified=bool(record.verified),
        salience=record.salience,
    )


def records_of(facts: Sequence[Fact]) -> bytes:
    """The facts of a segment as they are stored."""
    written = msgspec.json.encode(list(map(_record, facts)))
    return zlib.compress(written, level=LEVEL) if len(written) > MOST_PLAIN else written


def _record(fact: Fact) -> _Record:
    return _Record(
        fact.anchor,
        fact.key,
        fact.value,
        fact.category,
        fact.source_seq,
        *fact.span,
        fact.said_by,
        fact.act,
        int(fact.failed),
        int(fact.verified),
        fact.salience,
    )


def anchor_number(anchor: str) -> int:
    """What leads to the segments that state something about `anchor`. It fits into four bytes."""
    return zlib.crc32(anchor.encode(errors="surrogatepass")) >> 1


def correction_from(row: Row) -> FactCorrection:
    names = ("ordinal", "anchor", "key", "value", "seq", "source_seq", "author_id", "created_at")
    return msgspec.convert(dict(zip(names, row, strict=True)), FactCorrection)


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
