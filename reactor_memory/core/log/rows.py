"""Rows of the tables to values and back. The order of columns is the one of `queries.sql`.

JSON columns are NULL when empty, so the usual row is small. A row that cannot be read raises what msgspec raises;
the stores turn it into `StoreCorruptError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from reactor_memory.core.log.branches import group_of, root_branch
from reactor_memory.database.operations import Row
from reactor_memory.models import BranchRange, JsonObject, Message, Pin, Session, ToolCall, WorkState
from reactor_memory.models.block_lines import BlockLine, BlockLines, Layout, line_details, lines_text
from reactor_memory.models.ledger import Fact, FactCorrection, Form, RangeSummary, Segment, Summary, SummaryHead, Usage

_BRANCH = msgspec.json.Decoder(tuple[BranchRange, ...])
_READER = json.JSONDecoder()
_PARTS = msgspec.json.Decoder(tuple[JsonObject, ...])
_TOOL_CALLS = msgspec.json.Decoder(tuple[ToolCall, ...])
_OBJECT = msgspec.json.Decoder(JsonObject)
_FACT_BLOCK = msgspec.json.Decoder(tuple[int, int, str, msgspec.Raw, int, tuple[float, int], Form])
_BLOCK = msgspec.json.Decoder(tuple[int, int, str, msgspec.Raw])
_RANGES = msgspec.json.Decoder(tuple[tuple[int, int], ...])
_IDS = msgspec.json.Decoder(tuple[str, ...])
_encode = msgspec.json.encode

_STALE, _OUTDATED = 1, 2
"""The column `stale` of a segment; 0 is neither."""


def to_json(value: Sequence[Any] | Mapping[str, Any]) -> str | None:
    return _encode(value).decode() if value else None


def key_of(session_id: str) -> dict[str, Any]:
    """The two columns that every key begins with."""
    return {"group_id": group_of(session_id), "conversation_id": session_id}


def session_from(row: Row) -> Session:
    session_id, group_id, owner_id, last_seq, path, created, updated, title, forked_from, forked_at, deleted = row
    return Session(
        session_id=session_id,
        group_id=group_id,
        owner_id=owner_id,
        last_seq=last_seq,
        branch=branch_from(session_id, path),
        created_at=created,
        updated_at=updated,
        title=title,
        forked_from_id=forked_from,
        forked_at_seq=forked_at,
        deleted_at=deleted,
    )


def branch_from(session_id: str, path: str | None) -> tuple[BranchRange, ...]:
    """The branch that a session's stored path tells; the one of a root, if it has none."""
    return _BRANCH.decode(path) if path else root_branch(session_id)


def first_range(session_id: str, path: str | None) -> BranchRange:
    """The first part of the same branch."""
    return BranchRange(**_READER.raw_decode(path, 1)[0]) if path else root_branch(session_id)[0]


def message_from(row: Row) -> Message:
    (
        seq,
        message_id,
        role,
        visibility,
        author_id,
        content,
        parts,
        tool_calls,
        tool_call_id,
        name,
        metadata,
        token_count,
        tokenizer,
        created_at,
    ) = row
    return Message(
        role=role,
        content=content,
        parts=_PARTS.decode(parts) if parts else (),
        tool_calls=_TOOL_CALLS.decode(tool_calls) if tool_calls else (),
        tool_call_id=tool_call_id,
        name=name,
        metadata=object_from(metadata),
        visibility=visibility,
        author_id=author_id,
        created_at=created_at,
        seq=seq,
        message_id=message_id,
        token_count=token_count,
        tokenizer=tokenizer,
    )


def object_from(column: str | None) -> JsonObject:
    return _OBJECT.decode(column) if column else {}


def message_values(message: Message) -> dict[str, Any]:
    """The columns of a message that do not depend on where it is stored."""
    return {
        "message_id": message.message_id,
        "role": message.role,
        "visibility": message.visibility,
        "author_id": message.author_id,
        "content": message.content,
        "parts": to_json(message.parts),
        "tool_calls": to_json(message.tool_calls),
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "metadata": to_json(message.metadata),
        "token_count": message.token_count,
        "tokenizer": message.tokenizer,
        "created_at": message.created_at,
    }


_CONTENT = ("content", "parts", "tool_calls", "metadata")


def stored_bytes(values: Iterable[Mapping[str, Any]]) -> int:
    """How many bytes of UTF-8 the content of these messages takes, of which `message_values` made the columns."""
    texts = (row[column] for row in values for column in _CONTENT)
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts if text)


def pin_from(row: Row) -> Pin:
    ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at = row
    return Pin(
        ordinal=ordinal,
        seq=seq,
        fact=None if anchor is None else (anchor, key),
        role=role,
        text=text,
        sha256=sha256,
        token_count=token_count,
        tokenizer=tokenizer,
        created_at=created_at,
    )


