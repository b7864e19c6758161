"""Segments, facts, summaries and layouts: what is stored, what a branch shows, what goes when content goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import anyio
from msgspec.structs import replace

from reactor_memory.core.ports import MessageStore, SummaryStore
from reactor_memory.models import Session
from reactor_memory.models.block_lines import BlockLine, Layout
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Fact, Ledger, SealedSegment, Segment, Summary, Usage, facts_to_json
from reactor_memory.models.requests import SUMMARIZE, ContextQuery
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock

MINUTE = 60_000_000
HOUR = 60 * MINUTE


class Store(MessageStore, Protocol):
    """The log, with the store of what is derived from it."""

    @property
    def summaries(self) -> SummaryStore: ...


async def session_of(store: Store, session_id: str) -> Session:
    return (await store.read_background(session_id, limit=1)).session


async def ledger_of(store: Store, session_id: str) -> Ledger:
    return await store.summaries.read_ledger(session_id, (await session_of(store, session_id)).branch)


async def borders(store: Store, session_id: str) -> list[tuple[str, int, int]]:
    ledger = await ledger_of(store, session_id)
    return [(segment.conversation_id, segment.start_seq, segment.end_seq) for segment in ledger.segments]


async def claimed(store: Store, session_id: str, lease_microseconds: int = MINUTE) -> Lease:
    """A new lease; the one that is out, if any, must have expired."""
    lease = await store.summaries.claim(session_id, SUMMARIZE, now=wall_clock(), lease_microseconds=lease_microseconds)
    assert lease is not None
    return lease


def segment(owner: str, start: int, end: int, *, narrative: str | None = None) -> Segment:
    return Segment(
        conversation_id=owner,
        start_seq=start,
        end_seq=end,
        source_hash=f"hash of {start} to {end}",
        summarizer="scripted",
        prompt_version="1",
        narrative=f"{owner} {start} to {end}." if narrative is None else narrative,
        headline=f"headline {start}",
        usage=Usage(tokens_read=100, tokens_written=10),
        created_at=1_000,
    )


def fact(seq: int, *, key: str = "key", anchor: str = "user") -> Fact:
    return Fact(anchor=anchor, key=key, value=f"value {seq}", source_seq=seq, span=(0, 7))


def folded(ledger: Ledger) -> Summary:
    """A fold that shows what it was made from. It forgets `covered_seq`, which is the store's to keep."""
    stale = tuple((each.start_seq, each.end_seq) for each in ledger.segments if each.stale)
    narrative = " ".join(each.narrative for each in ledger.segments if each.narrative)
    return Summary(narrative=narrative, facts_json=facts_to_json(ledger.facts), stale_ranges=stale)


async def seal(store: Store, owner: str, start: int, end: int, facts: Sequence[Fact] | None = None) -> Summary:
    """Record a segment under a lease of its own, with a summary that covers it; by default a fact of every message."""
    lease = await claimed(store, owner)
    found = tuple(fact(seq) for seq in range(start, end + 1)) if facts is None else tuple(facts)
    known = await ledger_of(store, owner)
    new = segment(owner, start, end)
    before = await store.summaries.get_summary(owner) or Summary()
    whole = Ledger(segments=(*known.segments, new), facts=(*known.facts, *found))
    summary = replace(
        folded(whole), covered_seq=end, version=before.version + 1, epoch=before.epoch, created_at=1, updated_at=2
    )
    assert await store.summaries.record_segment(lease, new, found, summary)
    await store.summaries.release(lease, due_at=None)
    return summary


FULL_FACT = Fact(
    anchor="reserve_restaurant #2",
    key="caf\u00e9 \U0001f600",
    value='a "value"\n{} \u2028',
    category="DECISION",
    source_seq=7,
    span=(3, 12),
    said_by="tool",
    act="correction",
    failed=True,
    verified=True,
    salience=70,
)

FULL_SUMMARY = Summary(
    narrative="It was said.\nThen \U0001f600.",
    facts_json=facts_to_json((FULL_FACT,)),
    spare_json=facts_to_json((replace(FULL_FACT, anchor="spare"),)),
    lines_json='{"made_from":0,"lines":[]}',
    covered_seq=4,
    version=1,
    truncated=True,
    stale_ranges=((1, 2), (3, 4)),
    created_at=1_000,
    updated_at=2_000,
)


