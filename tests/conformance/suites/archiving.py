"""Messages archived, cleared and restored: what is in view, what memory tells, what each branch shows."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.archived_ranges import read_archived
from reactor_memory.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.features.archiving import operations
from reactor_memory.features.archiving.models import Archived
from reactor_memory.features.facts.amendments import SqlAmendments
from reactor_memory.features.facts.merge import refold
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.features.posted_summaries import operations as posted_summaries
from reactor_memory.features.posted_summaries.operations import PostRequest
from reactor_memory.features.posted_summaries.posting import Post
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models import Message, Pin, ToolCall
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.index_requests import IndexPart, Passage
from reactor_memory.models.requests import AppendRequest, ContextQuery
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, pin_of, stored_form, wall_clock
from reactor_memory.testing.log import seqs
from reactor_memory.testing.recall import asked
from reactor_memory.testing.summary_recording import claimed, fact, layout, ledger_of, seal, session_of
from tests.conformance.suites.erasing import erase
from tests.conformance.suites.pinning import keep
from tests.conformance.suites.posting import post, ruling_in
from tests.conformance.suites.range_summaries import everything, in_view, live_ids, summarise
from tests.conformance.suites.range_summaries import restore as undo_summary
from tests.scenes.stores import SqlStore as Store

telling = partial(refold, max_fact_tokens=1_000_000, max_narrative_tokens=1_000_000, count=len)


async def archive(
    store: Store,
    session_id: str,
    until_seq: int | None = None,
    *,
    clear: bool = False,
    summary: str | None = None,
    key: str | None = None,
    user_id: str | None = None,
) -> Archived:
    return await store.database.write(
        operations.archive,
        session_id,
        user_id,
        until_seq=until_seq,
        cleared=clear,
        post=None if summary is None else _posting(session_id, summary, key, user_id),
        now=wall_clock(),
        refold=telling,
    )


def _posting(session_id: str, text: str, key: str | None, user_id: str | None) -> Post:
    now = wall_clock()
    message = stored_form(Message(role="summary", content=text, visibility="agent"), now=now)
    batch = AppendRequest(
        session_id=session_id,
        user_id=user_id,
        messages=(message,),
        now=now,
        idempotency_key=key,
        fingerprint=text if key else "",
    )
    return partial(posted_summaries.post_in_place, PostRequest(batch=batch, until_seq=0), refold=telling)


async def restore(store: Store, session_id: str, from_seq: int = 1, *, user_id: str | None = None) -> int:
    return await store.database.write(
        operations.restore, session_id, user_id, from_seq=from_seq, now=wall_clock(), refold=telling
    )


async def originals(store: Store, session_id: str) -> list[int | None]:
    return seqs(await store.database.read(log.read_originals, session_id, None))


async def pins(store: Store, session_id: str) -> tuple[Pin, ...]:
    """The pins, which a load gives, too."""
    found = await store.database.read(pin_operations.read_pins, session_id, None)
    for trigger in (None, 0):
        query = ContextQuery(
            session_id=session_id,
            user_id=None,
            last_count=2,
            trigger_message_count=trigger,
            max_messages=3,
            max_tokens=1_000,
        )
        assert (await store.read_context(query)).pins == found
    return found


async def ruling(store: Store, session_id: str) -> str:
    """The text of the posted summary that rules."""
    posted = await ruling_in(store, session_id)
    return posted.text if posted else ""


async def told(store: Store, session_id: str) -> list[int]:
    """The messages whose facts the ledger and the summary tell."""
    ledger = await ledger_of(store, session_id)
    summary = await store.summaries.get_summary(session_id)
    anchors = tuple({each.anchor for each in ledger.facts} | {"user"})
    session = await session_of(store, session_id)
    about = await store.summaries.read_facts_about(session_id, session.branch, anchors)
    in_ledger = [each.source_seq for each in ledger.facts]
    assert sorted(each.source_seq for each in about) == sorted(in_ledger)
    assert summary is None or [each.source_seq for each in summary.facts()] == in_ledger
    return in_ledger


async def talk(store: Store, session_id: str = "s", count: int = 6) -> None:
    """A session whose messages are sealed in pairs, with a fact of each."""
    await append_messages(store, session_id, numbered(count))
    for start in range(1, count, 2):
        facts = [replace(fact(seq, key=f"key {seq}"), verified=True) for seq in (start, start + 1)]
        await seal(store, session_id, start, start + 1, facts=facts)


@pytest.mark.anyio
class ArchiveRules:
    """The fixture `store` gives an opened, empty log in a database."""

    async def test_what_is_archived_is_hidden_but_readable_and_told(self, store: Store) -> None:
        await talk(store)
        before = await everything(store, "s")
        assert await archive(store, "s", 4) == Archived(message_count=4)
        assert await in_view(store, "s") == [5, 6]
        assert await originals(store, "s") == [1, 2, 3, 4, 5, 6]
        assert await told(store, "s") == [1, 2, 3, 4, 5, 6]
        assert (await append_messages(store, "s", numbered(1))).first_seq == 7
        await withdraw(store, "s", 7)
        assert await restore(store, "s") == 4
        assert await everything(store, "s") == before
        assert (await store.check()).problems == ()

    async def test_archiving_and_restoring_again_change_nothing(self, store: Store) -> None:
        await talk(store)
        for clear in (False, True):
            assert (await archive(store, "s", clear=clear)).message_count == 6
            summary = await store.summaries.get_summary("s")
            assert (await archive(store, "s", clear=clear)).message_count == 0
            assert (await archive(store, "s")).message_count == 0
            assert await store.summaries.get_summary("s") == summary
        assert await restore(store, "s") == 6
        assert await restore(store, "s") == 0

    async def test_memory_tells_nothing_of_cleared_messages_until_they_are_restored(self, store: Store) -> None:
        await talk(store)
        before = await store.summaries.get_summary("s")
        assert (await archive(store, "s", 4, clear=True)).message_count == 4
        assert await in_view(store, "s") == [5, 6]
        assert await originals(store, "s") == [1, 2, 3, 4, 5, 6]
        assert await told(store, "s") == [5, 6]
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert before is not None
        assert summary.narrative == "s 5 to 6."
        assert (summary.covered_seq, summary.stale_ranges) == (6, ())
        assert await restore(store, "s") == 4
        after = await store.summaries.get_summary("s")
        assert after is not None
        assert after.narrative.splitlines() == ["s 1 to 2.", "s 3 to 4.", "s 5 to 6."]
        assert after.epoch > summary.epoch > before.epoch
        assert await told(store, "s") == [1, 2, 3, 4, 5, 6]

    async def test_clear_takes_archived_messages_along_and_archiving_tells_them_again(self, store: Store) -> None:
        await talk(store)
        await archive(store, "s", 2)
        assert (await archive(store, "s", clear=True)).message_count == 6
        assert await told(store, "s") == []
        assert (await archive(store, "s")).message_count == 0
        assert (await archive(store, "s", 4)).message_count == 4
        assert await told(store, "s") == [1, 2, 3, 4]
        assert await in_view(store, "s") == []
        archived = await store.database.read(read_archived, (await session_of(store, "s")).branch)
        assert (archived.kept, archived.cleared, archived.until_seq) == (((1, 4),), ((5, 6),), 6)

    async def test_a_part_is_restored_by_its_first_message(self, store: Store) -> None:
        await talk(store)
        await archive(store, "s", clear=True)
        assert await restore(store, "s", 5) == 2
        assert await in_view(store, "s") == [5, 6]
        assert await told(store, "s") == [5, 6]

    @pytest.mark.parametrize("seed", range(4))
    async def test_view_is_what_was_never_put_away(self, store: Store, seed: int) -> None:
        """Whatever is archived, erased and restored in turn, in a session and in a fork of it."""
        chance = Random(seed)
        await append_messages(store, "s", numbered(6))
        branch = (await fork(store, "s", "s~1", 4, own=["four", "five", "six"])).session_id
        own = {"s": range(1, 7), branch: range(4, 7)}
        archived, erased = {each: set[int]() for each in own}, {each: set[int]() for each in own}
        for _ in range(16):
            session_id = chance.choice(list(own))
            seq = chance.choice(own[session_id])
            act = chance.choice(["archive", "archive", "restore", "restore", "erase"])
            if act == "archive":
                await archive(store, session_id, seq)
                archived[session_id] |= set(range(seq + 1))
            elif act == "restore":
                await restore(store, session_id, seq)
                archived[session_id] -= set(range(seq, 7))
            elif chance.random() < 0.5:
                await erase(store, session_id, (seq, seq))
                erased[session_id].add(seq)
            shown = [each for each in own[session_id] if each not in archived[session_id] | erased[session_id]]
            assert [each for each in await in_view(store, session_id) if each in own[session_id]] == shown

    async def test_undone_summary_of_the_beginning_gives_it_back(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        for start, end in ((1, 2), (3, 4)):
            await summarise(store, "s", start, end, name=f"{start}", retention="archive")
        assert await in_view(store, "s") == [5, 6]
        assert await undo_summary(store, "s", "3")
        assert await in_view(store, "s") == [3, 4, 5, 6]
        assert await undo_summary(store, "s", "1")
        assert await in_view(store, "s") == [1, 2, 3, 4, 5, 6]

    async def test_a_worker_that_read_before_a_clear_stores_nothing(self, store: Store) -> None:
        await talk(store)
        lease = await claimed(store, "s")
        await archive(store, "s", clear=True)
        before = await store.summaries.get_summary("s")
        assert before is not None
        assert not await store.summaries.put_summary(lease, replace(before, version=before.version + 1))
        await restore(store, "s")

    async def test_layouts_go_and_an_older_one_is_refused(self, store: Store) -> None:
        await talk(store)

        async def put(kept: Layout) -> None:
            await store.summaries.put_layout("s", kept, budget=100, settings_fingerprint="f")

        async def known() -> Layout | None:
            return await store.summaries.get_layout("s", budget=100, settings_fingerprint="f")

        for act in (archive(store, "s", 2), archive(store, "s", clear=True), restore(store, "s")):
            summary = await store.summaries.get_summary_head("s")
            before = layout(6, epoch=summary.epoch if summary else 0)
            await put(before)
            assert await known() is not None
            await act
            assert await known() is None
            await put(before)
            assert await known() is None

    async def test_a_summary_stands_in_the_place(self, store: Store) -> None:
        await talk(store)
        archived = await archive(store, "s", clear=True, summary="They ordered tea.", key="k")
        assert archived.message_count == 6
        assert archived.summary is not None
        assert (archived.summary.seq, archived.summary.content) == (7, "They ordered tea.")
        assert await ruling(store, "s") == "They ordered tea."
        assert await in_view(store, "s") == [7]
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert summary.narrative == "They ordered tea."
        await append_messages(store, "s", numbered(2))
        again = await archive(store, "s", clear=True, summary="They ordered tea.", key="k")
        assert again == Archived(message_count=0, summary=archived.summary)
        assert await in_view(store, "s") == [7, 8, 9]
        with pytest.raises(IdempotencyConflictError):
            await archive(store, "s", summary="They ordered coffee.", key="k")

    async def test_posted_summaries_are_cleared_with_what_they_tell_of(self, store: Store) -> None:
        await talk(store)
        await post(store, "s", "of the first two", 2)
        await archive(store, "s", 2)
        assert await ruling(store, "s") == "of the first two"
        await archive(store, "s", 2, clear=True)
        assert await ruling(store, "s") == ""
        assert await in_view(store, "s") == [3, 4, 5, 6]
        await restore(store, "s")
        assert await ruling(store, "s") == "of the first two"

    async def test_pins_of_cleared_messages_return_with_them_in_their_places(self, store: Store) -> None:
        await talk(store)
        kept = await keep(store, "s", pin_of(1), pin_of(6))
        await archive(store, "s", 4)
        assert await pins(store, "s") == tuple(kept)
        await archive(store, "s", 4, clear=True)
        assert await pins(store, "s") == tuple(kept[1:])
        await archive(store, "s", clear=True)
        assert await pins(store, "s") == ()
        await append_messages(store, "s", numbered(1))
        (new,) = await keep(store, "s", pin_of(7))
        assert new.ordinal == 3
        await fork(store, "s", "s~f", 8)
        assert await pins(store, "s~f") == (new,)
        await restore(store, "s")
        assert await pins(store, "s") == (*kept, new)

    async def test_recall_finds_what_is_archived_and_not_what_is_cleared(self, store: Store) -> None:
        await talk(store)
        lease = await claimed(store, "s")
        passages = tuple(Passage(seq=seq, start=0, end_seq=seq, end=3, tokens=1, terms=("tea",)) for seq in range(1, 7))
        part = IndexPart(conversation_id="s", start_seq=1, end_seq=6, passages=passages)
        assert await store.index.extend(lease, part)

        async def found() -> list[int]:
            branch = (await session_of(store, "s")).branch
            withheld = (await SqlAmendments(store.database).read_withheld(branch)).ranges
            answer = await store.index.search(replace(asked("s", branch, "tea"), withheld=withheld))
            return sorted(hit.passage.seq for hit in answer.found if hit.passage.terms)

        await archive(store, "s", 2)
        assert await found() == [1, 2, 3, 4, 5, 6]
        await archive(store, "s", 2, clear=True)
        assert await found() == [3, 4, 5, 6]
        await archive(store, "s", clear=True)
        assert await found() == []

    async def test_forks_go_on_showing_what_their_parent_archives_later(self, store: Store) -> None:
        await talk(store)
        for at_seq in (3, 7):
            await fork(store, "s", f"s~{at_seq}", at_seq, own=["mine"])
        before = {each: (await in_view(store, each), await ledger_of(store, each)) for each in ("s~3", "s~7")}
        for clear in (False, True):
            await archive(store, "s", clear=clear)
            assert {each: (await in_view(store, each), await ledger_of(store, each)) for each in before} == before
        await append_messages(store, "s", numbered(2))
        await fork(store, "s", "s~late", 9, own=["mine"])
        assert await in_view(store, "s~late") == [7, 8, 9]
        assert (await ledger_of(store, "s~late")).facts == ()
        await restore(store, "s")
        assert await in_view(store, "s~late") == [1, 2, 3, 4, 5, 6, 7, 8, 9]

    async def test_a_branch_archives_its_own_messages_only(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 4, own=["mine", "mine, too"])
        with pytest.raises(InvalidInputError, match="inherited"):
            await archive(store, "s~f", 3)
        assert (await archive(store, "s~f", clear=True)).message_count == 2
        assert await in_view(store, "s~f") == [1, 2, 3]
        assert await in_view(store, "s") == [1, 2, 3, 4]
        assert await restore(store, "s~f") == 2
        assert await in_view(store, "s~f") == [1, 2, 3, 4, 5]

    async def test_pairs_stay_together(self, store: Store) -> None:
        call = ToolCall(id="c", name="look_up", arguments={})
        turn = [
            Message.user("where?"),
            Message.assistant("", tool_calls=[call]),
            Message.tool("here", tool_call_id="c"),
        ]
        await append_messages(store, "s", turn)
        with pytest.raises(InvalidInputError, match="until_seq: a tool call"):
            await archive(store, "s", 2)
        assert await in_view(store, "s") == [1, 2, 3]
        assert (await archive(store, "s", 3)).message_count == 3

    async def test_positions_are_checked(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        for until_seq in (0, 3):
            with pytest.raises(InvalidInputError, match="until_seq"):
                await archive(store, "s", until_seq)

    async def test_owners_and_deletion_are_checked(self, store: Store) -> None:
        with pytest.raises(SessionNotFoundError):
            await archive(store, "s")
        with pytest.raises(SessionNotFoundError):
            await restore(store, "s")
        await append_messages(store, "s", numbered(2), user_id="ann")
        for user_id in (None, "bob"):
            with pytest.raises(SessionOwnershipError):
                await archive(store, "s", user_id=user_id)
            with pytest.raises(SessionOwnershipError):
                await restore(store, "s", user_id=user_id)
        assert (await archive(store, "s", user_id="ann")).message_count == 2
        await store.delete("s", "ann", now=wall_clock(), purge=False)
        with pytest.raises(SessionDeletedError):
            await restore(store, "s", user_id="ann")

    async def test_what_a_summary_archived_is_the_summarys_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        summary = await summarise(store, "s", 1, 2, name="tier", retention="archive")
        await archive(store, "s", 4)
        assert await restore(store, "s") == 2
        assert await in_view(store, "s") == [3, 4, 5, 6]
        assert (await archive(store, "s", clear=True)).message_count == 6
        assert await live_ids(store, "s") == []
        assert await restore(store, "s") == 6
        assert await in_view(store, "s") == [3, 4, 5, 6]
        assert await live_ids(store, "s") == [summary.summary_id]
        now = wall_clock()
        assert await store.database.write(range_summaries.restore_range_summary, "s", None, "tier", now=now)
        assert await in_view(store, "s") == [1, 2, 3, 4, 5, 6]

    async def test_what_is_archived_can_be_erased(self, store: Store) -> None:
        await talk(store)
        await archive(store, "s", clear=True)
        assert (await erase(store, "s", (1, 2))).message_count == 2
        assert await originals(store, "s") == [3, 4, 5, 6]
        assert await restore(store, "s") == 4
        assert await in_view(store, "s") == [3, 4, 5, 6]
        assert (await store.check()).problems == ()