def pin_values(pin: Pin) -> dict[str, Any]:
    """The columns of a pin that do not depend on where it is stored."""
    anchor, key = pin.fact or (None, None)
    return {
        "ordinal": pin.ordinal,
        "seq": pin.seq,
        "anchor": anchor,
        "key": key,
        "role": pin.role,
        "text": pin.text,
        "sha256": pin.sha256,
        "token_count": pin.token_count,
        "tokenizer": pin.tokenizer,
        "created_at": pin.created_at,
    }


def segment_from(row: Row) -> Segment:
    conversation_id, start, end, source_hash, summarizer, prompt, narrative, headline, read, written, created, stale = (
        row
    )
    return Segment(
        conversation_id=conversation_id,
        start_seq=start,
        end_seq=end,
        source_hash=source_hash,
        summarizer=summarizer,
        prompt_version=prompt,
        narrative=narrative,
        headline=headline,
        usage=Usage(tokens_read=read, tokens_written=written),
        created_at=created,
        stale=stale == _STALE,
        outdated=stale == _OUTDATED,
    )


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
        "stale": _STALE if segment.stale else _OUTDATED if segment.outdated else 0,
    }


def fact_from(row: Row) -> Fact:
    """`row` without its first column, the end of the segment."""
    anchor, key, value, category, source_seq, start, end, said_by, act, failed, verified, salience = row
    return Fact(
        anchor=anchor,
        key=key,
        value=value,
        category=category,
        source_seq=source_seq,
        span=(start, end),
        said_by=said_by,
        act=act,
        failed=bool(failed),
        verified=bool(verified),
        salience=salience,
    )


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
    ordinal, anchor, key, value, seq, source_seq, author_id, created_at = row
    return FactCorrection(
        anchor=anchor,
        key=key,
        value=value,
        seq=seq,
        source_seq=source_seq,
        author_id=author_id,
        created_at=created_at,
        ordinal=ordinal,
    )


def correction_about(row: Row) -> FactCorrection:
    """A row of `facts_about` that is a correction: its `seq` and `ordinal` come last but one."""
    anchor, key, value, _, source_seq, *_, seq, ordinal, _ = row
    return FactCorrection(anchor=anchor, key=key, value=value, seq=seq, source_seq=source_seq, ordinal=ordinal)


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


def summary_head_from(row: Row) -> SummaryHead:
    return SummaryHead(**_head_fields(row))


def summary_from(row: Row) -> Summary:
    *head, facts_json, spare_json = row
    return Summary(**_head_fields(head), facts_json=facts_json, spare_json=spare_json)


def _head_fields(row: Row) -> dict[str, Any]:
    covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative = row
    return {
        "covered_seq": covered_seq,
        "version": version,
        "epoch": epoch,
        "truncated": bool(truncated),
        "stale_ranges": _RANGES.decode(stale_ranges) if stale_ranges else (),
        "created_at": created_at,
        "updated_at": updated_at,
        "narrative": narrative,
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
        "facts_json": summary.facts_json,
        "spare_json": summary.spare_json,
    }


def layout_from(row: Row) -> Layout:
    seq, window_start_seq, covered_seq, epoch, facts_json, narrative_json = row
    fact_tokens, fact_count, facts, fact_details, left_out, floor, form = _FACT_BLOCK.decode(facts_json)
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
        form=form,
        covered_seq=covered_seq,
        epoch=epoch,
    )


def layout_values(layout: Layout) -> dict[str, Any]:
    return {
        "seq": layout.seq,
        "window_start_seq": layout.window_start_seq,
        "fact_lines": to_json(
            (layout.fact_tokens, *_stored(layout.fact_lines), layout.left_out, layout.floor, layout.form)
        ),
        "narrative": to_json((layout.narrative_tokens, *_stored(layout.narrative))),
        "covered_seq": layout.covered_seq,
        "epoch": layout.epoch,
    }


def _stored(lines: Sequence[BlockLine]) -> tuple[int, str, list[tuple[int, float, tuple[int, ...]]]]:
    return len(lines), lines_text([line.text for line in lines]), line_details(lines)


def range_summary_from(row: Row) -> RangeSummary:
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
    return RangeSummary(
        summary_id=summary_id,
        kind=kind,
        start_seq=start,
        end_seq=end,
        message_count=count,
        message_ids=_IDS.decode(ids) if ids else (),
        retention=retention,
        replaced_by=replaced_by,
        started_at=started,
        ended_at=ended,
        text=text,
        token_count=tokens,
        tokenizer=tokenizer,
        created_at=created,
    )


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


def work_state_from(row: Row) -> WorkState:
    session_id, kind, due_at, lease_until, fence, attempts, parked, last_error = row
    return WorkState(
        session_id=session_id,
        kind=kind,
        due_at=due_at,
        lease_until=lease_until,
        fence=fence,
        attempts=attempts,
        parked=bool(parked),
        last_error=last_error,
    )
