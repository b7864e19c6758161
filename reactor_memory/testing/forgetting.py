"""Summaries when messages are withdrawn and sessions deleted: a part of the suite of summary stores."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.errors import SessionDeletedError
from reactor_memory.features.facts.working_state import StateItem, fact_of
from reactor_memory.models import Session
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Ledger, Summary
from reactor_memory.models.requests import SUMMARIZE, ContextQuery, ErasedBranch
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left
from reactor_memory.testing.summary_recording import (
    HOUR,
    MINUTE,
    Store,
    borders,
    claimed,
    fact,
    folded,
    layout,
    ledger_of,
    seal,
    segment,
    session_of,
)


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

    async def test_items_go_with_all_messages_they_rest_on(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        item = fact_of(StateItem("6a", "open", "the rest", 2, 6))
        await seal(store, "s", 1, 4)
        await seal(store, "s", 5, 8, [fact(5), item])
        branch = ErasedBranch(session=await session_of(store, "s"), ranges=((2, 2),))
        await store.summaries.invalidate([branch], now=wall_clock(), refold=folded)
        assert [each.source_seq for each in (await ledger_of(store, "s")).facts] == [5]

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

    async def test_a_worker_cannot_seal_a_message_not_yet_covered(self, store: Store) -> None:
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
