"""What people fix of facts: kept with the session, applied by every fold, gone with what it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from reactor_memory.core.context.withheld import NOTHING_WITHHELD, Withheld
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.amendments import SqlAmendments
from reactor_memory.features.facts.mutes import set_mute
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.models import Session
from reactor_memory.models.ledger import FactCorrection, Ledger, Summary
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, pin_of, wall_clock
from reactor_memory.testing.summary_recording import (
    Store,
    claimed,
    fact,
    folded,
    layout,
    ledger_of,
    seal,
    segment,
    session_of,
)


def amending(ledger: Ledger) -> Summary:
    """As `folded`, with the corrections."""
    return folded(replace(ledger, facts=amended(ledger.facts, ledger.corrections)))


@dataclass
class Said:
    """Puts corrections of the fact (user, key) of message 2."""

    store: Store
    made: list[FactCorrection] = field(default_factory=list[FactCorrection])

    async def __call__(
        self, session_id: str, value: str | None, *, source: int = 2, session: Session | None = None
    ) -> bool:
        own = session or await session_of(self.store, session_id)
        correction = FactCorrection(
            anchor="user", key="key", value=value, seq=own.last_seq, source_seq=source, author_id="u", created_at=7
        )
        return await self.store.database.write(
            fact_operations.put_correction, own, correction, now=wall_clock(), refold=amending
        )


async def stated(store: Store) -> Said:
    """s: 1-4 sealed with two facts, 5-8 not."""
    await append_messages(store, "s", numbered(8))
    await seal(store, "s", 1, 4, [replace(fact(2), verified=True), replace(fact(3, key="other"), verified=True)])
    return Said(store)


async def withheld_in(store: Store, session_id: str) -> Withheld:
    return await SqlAmendments(store.database).read_withheld((await session_of(store, session_id)).branch)


class Corrections:
    """A person says what a fact is."""

    async def test_it_is_kept_in_order_and_summary_follows_at_once(self, store: Store) -> None:
        say = await stated(store)
        await store.summaries.put_layout("s", layout(8), budget=0, settings_fingerprint="")
        assert await say("s", "first")
        assert await say("s", None)
        assert await say("s", "caf\u00e9 \U0001f600")
        kept = await store.database.read(fact_operations.read_corrections, "s")
        assert [(each.ordinal, each.value) for each in kept] == [(1, "first"), (2, None), (3, "caf\u00e9 \U0001f600")]
        assert (kept[0].seq, kept[0].source_seq, kept[0].author_id, kept[0].created_at) == (8, 2, "u", 7)
        assert (await ledger_of(store, "s")).corrections == kept
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert (summary.version, summary.epoch, summary.covered_seq) == (4, 3, 4)
        values = {each.key: (each.value, each.amended) for each in summary.facts()}
        assert values == {"key": ("caf\u00e9 \U0001f600", True), "other": ("value 3", False)}
        assert await store.summaries.get_layout("s", budget=0, settings_fingerprint="") is None

    async def test_facts_about_an_anchor_are_as_they_were_corrected(self, store: Store) -> None:
        say = await stated(store)
        branch = (await session_of(store, "s")).branch
        await say("s", "right")
        about = await store.summaries.read_facts_about("s", branch, ["user"])
        assert {each.key: each.value for each in about} == {"key": "right", "other": "value 3"}
        await say("s", None)
        assert [each.key for each in await store.summaries.read_facts_about("s", branch, ["user"])] == ["other"]
        assert await store.summaries.read_facts_about("s", branch, ["else"]) == ()

    async def test_a_fork_takes_along_what_was_said_before_it(self, store: Store) -> None:
        say = await stated(store)
        await say("s", "before")
        await fork(store, "s", "s~f", 9)
        await fork(store, "s", "s~early", 8)
        await say("s", "after")
        assert [each.value for each in await store.database.read(fact_operations.read_corrections, "s~f")] == ["before"]
        assert await store.database.read(fact_operations.read_corrections, "s~early") == ()
        branch = (await session_of(store, "s~f")).branch
        about = await store.summaries.read_facts_about("s~f", branch, ["user"])
        assert {each.key: each.value for each in about} == {"key": "before", "other": "value 3"}
        assert await say("s~f", "own")
        assert [
            (each.ordinal, each.value) for each in await store.database.read(fact_operations.read_corrections, "s~f")
        ] == [
            (1, "before"),
            (2, "own"),
        ]

    async def test_what_is_withheld_is_read_with_its_turns(self, store: Store) -> None:
        say = await stated(store)
        assert await withheld_in(store, "s") == NOTHING_WITHHELD
        await say("s", None)
        (statement,) = (await withheld_in(store, "s")).statements
        shown = (statement.seq, statement.value, statement.answered_seq, statement.until_seq)
        assert shown == (2, "value 2", 2, 8)
        await fork(store, "s", "s~f", 9)
        assert await withheld_in(store, "s~f") == await withheld_in(store, "s")
        await say("s", "value 2")
        assert await withheld_in(store, "s") == NOTHING_WITHHELD

    async def test_what_is_muted_is_withheld_until_it_is_not(self, store: Store) -> None:
        await stated(store)
        own = await session_of(store, "s")
        for name in (("user", ""), ("", "GENERAL")):
            for on, seqs in ((True, [2, 3]), (False, [])):
                mute = partial(set_mute, own, name, on=on, author_id=None, now=wall_clock(), refold=amending)
                assert await store.database.write(mute)
                assert not await store.database.write(mute)
                assert [each.seq for each in (await withheld_in(store, "s")).statements] == seqs
                kept = await store.summaries.get_summary("s")
                assert kept is not None
                assert [each.source_seq for each in kept.facts()] == ([] if on else [2, 3])

    async def test_a_pin_of_the_fact_goes(self, store: Store) -> None:
        say = await stated(store)
        for key in ("key", "other"):
            await store.database.write(
                pin_operations.pin, "s", None, pin_of(2, key, fact=("user", key)), max_pins=9, max_pin_tokens=9
            )
        await say("s", "right")
        assert [pin.fact for pin in await store.database.read(pin_operations.read_pins, "s", None)] == [
            ("user", "other")
        ]

    async def test_a_worker_that_did_not_know_it_writes_no_summary(self, store: Store) -> None:
        say = await stated(store)
        lease = await claimed(store, "s")
        before = await store.summaries.get_summary("s") or Summary()
        await say("s", "right")
        late = replace(before, version=before.version + 1, covered_seq=8)
        assert not await store.summaries.record_segment(lease, segment("s", 5, 8), (), late)
        assert not await store.summaries.put_summary(lease, late)

    async def test_it_outlives_an_invalidation(self, store: Store) -> None:
        say = await stated(store)
        await seal(store, "s", 5, 8)
        await say("s", "right")
        await store.withdraw("s", None, seq=8, now=wall_clock(), refold=amending)
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert ("right", True) in [(each.value, each.amended) for each in summary.facts()]

    async def test_it_goes_when_message_that_stated_the_fact_is_erased(self, store: Store) -> None:
        say = await stated(store)
        await say("s", "right")
        await fork(store, "s", "s~f", 9)
        await store.database.write(erasure.erase, "s", None, ranges=[(5, 6)], now=wall_clock(), refold=amending)
        assert len(await store.database.read(fact_operations.read_corrections, "s")) == 1
        await store.database.write(erasure.erase, "s", None, ranges=[(1, 2)], now=wall_clock(), refold=amending)
        for session_id in ("s", "s~f"):
            assert await store.database.read(fact_operations.read_corrections, session_id) == ()
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert "right" not in summary.facts_json
        assert not await say("s", "right again")

    async def test_it_leaves_the_summary_even_if_its_segment_is_empty(self, store: Store) -> None:
        say = await stated(store)
        await say("s", "right")
        await store.database.write(erasure.erase, "s", None, ranges=[(3, 3)], now=wall_clock(), refold=amending)
        await store.database.write(erasure.erase, "s", None, ranges=[(2, 2)], now=wall_clock(), refold=amending)
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert "right" not in summary.facts_json

    async def test_messages_out_of_view_and_deleted_sessions_are_refused(self, store: Store) -> None:
        say = await stated(store)
        session = await session_of(store, "s")
        await withdraw(store, "s")
        assert not await say("s", "late", source=8, session=session)
        assert not await say("s", "nowhere", source=9, session=session)
        await store.delete("s", None, now=wall_clock(), purge=False)
        assert not await say("s", "late", session=session)

    async def test_it_goes_with_the_session(self, store: Store) -> None:
        say = await stated(store)
        await say("s", "right")
        await store.summaries.forget(["s"])
        assert await store.database.read(fact_operations.read_corrections, "s") == ()


class Outdated:
    """Segments that are to be extracted anew serve until they are replaced."""

    async def test_they_serve_until_they_are_replaced(self, store: Store) -> None:
        await append_messages(store, "s", numbered(8))
        for start in (1, 5):
            await seal(store, "s", start, start + 3)
        before = await store.summaries.get_summary("s")
        assert before is not None
        assert await store.database.read(fact_operations.outdated_ranges, "s") == ()
        assert await store.database.write(fact_operations.mark_outdated, "s", now=wall_clock()) == 2
        assert await store.database.write(fact_operations.mark_outdated, "s", now=wall_clock()) == 0
        assert await store.database.read(fact_operations.outdated_ranges, "s") == ((1, 4), (5, 8))
        assert await store.summaries.get_summary("s") == before
        assert "s" in (await store.summaries.due(["summarize"], now=wall_clock()))["summarize"]
        ledger = await ledger_of(store, "s")
        assert [(each.stale, each.outdated, each.narrative) for each in ledger.segments] == [
            (False, True, "s 1 to 4."),
            (False, True, "s 5 to 8."),
        ]
        new = replace(segment("s", 1, 4), narrative="anew")
        next_one = replace(before, version=before.version + 1)
        assert await store.summaries.record_segment(await claimed(store, "s"), new, (fact(1, key="anew"),), next_one)
        assert await store.database.read(fact_operations.outdated_ranges, "s") == ((5, 8),)
        ledger = await ledger_of(store, "s")
        assert ledger.segments[0] == new
        assert [each.key for each in ledger.facts] == ["anew", "key", "key", "key", "key"]

    async def test_what_goes_out_of_view_makes_them_stale(self, store: Store) -> None:
        await append_messages(store, "s", numbered(8))
        for start in (1, 5):
            await seal(store, "s", start, start + 3)
        await store.database.write(fact_operations.mark_outdated, "s", now=wall_clock())
        await store.database.write(erasure.erase, "s", None, ranges=[(6, 6)], now=wall_clock(), refold=amending)
        assert await store.database.read(fact_operations.outdated_ranges, "s") == ((1, 4),)
        assert [each.stale for each in (await ledger_of(store, "s")).segments] == [False, True]

    async def test_of_an_unknown_or_deleted_session_there_are_none(self, store: Store) -> None:
        assert await store.database.write(fact_operations.mark_outdated, "unknown", now=wall_clock()) == 0
        await append_messages(store, "s", numbered(4))
        await seal(store, "s", 1, 4)
        await store.delete("s", None, now=wall_clock(), purge=False)
        assert await store.database.write(fact_operations.mark_outdated, "s", now=wall_clock()) == 0