class Recording:
    """Segments and summaries: stored in one transaction, refused when late."""

    async def test_there_is_no_summary_yet(self, store: Store) -> None:
        assert await store.summaries.get_summary("unknown") is None
        await append_messages(store, "s", numbered(4))
        assert await store.summaries.get_summary("s") is None
        assert await ledger_of(store, "s") == Ledger()

    async def test_everything_comes_back_unchanged(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        new, facts = segment("s", 1, 4), (FULL_FACT, fact(2), fact(1))
        assert await store.summaries.record_segment(await claimed(store, "s"), new, facts, FULL_SUMMARY)
        assert await ledger_of(store, "s") == Ledger(segments=(new,), facts=facts)
        assert await store.summaries.get_summary("s") == FULL_SUMMARY

    async def test_a_load_reads_facts_of_the_summary_when_asked(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await fork(store, "s", "s~f", 5)
        query = ContextQuery(session_id="s", user_id=None, last_count=2, trigger_message_count=20)
        for session_id in ("s", "s~f"):
            query = replace(query, session_id=session_id, facts=True)
            assert (await store.read_context(query)).summary is None
            assert await store.summaries.put_summary(await claimed(store, session_id), FULL_SUMMARY)
            rows = await store.read_context(query)
            assert rows.summary == FULL_SUMMARY
            without = await store.read_context(replace(query, facts=False))
            assert without.summary == FULL_SUMMARY.head
            assert without.messages == rows.messages
            assert without.messages[-1].seq == (10 if session_id == "s" else 4)

    async def test_the_head_of_a_summary_is_it_without_facts(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        assert await store.summaries.get_summary_head("s") is None
        assert await store.summaries.put_summary(await claimed(store, "s"), FULL_SUMMARY)
        assert await store.summaries.get_summary_head("s") == FULL_SUMMARY.head

    async def test_a_summary_belongs_to_one_session(self, store: Store) -> None:
        for session_id in ("s", "t"):
            await append_messages(store, session_id, numbered(4))
        await fork(store, "s", "s~f", 5)
        summary = await seal(store, "s", 1, 4)
        assert await store.summaries.get_summary("s") == summary
        assert await store.summaries.get_summary("t") is None
        assert await store.summaries.get_summary("s~f") is None

    async def test_segments_and_facts_are_oldest_first(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        for start in (1, 5, 9):
            await seal(store, "s", start, start + 3, [fact(start, key=key) for key in ("b", "a", "c")])
        ledger = await ledger_of(store, "s")
        assert [each.start_seq for each in ledger.segments] == [1, 5, 9]
        assert [(each.source_seq, each.key) for each in ledger.facts] == [
            (start, key) for start in (1, 5, 9) for key in ("b", "a", "c")
        ]

    async def test_a_segment_without_facts(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await seal(store, "s", 1, 4, [])
        assert (await ledger_of(store, "s")).facts == ()

    async def refused(self, store: Store, lease: Lease, summary: Summary) -> None:
        """Nothing is stored, neither with a segment nor without."""
        before = (await store.summaries.get_summary("s"), await ledger_of(store, "s"))
        assert not await store.summaries.put_summary(lease, summary)
        assert not await store.summaries.record_segment(lease, segment("s", 5, 8), [fact(5)], summary)
        assert (await store.summaries.get_summary("s"), await ledger_of(store, "s")) == before

    async def test_a_late_writer_is_refused(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await seal(store, "s", 1, 4)
        late = await claimed(store, "s", lease_microseconds=1)
        newest = await store.summaries.claim("s", SUMMARIZE, now=wall_clock() + HOUR, lease_microseconds=MINUTE)
        assert newest is not None
        assert newest.fence > late.fence
        await self.refused(store, late, Summary(covered_seq=8, version=2))
        assert await store.summaries.put_summary(newest, Summary(covered_seq=8, version=2))

    async def test_an_expired_lease_that_nobody_took_still_writes(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        lease = await claimed(store, "s", lease_microseconds=1)
        assert await store.summaries.record_segment(lease, segment("s", 1, 4), [], Summary(covered_seq=4, version=1))

    async def test_a_fence_that_was_never_given_is_refused(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await seal(store, "s", 1, 4)
        lease = await claimed(store, "s")
        for forged in (replace(lease, fence=lease.fence + 1), replace(lease, kind="other")):
            await self.refused(store, forged, Summary(covered_seq=8, version=2))

    async def test_a_summary_does_not_go_back(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await seal(store, "s", 1, 4)
        lease = await claimed(store, "s")
        for covered, version in ((3, 2), (8, 0), (8, 1), (8, 3)):
            await self.refused(store, lease, Summary(covered_seq=covered, version=version))
        assert await store.summaries.put_summary(lease, Summary(covered_seq=4, version=2))

    async def test_the_first_summary_has_version_one(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        lease = await claimed(store, "s")
        for version in (0, 2):
            assert not await store.summaries.put_summary(lease, Summary(covered_seq=4, version=version))
        assert await store.summaries.put_summary(lease, Summary(covered_seq=4, version=1))

    async def test_a_segment_that_is_not_stale_is_not_replaced(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await seal(store, "s", 1, 4)
        before = (await store.summaries.get_summary("s"), await ledger_of(store, "s"))
        again = segment("s", 1, 4, narrative="Another story.")
        lease = await claimed(store, "s")
        assert not await store.summaries.record_segment(lease, again, [], Summary(covered_seq=4, version=2))
        assert (await store.summaries.get_summary("s"), await ledger_of(store, "s")) == before

    async def test_earlier_segments_are_stored_with_the_last_or_never(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        new, last = (SealedSegment(segment=segment("s", end - 3, end), facts=(fact(end),)) for end in (4, 8))
        lease, summary = await claimed(store, "s"), Summary(covered_seq=8, version=1)
        assert await store.summaries.record_segment(lease, last.segment, last.facts, summary, earlier=[new])
        ledger = await ledger_of(store, "s")
        assert ledger.segments == (new.segment, last.segment)
        assert ledger.facts == (*new.facts, *last.facts)
        late, again = segment("s", 9, 12), Summary(covered_seq=12, version=2)
        assert not await store.summaries.record_segment(lease, late, (fact(12),), again, earlier=[new])
        assert await ledger_of(store, "s") == ledger

    async def test_of_many_writers_with_one_lease_one_wins(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        lease = await claimed(store, "s")
        stored: list[bool] = []

        async def record(number: int) -> None:
            summary = Summary(narrative=str(number), covered_seq=4, version=1)
            stored.append(await store.summaries.record_segment(lease, segment("s", 1, 4), [fact(number)], summary))

        async with anyio.create_task_group() as tasks:
            for number in range(1, 5):
                tasks.start_soon(record, number)
        assert stored.count(True) == 1
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert [str(each.source_seq) for each in (await ledger_of(store, "s")).facts] == [summary.narrative]

    async def test_an_append_leaves_summaries_alone(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        summary = await seal(store, "s", 1, 4)
        await append_messages(store, "s", numbered(4))
        assert await store.summaries.get_summary("s") == summary


class LedgerOfForks:
    """A fork shows what its ancestors sealed before the fork, and then its own."""

    async def test_inherited_segments_end_before_the_fork(self, store: Store) -> None:
        await append_messages(store, "s", numbered(20))
        for start in (1, 5, 9, 13):
            await seal(store, "s", start, start + 3)
        await fork(store, "s", "s~inside", 11)
        await fork(store, "s", "s~border", 9)
        await fork(store, "s", "s~first", 1)
        assert await borders(store, "s~inside") == [("s", 1, 4), ("s", 5, 8)]
        assert await borders(store, "s~border") == [("s", 1, 4), ("s", 5, 8)]
        assert await borders(store, "s~first") == []
        facts = (await ledger_of(store, "s~inside")).facts
        assert [each.source_seq for each in facts] == [1, 2, 3, 4, 5, 6, 7, 8]

    async def test_a_segment_of_the_fork_may_begin_before_the_fork(self, store: Store) -> None:
        await append_messages(store, "s", numbered(20))
        await seal(store, "s", 1, 4)
        await fork(store, "s", "s~f", 7, own=["own"] * 6)
        await seal(store, "s~f", 5, 10)
        assert await borders(store, "s~f") == [("s", 1, 4), ("s~f", 5, 10)]
        assert [each.source_seq for each in (await ledger_of(store, "s~f")).facts] == list(range(1, 11))

    async def test_what_the_ancestor_seals_later_is_not_shown_twice(self, store: Store) -> None:
        await append_messages(store, "s", numbered(20))
        await seal(store, "s", 1, 4)
        await fork(store, "s", "s~f", 7, own=["own"] * 6)
        await seal(store, "s~f", 5, 10)
        await seal(store, "s", 5, 6)
        await seal(store, "s", 7, 12)
        assert await borders(store, "s") == [("s", 1, 4), ("s", 5, 6), ("s", 7, 12)]
        assert await borders(store, "s~f") == [("s", 1, 4), ("s~f", 5, 10)]

    async def test_ancestors_later_seals_are_shown_where_the_fork_has_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(20))
        await fork(store, "s", "s~f", 10)
        assert await borders(store, "s~f") == []
        await seal(store, "s", 1, 4)
        await seal(store, "s", 5, 8)
        await seal(store, "s", 9, 12)
        assert await borders(store, "s~f") == [("s", 1, 4), ("s", 5, 8)]

    async def test_what_a_fork_seals_stays_its_own(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 3, own=["own"] * 4)
        await seal(store, "s~f", 1, 6)
        assert await borders(store, "s") == []
        await fork(store, "s", "s~g", 3)
        assert await borders(store, "s~g") == []

    async def test_the_ledger_of_a_fork_of_a_fork(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        await seal(store, "s", 1, 4)
        await fork(store, "s", "s~a", 7, own=["a"] * 10)
        await seal(store, "s~a", 5, 8)
        await seal(store, "s~a", 9, 12)
        await fork(store, "s~a", "s~b", 11, own=["b"] * 4)
        assert await borders(store, "s~b") == [("s", 1, 4), ("s~a", 5, 8)]
        await seal(store, "s~b", 9, 13)
        assert await borders(store, "s~b") == [("s", 1, 4), ("s~a", 5, 8), ("s~b", 9, 13)]
        assert await borders(store, "s~a") == [("s", 1, 4), ("s~a", 5, 8), ("s~a", 9, 12)]


def layout(seq: int, **fields: object) -> Layout:
    return replace(
        Layout(
            seq=seq,
            window_start_seq=5,
            fact_lines=(BlockLine(text="user: \U0001f600", tokens=3, value=1.5, source_seqs=(1, 2)),),
            narrative=(BlockLine(text="It was said.", tokens=4),),
            floor=(1.5, 2),
            fact_tokens=30,
            narrative_tokens=31,
            left_out=2,
            covered_seq=4,
        ),
        **fields,
    )


class Layouts:
    """Where windows start: per session, budget and settings; the higher seq wins, then what covers more."""

    async def put(self, store: Store, new: Layout, session_id: str = "s", budget: int = 0, settings: str = "") -> None:
        await store.summaries.put_layout(session_id, new, budget=budget, settings_fingerprint=settings)

    async def get(self, store: Store, session_id: str = "s", budget: int = 0, settings: str = "") -> Layout | None:
        """The layout, which a load must read as well."""
        found = await store.summaries.get_layout(session_id, budget=budget, settings_fingerprint=settings)
        query = ContextQuery(
            session_id=session_id,
            user_id=None,
            last_count=1,
            trigger_message_count=20,
            budget=budget,
            settings_fingerprint=settings,
        )
        assert (await store.read_context(query)).layout == found
        return found

    async def test_a_layout_comes_back_unchanged(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        assert await self.get(store) is None
        await self.put(store, layout(10))
        assert await self.get(store) == layout(10)

    async def test_the_higher_seq_wins(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        for seq, expected in ((8, 8), (10, 10), (9, 10), (2, 10), (12, 12)):
            await self.put(store, layout(seq, window_start_seq=seq))
            assert await self.get(store) == layout(expected, window_start_seq=expected)

    async def test_of_the_same_seq_the_one_that_covers_more_wins(self, store: Store) -> None:
        """What was laid out while the summary was behind is laid out again, and must not be for every load."""
        await append_messages(store, "s", numbered(10))
        for covered, expected in ((4, 4), (8, 8), (6, 8)):
            await self.put(store, layout(10, covered_seq=covered))
            assert await self.get(store) == layout(10, covered_seq=expected)

    async def test_budgets_settings_and_sessions_have_their_own(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await append_messages(store, "t", numbered(10))
        keys = [("s", 0, ""), ("s", 4000, ""), ("s", 0, "a"), ("s", 4000, "a"), ("t", 0, "")]
        for seq, (session_id, budget, settings) in enumerate(keys, start=1):
            await self.put(store, layout(seq), session_id, budget, settings)
        for seq, (session_id, budget, settings) in enumerate(keys, start=1):
            assert await self.get(store, session_id, budget, settings) == layout(seq)
        assert await self.get(store, "t", 4000) is None

    async def test_of_an_unknown_session_nothing_is_kept(self, store: Store) -> None:
        await self.put(store, layout(10))
        await append_messages(store, "s", numbered(1))
        assert await self.get(store) is None

    async def test_another_epoch_is_not_kept(self, store: Store) -> None:
        await append_messages(store, "s", numbered(10))
        await self.put(store, layout(10, epoch=1))
        assert await self.get(store) is None
        await seal(store, "s", 1, 10)
        withdrawn = await store.withdraw("s", None, seq=10, now=wall_clock(), refold=folded)
        await store.summaries.invalidate(withdrawn.gone(), now=wall_clock(), refold=folded)
        await self.put(store, layout(10, epoch=0))
        assert await self.get(store) is None
        await self.put(store, layout(10, epoch=1))
        assert await self.get(store) == layout(10, epoch=1)
