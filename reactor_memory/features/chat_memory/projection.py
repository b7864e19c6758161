"""What a conversation shows, made of the log and of the texts that stand for ranges of it. Pure.

A summary is no message of the log. It is shown behind the last message of its range, at the time of the newest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from reactor_memory.models import Message, Value
from reactor_memory.models.ledger import RangeSummary

View: TypeAlias = Literal["full", "effective", "originals"]
"""``full``: what is in view and every summary. ``effective``: summaries hide what they stand for. ``originals``: the
messages themselves, archived ones too, and no summary.
"""

SUMMARY_METADATA_ID = "summaryMetadataId"
"""The key in the metadata of a summary message that leads to its `SummarizationMetadata`."""


class TimestampRange(Value, frozen=True, kw_only=True):
    """The times of the oldest and the newest message, in microseconds UTC."""

    start: int
    end: int


class SummarizationMetadata(Value, frozen=True, kw_only=True):
    """What a summary stands for. One row of the store is the record and the summary message, so neither can be without
    the other, and both have the same id.

    `summarized_message_ids` are the messages that the text was made of. `retention` is what became of them.
    """

    metadata_id: str
    conversation_id: str
    summary_message_id: str
    summarized_message_ids: tuple[str, ...]
    timestamp_range: TimestampRange
    retention: str
    created_at: int


def summary_message(summary: RangeSummary) -> Message:
    return Message(
        role="summary",
        content=summary.text,
        metadata={SUMMARY_METADATA_ID: summary.summary_id},
        created_at=summary.ended_at,
        message_id=summary.summary_id,
        token_count=summary.token_count,
        tokenizer=summary.tokenizer,
    )


def metadata_of(conversation_id: str, summary: RangeSummary) -> SummarizationMetadata:
    return SummarizationMetadata(
        metadata_id=summary.summary_id,
        conversation_id=conversation_id,
        summary_message_id=summary.summary_id,
        summarized_message_ids=summary.message_ids,
        timestamp_range=TimestampRange(start=summary.started_at, end=summary.ended_at),
        retention=summary.retention,
        created_at=summary.created_at,
    )


def gaps(summaries: Sequence[RangeSummary]) -> list[tuple[int, int | None]]:
    """The ranges (after, until) of the log for which no summary stands, oldest first; the last one is open."""
    after = 0
    found: list[tuple[int, int | None]] = []
    for summary in sorted(summaries, key=lambda each: each.start_seq):
        if summary.start_seq - 1 > after:
            found.append((after, summary.start_seq - 1))
        after = max(after, summary.end_seq)
    return [*found, (after, None)]


def is_before(message: Message, before: int | None) -> bool:
    return before is None or (message.created_at or 0) < before


def merged(
    messages: Iterable[Message], summaries: Iterable[RangeSummary], *, before: int | None, limit: int | None
) -> tuple[Message, ...]:
    """The newest `limit` entries from before the time `before`, oldest first, by their places in the log."""
    placed = [((message.seq or 0, 0), message) for message in messages]
    placed += [((summary.end_seq, 1), summary_message(summary)) for summary in summaries]
    entries = [entry for _, entry in sorted(placed, key=lambda each: each[0]) if is_before(entry, before)]
    return tuple(entries if limit is None else entries[len(entries) - min(limit, len(entries)) :])
