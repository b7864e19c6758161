"""Messages and users erased: what stays, what goes, what cannot come back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reactor_memory.core.log.branches import root_branch
from reactor_memory.core.log.scrubbing import scrub
from reactor_memory.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.erasure.models import Erased
from reactor_memory.features.items import operations as items
from reactor_memory.features.items.models import ItemChange
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.features.recounting.recounting import recount
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.index_requests import IndexPart, Passage
from reactor_memory.models.ledger import Ledger, PostedSummary, Summary
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, pin_of, wall_clock
from reactor_memory.testing.log import nothing_left, seqs
from reactor_memory.testing.recall import asked
from reactor_memory.testing.summary_recording import (
    MINUTE,
    claimed,
    fact,
    folded,
    layout,
    ledger_of,
    seal,
    segment,
    session_of,
)
from tests.conformance.suites.posting import post, ruling_in
from tests.conformance.suites.range_summaries import summary_of
from tests.scenes.stores import SqlStore as Store


async def erase(
    store: Store, session_id: str, *ranges: tuple[int, int], user_id: str | None = None, now: int | None = None
) -> Erased:
    at = wall_clock() if now is None else now
    return await store.database.write(erasure.erase, session_id, user_id, ranges=ranges, now=at, refold=folded)


async def erase_group(store: Store, group_id: str, user_id: str) -> tuple[str, ...]:
    gone = await store.database.write(erasure.purge_group, group_id, user_id, now=wall_clock())
    await store.database.write(erasure.settle_group, group_id, user_id, left=(), now=wall_clock())
    return gone


class ErasedFromTheLog:
    """Tombstones stay, so positions do not change."""

    async def test_what_was_said_is_gone_its_position_not_used_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        erased = await erase(store, "s", (2, 3))
        assert erased.message_count == 2
        assert seqs(await store.read("s", None)) == [1, 4, 5]
        assert seqs(await store.read_ranges("s", None, [(1, 5)])) == [1, 4, 5]
        appended = await append_messages(store, "s", numbered(1))
        assert appended.first_seq == 6
        assert (await store.check()).problems == ()

    async def test_erasing_again_changes_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await erase(store, "s", (2, 3))
        again = await erase(store, "s", (1, 3))
        assert again.message_count == 1
        assert [branch.ranges for branch in again.branches] == [((1, 3),)]
        assert (await erase(store, "s", (1, 3))).message_count == 0
        assert seqs(await store.read("s", None)) == [4, 5]

    async def test_a_withdrawn_message_can_be_erased(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await store.withdraw("s", None, seq=2, now=wall_clock(), refold=nothing_left)
        assert (await erase(store, "s", (2, 2))).message_count == 1
        assert seqs(await store.read("s", None)) == [1]

    @pytest.mark.parametrize("ranges", [(), ((0, 1),), ((3, 2),), ((1, 6),), ((6, 6),), ((1, 2), (9, 9))])
    async def test_what_is_not_in_the_session_is_refused(
        self, store: Store, ranges: tuple[tuple[int, int], ...]
    ) -> None:
        await append_messages(store, "s", numbered(5))
        with pytest.raises(InvalidInputError):
            await erase(store, "s", *ranges)
        assert seqs(await store.read("s", None)) == [1, 2, 3, 4, 5]

    async def test_only_the_owner_erases(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2), user_id="owner")
        for stranger in ("stranger", None):
            with pytest.raises(SessionOwnershipError):
                await erase(store, "s", (1, 1), user_id=stranger)
        with pytest.raises(SessionNotFoundError):
            await erase(store, "unknown", (1, 1))
        assert seqs(await store.read("s", "owner")) == [1, 2]

    async def test_a_deleted_session_is_not_erased_from(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await store.delete("s", None, now=wall_clock(), purge=False)
        with pytest.raises(SessionDeletedError):
            await erase(store, "s", (1, 1))

    async def test_late_repetition_of_its_batch_does_not_bring_it_back(self, store: Store) -> None:
        first = await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="f")
        await erase(store, "s", (2, 2))
        again = await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="f")
        assert again == replace(first, replayed=True)
        assert seqs(await store.read("s", None)) == [1, 3]

    async def test_no_hash_of_its_content_stays_to_be_compared_with(self, store: Store) -> None:
        """Whoever repeats the key is answered alike, whatever they say it was."""
        await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="f")
        await append_messages(store, "s", numbered(3), idempotency_key="other", fingerprint="g")
        await erase(store, "s", (3, 3))
        guessed = await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="a guess")
        assert guessed.replayed
        with pytest.raises(IdempotencyConflictError):
            await append_messages(store, "s", numbered(3), idempotency_key="other", fingerprint="a guess")

    async def test_a_pin_of_it_goes_and_none_is_made_late(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        for seq in (1, 2, 4):
            await store.database.write(pin_operations.pin, "s", None, pin_of(seq), max_pins=9, max_pin_tokens=99)
        await store.database.write(
            pin_operations.pin, "s", None, pin_of(2, "v", fact=("user", "key")), max_pins=9, max_pin_tokens=99
        )
        await fork(store, "s", "s~f", 4)
        await erase(store, "s", (2, 3))
        assert [pin.seq for pin in await store.database.read(pin_operations.read_pins, "s", None)] == [1, 4]
        assert [pin.seq for pin in await store.database.read(pin_operations.read_pins, "s~f", None)] == [1]
        with pytest.raises(InvalidInputError):
            await store.database.write(pin_operations.pin, "s", None, pin_of(2), max_pins=9, max_pin_tokens=99)

    async def test_the_list_of_sessions_does_not_show_it(self, store: Store) -> None:
        await append_messages(store, "s", [Message.user("secret"), Message.assistant("ok"), Message.user("next")])
        await erase(store, "s", (1, 1))
        assert (await store.list_sessions(None)).sessions[0].preview == "next"

    async def test_a_rich_message_loses_all_it_held(self, store: Store) -> None:
        """Counting again reads tombstones, too: the only call that does."""
        call = ToolCall(id="c", name="look_up", arguments={"secret": 1})
        rich = Message.assistant("a", tool_calls=[call], metadata={"m": 1}, name="n", author_id="u", parts=({"p": 1},))
        answer = Message.tool("r", tool_call_id="c")
        await append_messages(store, "s", [rich, answer], now=7)
        await erase(store, "s", (1, 2))
        seen: list[Message] = []
        await recount(store.database, "other", lambda message: seen.append(message) or 0)
        blank = [replace(each, message_id=None, tokenizer=None) for each in seen]
        assert blank == [
            Message(role="assistant", seq=1, created_at=7, token_count=0),
            Message(role="tool", seq=2, created_at=7, token_count=0),
        ]


class ErasedFromBranches:
    """Every branch that shows it loses it, wherever it is stored."""

    async def family(self, store: Store) -> None:
        """s: 1-6; s~f from 4 with 4-5; s~g from 2; s~f~h is below s~f and shows its message 4."""
        await append_messages(store, "s", numbered(6))
        await fork(store, "s", "s~f", 4, own=["f4", "f5"])
        await fork(store, "s", "s~g", 2, own=["g2"])
        await fork(store, "s~f", "s~h", 5, own=["h5"])

    async def test_an_inherited_message_is_erased_for_all(self, store: Store) -> None:
        await self.family(store)
        erased = await erase(store, "s~h", (3, 4))
        assert {branch.session.session_id: branch.ranges for branch in erased.branches} == {
            "s": ((3, 3),),
            "s~f": ((3, 3), (4, 4)),
            "s~h": ((3, 3), (4, 4)),
        }
        assert seqs(await store.read("s", None)) == [1, 2, 4, 5, 6]
        assert seqs(await store.read("s~f", None)) == [1, 2, 5]
        assert seqs(await store.read("s~h", None)) == [1, 2, 5]
        assert seqs(await store.read("s~g", None)) == [1, 2]

    async def test_a_deleted_branch_within_its_grace_time_too(self, store: Store) -> None:
        await self.family(store)
        await seal(store, "s~f", 1, 4)
        await store.delete("s~f", None, now=wall_clock(), purge=False)
        erased = await erase(store, "s", (2, 2))
        assert "s~f" in {branch.session.session_id for branch in erased.branches}
        summary = await store.summaries.get_summary("s~f")
        assert summary is not None
        assert "value 2" not in summary.facts_json


class ErasedFromMemory:
    """What was made of it goes in the same moment, and a worker that read it writes nothing any more."""

    async def sealed(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        for start in (1, 5, 9):
            await seal(store, "s", start, start + 3)
        await fork(store, "s", "s~g", 9)
        lease = await claimed(store, "s~g")
        inherited = replace(folded(await ledger_of(store, "s~g")), covered_seq=8, version=1)
        assert await store.summaries.put_summary(lease, inherited)
        await store.summaries.release(lease, due_at=None)
        for session_id in ("s", "s~g"):
            await store.summaries.put_layout(session_id, layout(12), budget=0, settings_fingerprint="")

    async def test_segments_keep_their_borders_and_nothing_else(self, store: Store) -> None:
        await self.sealed(store)
        await erase(store, "s", (4, 5))
        ledger = await ledger_of(store, "s")
        assert [(each.start_seq, each.end_seq, each.stale) for each in ledger.segments] == [
            (1, 4, True),
            (5, 8, True),
            (9, 12, False),
        ]
        for blank in ledger.segments[:2]:
            assert (blank.source_hash, blank.narrative, blank.headline) == ("", "", "")
        assert [each.source_seq for each in ledger.facts] == [9, 10, 11, 12]

    async def test_summaries_of_all_branches_are_folded_again(self, store: Store) -> None:
        await self.sealed(store)
        await erase(store, "s", (6, 6))
        for session_id, covered, rest in (("s", 12, [1, 2, 3, 4, 9, 10, 11, 12]), ("s~g", 8, [1, 2, 3, 4])):
            summary = await store.summaries.get_summary(session_id)
            assert summary is not None
            assert (summary.covered_seq, summary.epoch, summary.stale_ranges) == (covered, 1, ((5, 8),))
            assert [each.source_seq for each in summary.facts()] == rest
            assert await store.summaries.get_layout(session_id, budget=0, settings_fingerprint="") is None
            assert session_id in (await store.summaries.due(["summarize"], now=wall_clock()))["summarize"]

    async def test_a_summary_that_does_not_reach_it_stays(self, store: Store) -> None:
        await self.sealed(store)
        before = await store.summaries.get_summary("s~g")
        await erase(store, "s", (10, 10))
        assert await store.summaries.get_summary("s~g") == before

    async def test_what_was_read_before_is_not_recorded(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lease = await claimed(store, "s")
        await erase(store, "s", (2, 2))
        found = replace(folded(Ledger(segments=(segment("s", 1, 4),), facts=(fact(2),))), covered_seq=4, version=1)
        assert not await store.summaries.record_segment(lease, segment("s", 1, 4), (fact(2),), found)
        assert not await store.summaries.put_summary(lease, found)
        assert await ledger_of(store, "s") == Ledger()
        assert await store.summaries.get_summary("s") is None

    async def test_what_was_read_before_second_erasure_is_not_recorded_either(self, store: Store) -> None:
        """The segment was stale already, and is being read again."""
        await self.sealed(store)
        await erase(store, "s", (5, 5))
        lease = await claimed(store, "s")
        await erase(store, "s", (6, 6))
        before = await store.summaries.get_summary("s") or Summary()
        late = replace(before, version=before.version + 1, facts_json=folded(Ledger(facts=(fact(6),))).facts_json)
        assert not await store.summaries.record_segment(lease, segment("s", 5, 8), (fact(6),), late)
        assert await store.summaries.get_summary("s") == before

    async def test_a_layout_that_was_made_before_is_not_stored(self, store: Store) -> None:
        await self.sealed(store)
        await erase(store, "s", (6, 6))
        await store.summaries.put_layout("s", layout(13), budget=0, settings_fingerprint="")
        assert await store.summaries.get_layout("s", budget=0, settings_fingerprint="") is None

    async def test_asking_again_ends_in_the_same_state(self, store: Store) -> None:
        await self.sealed(store)
        await erase(store, "s", (6, 6))
        ledger, summary = await ledger_of(store, "s"), await store.summaries.get_summary("s")
        await erase(store, "s", (6, 6))
        assert (await ledger_of(store, "s"), await store.summaries.get_summary("s")) == (ledger, summary)

    async def test_summaries_that_are_told_again_forget_again(self, store: Store) -> None:
        await self.sealed(store)
        erased = await erase(store, "s", (12, 12))
        await append_messages(store, "s", numbered(1))
        await seal(store, "s", 9, 12, [])
        await store.summaries.invalidate(erased.branches, now=wall_clock(), refold=folded)
        assert [each.stale for each in (await ledger_of(store, "s")).segments] == [False, False, True]


class ErasedFromTexts:
    """A text that stands for an erased message goes; what it had taken the place of comes back."""

    async def test_a_text_made_of_a_posted_summary_goes_with_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await post(store, "s", "canary", 2)
        await append_messages(store, "s", numbered(3))
        new = await summary_of(store, "s", 5, 8, name="a", retention="archive")
        assert await store.database.write(
            range_summaries.put_range_summaries, "s", None, [new], expected=[], now=wall_clock()
        )
        assert (await ruling_in(store, "s") or PostedSummary(seq=0, until_seq=0)).text == "canary"
        assert (await erase(store, "s", (1, 1))).message_count == 2
        assert await store.database.read(range_summaries.read_range_summaries, "s", None) == ()
        assert seqs(await store.read("s", None)) == [2, 3, 4, 6, 7, 8]

    async def test_posted_summary_that_was_deleted_to_save_space_tells_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await post(store, "s", "first", 2)
        await post(store, "s", "second", 4)
        new = await summary_of(store, "s", 6, 6, name="a", retention="delete")
        assert await store.database.write(
            range_summaries.put_range_summaries, "s", None, [new], expected=[], now=wall_clock()
        )
        assert (await ruling_in(store, "s") or PostedSummary(seq=0, until_seq=0)).text == "first"

    async def test_it_goes_as_if_it_had_been_restored(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        for name, start, end in (("a", 1, 4), ("b", 5, 8), ("c", 1, 8), ("d", 9, 10)):
            live = await store.database.read(range_summaries.read_range_summaries, "s", None)
            new = await summary_of(store, "s", start, end, name=name, retention="archive")
            expected = [each.summary_id for each in live]
            assert await store.database.write(
                range_summaries.put_range_summaries, "s", None, [new], expected=expected, now=wall_clock()
            )
        assert seqs(await store.read("s", None)) == [11, 12]
        await erase(store, "s", (6, 6))
        assert [
            each.summary_id for each in await store.database.read(range_summaries.read_range_summaries, "s", None)
        ] == ["a", "d"]
        assert [
            each.summary_id
            for each in await store.database.read(range_summaries.read_range_summaries, "s", None, live=False)
        ] == ["a", "d"]
        assert seqs(await store.read("s", None)) == [5, 7, 8, 11, 12]

    async def test_a_text_for_deleted_originals_goes_too(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        new = await summary_of(store, "s", 1, 4, name="a", retention="delete")
        assert await store.database.write(
            range_summaries.put_range_summaries, "s", None, [new], expected=[], now=wall_clock()
        )
        assert (await erase(store, "s", (2, 2))).message_count == 0
        assert await store.database.read(range_summaries.read_range_summaries, "s", None, live=False) == ()

    async def test_one_that_was_made_before_is_not_stored(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        late = await summary_of(store, "s", 1, 4, name="late")
        await erase(store, "s", (2, 2))
        assert not await store.database.write(
            range_summaries.put_range_summaries, "s", None, [late], expected=[], now=wall_clock()
        )


class ErasedFromTheIndex:
    """The store is the index, too."""

    async def test_its_entries_go_and_a_late_one_is_refused(self, store: Store) -> None:
        await append_messages(store, "s", numbered(8))
        for start in (1, 5):
            await seal(store, "s", start, start + 3)
            lease = await claimed(store, "s")
            assert await store.index.extend(lease, self.part(start))
            await store.summaries.release(lease, due_at=None)
        lease = await claimed(store, "s")
        await erase(store, "s", (6, 6))
        assert await store.index.indexed_until("s") == 4
        assert not await store.index.extend(lease, self.part(5))
        branch = (await session_of(store, "s")).branch
        assert (await store.index.search(asked("s", branch, "secret6"))).found == ()

    def part(self, start: int) -> IndexPart:
        passages = tuple(
            Passage(seq=seq, start=0, end_seq=seq, end=7, tokens=2, terms=(f"secret{seq}",))
            for seq in range(start, start + 4)
        )
        return IndexPart(conversation_id="s", start_seq=start, end_seq=start + 3, passages=passages)


class ErasedUsers:
    """All there is of a user, and nothing of anybody else."""

    async def test_groups_of_a_user_are_found_whatever_became_of_them(self, store: Store) -> None:
        for session_id, user_id in (("b", "u"), ("a", "u"), ("c", "other"), ("d", "u"), ("e", None)):
            await append_messages(store, session_id, numbered(2), user_id=user_id)
        await fork(store, "b", "b~f", 2, user_id="u")
        await store.delete("a", "u", now=wall_clock(), purge=False)
        await store.delete("b~f", "u", now=wall_clock(), purge=True)
        await store.delete("d", "u", now=wall_clock(), purge=True)
        assert await store.database.read(erasure.owned_groups, "u") == (("a",), ("b", "b~f"), ("d",))
        assert await store.database.read(erasure.owned_groups, "u", limit=1) == (("a",),)
        assert await store.database.read(erasure.owned_groups, "u", after="a", limit=1) == (("b", "b~f"),)
        assert await store.database.read(erasure.owned_groups, "u", after="d") == ()
        assert await store.database.read(erasure.owned_groups, "nobody") == ()

    @pytest.mark.parametrize("deleted", [None, "marked", "purged"])
    async def test_a_group_goes_whole_and_nobody_owns_it_any_more(self, store: Store, deleted: str | None) -> None:
        await append_messages(store, "s", numbered(8), user_id="u")
        await seal(store, "s", 1, 4)
        await fork(store, "s", "s~f", 3, own=["f3"], user_id="u")
        if deleted:
            await store.delete("s", "u", now=wall_clock(), purge=deleted == "purged")
        assert set(await erase_group(store, "s", "u")) == (set() if deleted == "purged" else {"s", "s~f"})
        assert await store.database.read(erasure.owned_groups, "u") == ()
        assert await store.summaries.get_summary("s") is None
        assert (await store.summaries.read_ledger("s", root_branch("s"))).facts == ()
        for session_id in ("s", "s~f"):
            with pytest.raises(SessionDeletedError):
                await append_messages(store, session_id, numbered(1), user_id="u")
        assert await store.purge_deleted(before=wall_clock() + MINUTE) == 0
        assert await erase_group(store, "s", "u") == ()

    async def test_no_worker_writes_to_an_erased_group(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4), user_id="u")
        lease = await claimed(store, "s")
        await erase_group(store, "s", "u")
        assert not await store.summaries.record_segment(
            lease, segment("s", 1, 4), (), Summary(covered_seq=4, version=1)
        )

    async def test_another_users_group_stays(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2), user_id="other")
        with pytest.raises(SessionOwnershipError):
            await erase_group(store, "s", "u")
        assert seqs(await store.read("s", "other")) == [1, 2]

    async def test_an_open_session_is_nobodys(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        assert await erase_group(store, "s", "u") == ()
        assert seqs(await store.read("s", None)) == [1, 2]

    async def test_notes_go_with_every_version_and_late_one_is_refused(self, store: Store) -> None:
        for agent, versions in (("a", 3), ("b", 1)):
            for version in range(1, versions + 1):
                await store.database.write(
                    note_rows.put_notes, Notes(user_id="u", agent_name=agent, version=version, text=f"secret {version}")
                )
        await store.database.write(note_rows.put_notes, Notes(user_id="other", agent_name="a", version=1, text="stays"))
        assert await store.database.write(erasure.forget_user, "u", now=5) == 4
        assert [each.text for each in await store.database.read(note_rows.list_notes, "u", "a")] == [""]
        for late in (2, 3, 4):
            assert not await store.database.write(
                note_rows.put_notes, Notes(user_id="u", agent_name="a", version=late, text="secret again")
            )
        newest = await store.database.read(note_rows.read_notes, "u", "a")
        assert (newest.version, newest.text, newest.created_at) == (4, "", 5)
        assert await store.database.write(
            note_rows.put_notes, Notes(user_id="u", agent_name="a", version=5, text="new")
        )
        assert (await store.database.read(note_rows.read_notes, "other", "a")).text == "stays"

    async def test_active_sessions_go(self, store: Store) -> None:
        await store.database.write(active_rows.get_or_create_active, "u", "a", "s", now=1)
        await store.database.write(active_rows.get_or_create_active, "other", "a", "t", now=1)
        assert await store.database.write(erasure.forget_user, "u", now=2) == 1
        assert await store.database.read(active_rows.list_active, "u") == ()
        assert not await store.database.write_relaxed(active_rows.touch_active, "u", "a", "s", now=3)
        assert [each.session_id for each in await store.database.read(active_rows.list_active, "other")] == ["t"]

    async def test_items_go(self, store: Store) -> None:
        for user_id in ("u", "other"):
            await store.database.write(
                items.change_items, user_id, [ItemChange(namespace="n", key="k", value={"secret": 1})], now=1
            )
        assert await store.database.write(erasure.forget_user, "u", now=2) == 1
        assert await store.database.read(items.read_items, "u", [("n", "k")]) == (None,)
        assert await store.database.read(items.read_items, "other", [("n", "k")]) != (None,)

    async def test_forgetting_a_user_again_changes_nothing(self, store: Store) -> None:
        await store.database.write(note_rows.put_notes, Notes(user_id="u", agent_name="a", version=1, text="secret"))
        assert await store.database.write(erasure.forget_user, "u", now=2) == 1
        assert await store.database.write(erasure.forget_user, "u", now=3) == 0
        assert (await store.database.read(note_rows.read_notes, "u", "a")).version == 2

    @pytest.mark.parametrize("rewrite", [False, True])
    async def test_scrubbing_harms_nothing(self, store: Store, rewrite: bool) -> None:
        await append_messages(store, "s", numbered(8))
        await seal(store, "s", 1, 4)
        before = await store.read("s", None), await ledger_of(store, "s")
        await erase(store, "s", (8, 8))
        await scrub(store.database, rewrite=rewrite)
        assert (await store.read("s", None), await ledger_of(store, "s")) == (before[0][:7], before[1])
        assert (await store.check()).problems == ()


@pytest.mark.anyio
class ErasureConformance(
    ErasedFromTheLog, ErasedFromBranches, ErasedFromMemory, ErasedFromTexts, ErasedFromTheIndex, ErasedUsers
):
    """What every store that can do all promises about erasing. The fixture `store` gives an opened, empty one."""
