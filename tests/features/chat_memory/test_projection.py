"""What a conversation shows of messages and summaries."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.chat_memory.projection import gaps, merged, metadata_of, summary_message
from reactor_memory.models import Message
from reactor_memory.models.ledger import RangeSummary


def summary(start: int, end: int, time: int = 0) -> RangeSummary:
    return RangeSummary(
        summary_id=f"{start}-{end}",
        kind="summary",
        start_seq=start,
        end_seq=end,
        message_count=end - start + 1,
        message_ids=("a", "b"),
        text=f"of {start} to {end}",
        token_count=1,
        tokenizer="t",
        started_at=1,
        ended_at=time,
        created_at=99,
    )


@st.composite
def disjoint(draw: st.DrawFn) -> list[RangeSummary]:
    borders = sorted(draw(st.sets(st.integers(1, 40), max_size=10)))
    return [summary(start, end - 1) for start, end in zip(borders[::2], borders[1::2], strict=False)]


def test_the_links_go_both_ways() -> None:
    one = summary(3, 5, time=7)
    message, record = summary_message(one), metadata_of("c", one)
    assert message.metadata == {"summaryMetadataId": record.metadata_id}
    assert record.summary_message_id == message.message_id
    assert record.summarized_message_ids == ("a", "b")
    assert (message.role, message.created_at, record.timestamp_range.end) == ("summary", 7, 7)


@given(disjoint())
def test_gaps_and_summaries_hold_each_message_once(summaries: list[RangeSummary]) -> None:
    held = [seq for each in summaries for seq in range(each.start_seq, each.end_seq + 1)]
    held += [seq for after, until in gaps(summaries) for seq in range(after + 1, (until or 50) + 1)]
    assert sorted(held) == list(range(1, 51))


@given(disjoint(), st.integers(0, 60) | st.none(), st.integers(0, 60) | st.none())
def test_entries_are_in_order_and_the_newest_of_all(
    summaries: list[RangeSummary], limit: int | None, before: int | None
) -> None:
    messages = [Message.user("x", seq=seq, created_at=seq) for seq in range(1, 41)]
    timed = [summary(each.start_seq, each.end_seq, each.end_seq) for each in summaries]
    shown = merged(reversed(messages), timed, before=before, limit=limit)
    everything = merged(messages, timed, before=None, limit=None)
    assert len(everything) == 40 + len(timed)
    times = [message.created_at or 0 for message in everything]
    assert times == sorted(times)
    earlier: Sequence[Message] = [m for m in everything if before is None or (m.created_at or 0) < before]
    assert list(shown) == (list(earlier) if limit is None else list(earlier)[max(0, len(earlier) - limit) :])
    for each in timed:
        place = [message.message_id for message in everything].index(each.summary_id)
        assert everything[place - 1].seq == each.end_seq
