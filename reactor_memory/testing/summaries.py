"""Segments, facts, summaries and layouts: what is stored, what a branch shows, what goes when content goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.core.ports import MessageStore, SummaryStore
from reactor_memory.core.ports.requests import SUMMARIZE, ContextQuery
from reactor_memory.errors import SessionDeletedError
from reactor_memory.models import Lease, Session
from reactor_memory.models.block_lines import BlockLine, Layout
from reactor_memory.models.ledger import Fact, Ledger, Segment, Summary, Usage, facts_to_json
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left

MINUTE = 60_000_000
HOUR = 60 * MINUTE


class Store(MessageStore, Protocol):
    """The log, with the store of what is derived from it."""

    @property
    def summaries(self) -> SummaryStore: ...


async def session_of(store: Store, session_id: str) -> Session:
    return (await store.read_background(session_id, limit=1))[0]


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

    async def test_a_load_reads_the_facts_of_the_summary_only_when_asked(self, store: Store) -> None:
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

    async def test_the_head_of_a_summary_is_the_summary_without_its_facts(self, store: Store) -> None:
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

    async def test_what_the_ancestor_seals_later_is_shown_where_the_fork_has_nothing(self, store: Store) -> None:
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
            form="brief",
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


class Invalidation:
    """A message went out of view: what was made from it goes in the same moment."""

    async def sealed(self, store: Store) -> None:
        """s: 1-4 and 5-8 sealed; s~f from 7, its own segment 5-8; s~g from 9; layouts everywhere."""
        await append_messages(store, "s", numbered(8))
        await fork(store, "s", "s~f", 7, own=["f7", "f8"])
        await seal(store, "s", 1, 4)
        await seal(store, "s~f", 5, 8)
        await seal(store, "s", 5, 8)
        await fork(store, "s", "s~g", 9)
        lease = await claimed(store, "s~g")
        summary = replace(folded(await ledger_of(store, "s~g")), covered_seq=8, version=1)
        assert await store.summaries.put_summary(lease, summary)
        await store.summaries.release(lease, due_at=None)
        for session_id in ("s", "s~f", "s~g"):
            await store.summaries.put_layout(session_id, layout(8), budget=0, settings_fingerprint="")

    async def withdraw(self, store: Store, seq: int = 8) -> None:
        """Summaries that are in one database with the log know it by then, and being told again changes nothing."""
        withdrawn = await store.withdraw("s", None, seq=seq, now=wall_clock(), refold=folded)
        await store.summaries.invalidate(withdrawn.gone(), now=wall_clock(), refold=folded)

    async def test_the_segment_loses_its_content_and_keeps_its_borders(self, store: Store) -> None:
        await self.sealed(store)
        await self.withdraw(store)
        ledger = await ledger_of(store, "s")
        assert await borders(store, "s") == [("s", 1, 4), ("s", 5, 8)]
        assert [each.stale for each in ledger.segments] == [False, True]
        assert (ledger.segments[1].narrative, ledger.segments[1].headline) == ("", "")
        assert ledger.segments[0].narrative == "s 1 to 4."
        assert [each.source_seq for each in ledger.facts] == [1, 2, 3, 4]

    async def test_the_summaries_of_all_branches_are_folded_again(self, store: Store) -> None:
        await self.sealed(store)
        untouched = await store.summaries.get_summary("s~f")
        for session_id in ("s", "s~g"):
            before = await store.summaries.get_summary(session_id)
            assert before is not None
            assert "value 8" in before.facts_json
        versions = {session_id: (await self.summary(store, session_id)).version for session_id in ("s", "s~g")}
        await self.withdraw(store)
        for session_id in ("s", "s~g"):
            summary = await self.summary(store, session_id)
            assert (summary.narrative, summary.stale_ranges) == ("s 1 to 4.", ((5, 8),))
            assert [each.source_seq for each in summary.facts()] == [1, 2, 3, 4]
            assert (summary.covered_seq, summary.epoch) == (8, 1)
            assert summary.version == versions[session_id] + 1
        assert await store.summaries.get_summary("s~f") == untouched

    async def summary(self, store: Store, session_id: str) -> Summary:
        summary = await store.summaries.get_summary(session_id)
        assert summary is not None
        return summary

    async def test_a_load_never_shows_the_old_summary(self, store: Store) -> None:
        await self.sealed(store)
        await self.withdraw(store)
        rows = await store.read_context(
            ContextQuery(session_id="s~g", user_id=None, last_count=8, trigger_message_count=20, facts=True)
        )
        assert isinstance(rows.summary, Summary)
        assert "value 8" not in rows.summary.facts_json
        assert [message.seq for message in rows.messages] == list(range(1, 8))

    async def test_layouts_of_these_branches_go(self, store: Store) -> None:
        await self.sealed(store)
        await self.withdraw(store)
        found = {
            session_id: await store.summaries.get_layout(session_id, budget=0, settings_fingerprint="")
            for session_id in ("s", "s~f", "s~g")
        }
        assert found == {"s": None, "s~f": layout(8), "s~g": None}

    async def test_the_work_becomes_due(self, store: Store) -> None:
        await self.sealed(store)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock() + HOUR))[SUMMARIZE] == ()
        await self.withdraw(store)
        assert set((await store.summaries.due([SUMMARIZE], now=wall_clock() + HOUR))[SUMMARIZE]) == {"s", "s~g"}

    async def test_a_worker_that_read_the_message_cannot_write(self, store: Store) -> None:
        await self.sealed(store)
        leases = {session_id: await claimed(store, session_id) for session_id in ("s", "s~f", "s~g")}
        await self.withdraw(store)
        for session_id, lease in leases.items():
            summary = await self.summary(store, session_id)
            follows = replace(summary, version=summary.version + 1)
            assert await store.summaries.put_summary(lease, follows) == (session_id == "s~f")

    async def test_a_worker_cannot_seal_a_message_that_was_not_covered_yet(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lease = await claimed(store, "s")
        await self.withdraw(store, 4)
        assert not await store.summaries.record_segment(
            lease, segment("s", 1, 4), [fact(4)], Summary(covered_seq=4, version=1)
        )
        assert not await store.summaries.renew(lease, now=wall_clock(), lease_microseconds=MINUTE)
        assert await claimed(store, "s")

    async def test_what_was_not_covered_leaves_the_summary_alone(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        summary = await seal(store, "s", 1, 4)
        await self.withdraw(store, 6)
        assert await store.summaries.get_summary("s") == summary
        assert [each.stale for each in (await ledger_of(store, "s")).segments] == [False]

    async def test_twice_changes_nothing(self, store: Store) -> None:
        await self.sealed(store)
        withdrawn = await store.withdraw("s", None, seq=8, now=wall_clock(), refold=folded)
        await store.summaries.invalidate(withdrawn.gone(), now=wall_clock(), refold=folded)
        before = [(await store.summaries.get_summary(each), await ledger_of(store, each)) for each in ("s", "s~g")]
        for _ in range(2):
            await store.summaries.invalidate(withdrawn.gone(), now=wall_clock(), refold=nothing_left)
        assert [
            (await store.summaries.get_summary(each), await ledger_of(store, each)) for each in ("s", "s~g")
        ] == before

    async def test_a_second_message_of_a_stale_segment(self, store: Store) -> None:
        await self.sealed(store)
        await self.withdraw(store, 8)
        before = await store.summaries.get_summary("s")
        await self.withdraw(store, 7)
        assert await store.summaries.get_summary("s") == before

    async def test_a_stale_segment_is_replaced(self, store: Store) -> None:
        await self.sealed(store)
        await self.withdraw(store)
        stored = await self.summary(store, "s")
        again = segment("s", 5, 8, narrative="Without the last.")
        summary = replace(stored, narrative="Whole again.", stale_ranges=(), version=stored.version + 1)
        assert await store.summaries.record_segment(await claimed(store, "s"), again, [fact(5)], summary)
        ledger = await ledger_of(store, "s")
        assert ledger.segments[1] == again
        assert [each.source_seq for each in ledger.facts] == [1, 2, 3, 4, 5]
        assert await store.summaries.get_summary("s") == summary

    async def test_a_summary_without_segments_is_folded_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        full = Summary(narrative="All of it.", covered_seq=4, version=1)
        assert await store.summaries.put_summary(await claimed(store, "s"), full)
        await self.withdraw(store, 4)
        summary = await self.summary(store, "s")
        assert (summary.narrative, summary.covered_seq) == ("", 4)
        assert summary.version > full.version
        assert summary.epoch > full.epoch
        assert summary.stale_ranges == ((1, 4),)

    async def test_a_segment_of_a_fork_that_begins_before_the_fork(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await fork(store, "s", "s~f", 7, own=["f7", "f8"])
        await seal(store, "s~f", 1, 8)
        await self.withdraw(store, 6)
        assert [each.stale for each in (await ledger_of(store, "s~f")).segments] == [True]
        assert (await ledger_of(store, "s~f")).facts == ()
        assert (await self.summary(store, "s~f")).epoch == 1


class Forgetting:
    """What is derived goes with its conversation, and does not come back."""

    async def filled(self, store: Store) -> Lease:
        """s with a segment, a summary, a layout and a lease that is out; t and s~f likewise, to be left alone."""
        await append_messages(store, "s", numbered(8), work_every=4)
        await append_messages(store, "t", numbered(8))
        await fork(store, "s", "s~f", 5, own=["own"] * 4)
        for session_id in ("s", "s~f", "t"):
            await seal(store, session_id, 1, 4)
            await store.summaries.put_layout(session_id, layout(8), budget=0, settings_fingerprint="")
        return await claimed(store, "s")

    async def assert_forgotten(self, store: Store, session_id: str, branch: Session) -> None:
        assert await store.summaries.get_summary(session_id) is None
        assert await store.summaries.get_layout(session_id, budget=0, settings_fingerprint="") is None
        assert await store.summaries.read_ledger(session_id, branch.branch) == Ledger()

    async def test_forgotten_means_gone_from_every_place(self, store: Store) -> None:
        await self.filled(store)
        await store.summaries.forget(["s", "unknown"])
        await self.assert_forgotten(store, "s", await session_of(store, "s"))
        assert await store.summaries.get_summary("t") is not None
        assert await borders(store, "t") == [("t", 1, 4)]
        assert await store.summaries.get_layout("t", budget=0, settings_fingerprint="") == layout(8)

    async def test_a_late_writer_cannot_bring_it_back(self, store: Store) -> None:
        late = await self.filled(store)
        await store.summaries.forget(["s"])
        branch = await session_of(store, "s")
        for _ in range(3):
            summary = Summary(covered_seq=8, version=1)
            assert not await store.summaries.record_segment(late, segment("s", 5, 8), [fact(5)], summary)
            assert not await store.summaries.put_summary(late, summary)
            await self.assert_forgotten(store, "s", branch)
            assert (await claimed(store, "s", lease_microseconds=1)).fence > late.fence
            await anyio.sleep(0.001)

    @pytest.mark.parametrize("purge", [True, False])
    async def test_nothing_is_stored_for_a_deleted_session(self, store: Store, purge: bool) -> None:
        lease = await self.filled(store)
        await store.delete("s", None, now=wall_clock(), purge=purge)
        summary = Summary(covered_seq=8, version=2)
        assert not await store.summaries.record_segment(lease, segment("s", 5, 8), [fact(5)], summary)
        assert not await store.summaries.put_summary(lease, summary)
        await store.summaries.put_layout("s", layout(20), budget=0, settings_fingerprint="")
        assert await store.summaries.get_layout("s", budget=0, settings_fingerprint="") != layout(20)
        with pytest.raises(SessionDeletedError):
            await store.read_context(ContextQuery(session_id="s", user_id=None, last_count=1))

    async def test_a_deleted_session_has_no_work(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4), work_every=4)
        await append_messages(store, "t", numbered(4), work_every=4)
        await store.delete("s", None, now=wall_clock(), purge=False)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock() + HOUR))[SUMMARIZE] == ("t",)

    async def test_a_purge_takes_what_is_derived_along(self, store: Store) -> None:
        await self.filled(store)
        branch = await session_of(store, "s")
        gone = await store.delete("s", None, now=wall_clock(), purge=True)
        await store.summaries.forget(gone)
        for session_id in ("s", "s~f"):
            await self.assert_forgotten(store, session_id, branch)
        assert await store.summaries.get_summary("t") is not None

    async def test_a_late_purge_takes_what_is_derived_along(self, store: Store) -> None:
        await self.filled(store)
        branch = await session_of(store, "s")
        await store.delete("s", None, now=1_000, purge=False)
        assert await store.purge_deleted(before=2_000) == 2
        for session_id in ("s", "s~f"):
            await self.assert_forgotten(store, session_id, branch)
