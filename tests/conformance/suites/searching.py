"""Search over many conversations: who finds what, and what is gone when content or access goes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.recall.vectors import Near, NearQuery
from reactor_memory.features.search.hybrid_recall import nearest_in_branch
from reactor_memory.features.search.models import (
    IndexedRange,
    Meaning,
    SearchAnswer,
    SearchBacklog,
    SearchQuery,
    WordEntry,
    is_findable,
)
from reactor_memory.features.search.operations import (
    behind_in_meanings,
    behind_in_words,
    index_meanings,
    index_words,
    search_backlog,
    search_messages,
    search_progress,
)
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing.models import AuditRecord, Membership, OwnershipTransfer
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import EMBED_SEARCH, INDEX_SEARCH, AppendRequest
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, stored_form, wall_clock
from reactor_memory.testing.summary_recording import Store, folded
from reactor_memory.text.analyzer import QueryWord, terms
from tests.conformance.suites.erasing import erase

MINUTE = 60_000_000
ANN, BEN = "ann", "ben"
MODEL = "fake"


async def say(store: MessageStore, session_id: str, *texts: str, user_id: str = ANN) -> None:
    await append_messages(store, session_id, [Message.user(text) for text in texts], user_id=user_id)


async def say_to(store: MessageStore, session_id: str, agent_name: str | None, text: str) -> None:
    now = wall_clock()
    message = stored_form(Message.user(text), now=now)
    await store.append(
        AppendRequest(session_id=session_id, user_id=ANN, messages=(message,), now=now, agent_name=agent_name)
    )


async def branch_off(store: MessageStore, session_id: str, at_seq: int) -> str:
    """The id of a new fork."""
    return (await fork(store, session_id, f"{session_id}~1", at_seq, user_id=ANN)).session_id


def meaning_of(text: str) -> tuple[float, float]:
    """A meaning with two sides: texts with a `z` in them mean one thing, all others another."""
    return (0.0, 1.0) if "z" in text else (1.0, 0.0)


async def lease_of(store: Store, session_id: str, kind: str) -> Lease:
    lease = await store.summaries.claim(session_id, kind, now=wall_clock(), lease_microseconds=MINUTE)
    assert lease is not None
    return lease


async def unindexed(store: Store, session_id: str, *, after: int | None = None, at: int | None = None) -> IndexedRange:
    """The rest of a conversation, behind what is indexed (or `after`), with its words and its meanings."""
    session = (await store.read_background(session_id, limit=1)).session
    first = session.branch[-1].start_seq - 1
    if after is None:
        progress = await store.database.read(search_progress, session_id)
        after = progress.indexed_seq if progress else first
    read = (await store.read_background(session_id, after=after)).messages
    found = [(message.seq or 0, message.content, message.created_at or 0) for message in read if is_findable(message)]
    return IndexedRange(
        conversation_id=session_id,
        owner_id=session.owner_id or "",
        first=first,
        after=after,
        end_seq=session.last_seq,
        words=tuple(WordEntry(seq=s, terms=tuple(dict.fromkeys(terms(text))), sent_at=t) for s, text, t in found),
        meanings=tuple(Meaning(seq=s, vector=meaning_of(text), sent_at=t) for s, text, t in found),
        read_at=wall_clock() if at is None else at,
    )


async def store_words(store: Store, part: IndexedRange) -> bool:
    lease = await lease_of(store, part.conversation_id, INDEX_SEARCH)
    stored = await store.database.write_relaxed(index_words, lease, part)
    await store.summaries.release(lease, due_at=None)
    return stored


async def store_meanings(store: Store, part: IndexedRange, *, model: str = MODEL) -> bool:
    lease = await lease_of(store, part.conversation_id, EMBED_SEARCH)
    stored = await store.database.write_relaxed(index_meanings, lease, part, model=model)
    await store.summaries.release(lease, due_at=None)
    return stored


async def index(store: Store, *session_ids: str, at: int | None = None) -> None:
    for session_id in session_ids:
        assert await store_words(store, await unindexed(store, session_id, at=at))


async def embed(store: Store, *session_ids: str, model: str = MODEL) -> None:
    for session_id in session_ids:
        first = (await unindexed(store, session_id)).first
        assert await store_meanings(store, await unindexed(store, session_id, after=first), model=model)


async def search(store: Store, text: str = "", user_id: str = ANN, **fields: object) -> SearchAnswer:
    words = tuple(QueryWord((term,)) for term in dict.fromkeys(terms(text)))
    return await store.database.read_long(search_messages, SearchQuery(user_id=user_id, words=words, **fields))  # pyright: ignore[reportArgumentType]


def places(answer: SearchAnswer) -> list[tuple[str, int]]:
    return [(hit.conversation_id, hit.message.seq or 0) for hit in answer.hits]


async def found(store: Store, text: str, user_id: str = ANN, **fields: object) -> list[tuple[str, int]]:
    return places(await search(store, text, user_id, **fields))


async def alike(store: Store, text: str, user_id: str = ANN, **fields: object) -> list[tuple[str, int]]:
    given = {"vector": meaning_of(text), "model": MODEL, "min_similarity": 0.5, **fields}
    return places(await search(store, "", user_id, **given))


async def near(store: Store, session_id: str, text: str, *, until: int = 100, limit: int = 20) -> list[int]:
    """The seq of what means the same in a branch."""
    session = await store.get_session(session_id, ANN)
    assert session is not None
    query = NearQuery(
        branch=session.branch, until=until, vector=meaning_of(text), model=MODEL, min_similarity=0.5, limit=limit
    )
    answer = await store.database.read_long(nearest_in_branch, query)
    assert all(isinstance(each, Near) and each.similarity > 0.99 for each in answer)
    return [each.seq for each in answer]


def audit(group_id: str) -> AuditRecord:
    return AuditRecord(
        record_id=f"{group_id}-{wall_clock()}",
        group_id=group_id,
        conversation_id=group_id,
        actor_id=ANN,
        action="test",
        created_at=wall_clock(),
    )


async def share(store: Store, group_id: str, user_id: str) -> None:
    member = Membership(group_id=group_id, user_id=user_id, access_level="reader", created_at=wall_clock())
    assert await store.database.write(member_operations.put_membership, member, audit(group_id), creating=True)


@pytest.mark.anyio
class SearchConformance:
    """What the operations of `features.search` and of vectors promise, of the database of an opened, empty
    `store`.
    """

    async def test_messages_of_all_conversations_are_found_by_their_words(self, store: Store) -> None:
        await say(store, "a", "Two reservations", "nothing")
        await say(store, "b", "nothing", "a reservation")
        await index(store, "a", "b")
        assert sorted(await found(store, "RESERVED")) == [("a", 1), ("b", 2)]
        assert await found(store, "taxi") == []

    async def test_a_term_with_any_ending_finds_all_that_begin_so(self, store: Store) -> None:
        await say(store, "a", "the River", "a driver", "рівень", "number 4711")
        await say(store, "b", "Rivers", user_id=BEN)
        await index(store, "a", "b")
        for term, expected in (("riv*", [1]), ("рів*", [3]), ("47*", [4]), ("riv", []), ("x*", [])):
            answer = await store.database.read_long(
                search_messages, SearchQuery(user_id=ANN, words=(QueryWord((term,)),))
            )
            assert places(answer) == [("a", seq) for seq in expected]
        both = SearchQuery(user_id=ANN, words=(QueryWord(("driver",)), QueryWord(("riv*",))))
        assert len(places(await store.database.read_long(search_messages, both))) == 2

    async def test_what_holds_more_and_rarer_words_comes_first(self, store: Store) -> None:
        await say(store, "a", "a cat", "a cat", "a cat and a dog", "a dog in the house", "a cat")
        await index(store, "a")
        assert (await found(store, "cat dog"))[:2] == [("a", 3), ("a", 4)]

    async def test_a_hit_holds_the_whole_message(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await index(store, "a")
        [hit] = (await search(store, "cat")).hits
        assert hit.message == (await store.read("a", ANN))[0]
        assert hit.score > 0

    async def test_nobody_finds_what_is_not_theirs(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await say(store, "b", "a cat", user_id=BEN)
        await index(store, "a", "b")
        await embed(store, "a", "b")
        assert await found(store, "cat") == await alike(store, "cat") == [("a", 1)]
        assert await found(store, "cat", BEN) == await alike(store, "cat", BEN) == [("b", 1)]
        assert await found(store, "cat", "cid") == await alike(store, "cat", "cid") == []

    async def test_scores_depend_on_nothing_that_one_may_not_read(self, store: Store) -> None:
        await say(store, "a", "a cat and a dog", "a dog", "a mouse")
        await index(store, "a")
        before = await search(store, "cat dog")
        await say(store, "b", *["a dog"] * 50, "a cat", user_id=BEN)
        await index(store, "b")
        assert await search(store, "cat dog") == before

    async def test_what_others_have_never_takes_a_place(self, store: Store) -> None:
        """The best are taken of what one may read, not of everything."""
        await say(store, "b", *["cat cat cat"] * 600, user_id=BEN)
        await say(store, "a", "a cat among many other words that make it a worse answer")
        await index(store, "b", "a")
        await embed(store, "b", "a")
        assert await found(store, "cat") == await alike(store, "cat") == [("a", 1)]

    async def test_members_find_what_is_shared_as_long_as_it_is(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await say(store, "c", "another cat")
        await index(store, "a", "c")
        await embed(store, "a", "c")
        await share(store, "a", BEN)
        assert await found(store, "cat", BEN) == await alike(store, "cat", BEN) == [("a", 1)]
        assert await store.database.write(member_operations.remove_membership, "a", BEN, audit("a"))
        assert await found(store, "cat", BEN) == await alike(store, "cat", BEN) == []

    async def test_agents_keep_what_is_theirs(self, store: Store) -> None:
        await append_messages(
            store,
            "a",
            [
                Message.user("a cat"),
                Message(role="assistant", content="a cat, I noted", visibility="agent"),
                Message(role="system", content="a cat, said the system", visibility="system"),
                Message(role="summary", content="they spoke of a cat", visibility="agent"),
            ],
            user_id=ANN,
        )
        await index(store, "a")
        await embed(store, "a")
        assert sorted(await found(store, "cat")) == sorted(await alike(store, "cat")) == [("a", 1), ("a", 4)]

    async def test_an_inherited_message_is_found_once(self, store: Store) -> None:
        await say(store, "a", "a cat", "a second cat")
        branch = await branch_off(store, "a", 2)
        await say(store, branch, "a cat of the fork")
        await index(store, "a", branch)
        assert sorted(await found(store, "cat")) == [("a", 1), ("a", 2), (branch, 2)]
        assert sorted(await found(store, "cat", conversation_ids=(branch,))) == [(branch, 1), (branch, 2)]
        assert sorted(await found(store, "cat", conversation_ids=("a",))) == [("a", 1), ("a", 2)]
        assert sorted(await found(store, "cat", conversation_ids=(branch, "a"))) == [
            ("a", 2),
            (branch, 1),
            (branch, 2),
        ]

    async def test_a_fork_that_is_not_indexed_shows_what_it_inherits(self, store: Store) -> None:
        await say(store, "a", "a cat", "a dog")
        await index(store, "a")
        branch = await branch_off(store, "a", 2)
        assert await found(store, "cat dog", conversation_ids=(branch,)) == [(branch, 1)]

    async def test_conversations_that_one_may_not_read_are_passed_over(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await say(store, "b", "a cat", user_id=BEN)
        await index(store, "a", "b")
        assert await found(store, "cat", conversation_ids=("a", "b", "nowhere")) == [("a", 1)]
        assert await found(store, "cat", conversation_ids=("b",)) == []
        assert await found(store, "cat", conversation_ids=()) == []

    async def test_only_conversations_of_some_agents(self, store: Store) -> None:
        for session_id, agent_name in (("a", "sales"), ("b", "support"), ("c", None)):
            await say_to(store, session_id, agent_name, "a cat")
        branch = await branch_off(store, "a", 2)
        await say(store, branch, "another cat")
        await index(store, "a", "b", "c", branch)
        assert sorted(await found(store, "cat", agent_names=("sales",))) == [("a", 1), (branch, 2)]
        assert await found(store, "cat", agent_names=()) == []

    async def test_only_what_is_older_than_a_message(self, store: Store) -> None:
        for at, session_id in enumerate(("a", "b", "a", "b"), start=1):
            await append_messages(store, session_id, [Message.user("a cat", created_at=at)], user_id=ANN)
        await say(store, "c", "a cat", user_id=BEN)
        await index(store, "a", "b", "c")
        await embed(store, "a", "b", "c")
        message_id = (await store.read("a", ANN))[1].message_id
        assert sorted(await found(store, "cat", before=message_id)) == [("a", 1), ("b", 1)]
        assert sorted(await alike(store, "cat", before=message_id)) == [("a", 1), ("b", 1)]
        foreign = (await store.read("c", BEN))[0].message_id
        for unknown in ("nothing", foreign):
            with pytest.raises(InvalidInputError, match="before"):
                await found(store, "cat", before=unknown)

    async def test_pages_neither_skip_nor_repeat_while_messages_come(self, store: Store) -> None:
        await say(store, "a", *[f"a cat {'and a dog ' * (number % 3)}" for number in range(7)])
        await index(store, "a", at=10)
        await embed(store, "a")
        every = places(await search(store, "cat dog"))
        seen = await search(store, "cat dog", limit=3)
        assert (places(seen), seen.is_more) == (every[:3], True)
        await say(store, "b", *["a cat and a dog"] * 5)
        await index(store, "b", at=30)
        page = await search(store, "cat dog", limit=3, as_of=20, seen=3)
        last = await search(store, "cat dog", limit=3, as_of=20, seen=6)
        assert places(page) + places(last) == every[3:]
        assert (page.is_more, last.is_more) == (True, False)

    async def test_nothing_is_found_after_an_erasure(self, store: Store) -> None:
        await say(store, "a", "a cat", "another cat")
        branch = await branch_off(store, "a", 2)
        await index(store, "a")
        await embed(store, "a")
        await erase(store, "a", (1, 1), user_id=ANN)
        assert await found(store, "cat") == await alike(store, "cat") == [("a", 2)]
        assert await found(store, "cat", conversation_ids=(branch,)) == []

    async def test_nothing_is_found_of_a_message_that_was_withdrawn(self, store: Store) -> None:
        await say(store, "a", "a cat", "another cat")
        await index(store, "a")
        await embed(store, "a")
        await store.withdraw("a", ANN, seq=2, now=wall_clock(), refold=folded)
        assert await found(store, "cat") == await alike(store, "cat") == [("a", 1)]

    async def test_what_is_erased_while_it_is_read_never_enters(self, store: Store) -> None:
        await say(store, "a", "a cat", "another cat")
        part = await unindexed(store, "a")
        await erase(store, "a", (1, 1), user_id=ANN)
        assert await store_words(store, part)
        assert await store_meanings(store, part)
        assert await found(store, "cat") == await alike(store, "cat") == [("a", 2)]

    async def test_deleted_conversation_is_not_found_and_purged_one_is_gone(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await index(store, "a")
        await embed(store, "a")
        await store.delete("a", ANN, now=1, purge=False)
        assert await found(store, "cat") == await alike(store, "cat") == []
        assert await store.database.read(search_progress, "a") is not None
        await store.purge_deleted(before=2)
        assert await store.database.read(search_progress, "a") is None
        assert await store.database.read_long(search_backlog, model=MODEL) == SearchBacklog()

    async def test_a_transfer_takes_what_is_found_along(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await index(store, "a")
        await share(store, "a", BEN)
        offer = OwnershipTransfer(transfer_id="t", group_id="a", from_user_id=ANN, to_user_id=BEN, created_at=1)
        await store.database.write(member_operations.offer_ownership, offer, audit("a"))
        assert await store.database.write(member_operations.accept_ownership, "t", BEN, audit("a"))
        await say(store, "a", "another cat", user_id=BEN)
        await index(store, "a")
        assert sorted(await found(store, "cat", BEN)) == sorted(await found(store, "cat")) == [("a", 1), ("a", 2)]

    async def test_words_and_meanings_together(self, store: Store) -> None:
        await say(store, "a", "a cat", "a zebra", "a cat with a zebra", "a dog")
        await index(store, "a")
        await embed(store, "a")
        answer = await search(store, "cat", vector=meaning_of("z"), model=MODEL, min_similarity=0.5)
        assert places(answer)[0] == ("a", 3)
        assert sorted(places(answer)) == [("a", 1), ("a", 2), ("a", 3)]
        scores = [hit.score for hit in answer.hits]
        assert scores == sorted(scores, reverse=True)

    async def test_vectors_of_another_model_do_not_count_and_are_replaced(self, store: Store) -> None:
        await say(store, "a", "a cat")
        await embed(store, "a", model="old")
        assert await alike(store, "cat") == []
        assert await store.database.read_long(behind_in_meanings, model=MODEL, after="", now=wall_clock(), limit=9) == (
            "a",
        )
        await embed(store, "a")
        assert await alike(store, "cat") == [("a", 1)]
        assert await alike(store, "cat", model="old") == []

    async def test_what_is_behind_is_known(self, store: Store) -> None:
        await say(store, "a", "a cat", "a dog")
        await say(store, "b", "a cat")
        await append_messages(store, "open", [Message.user("nobody owns this")])
        assert await self.behind(store) == ("a", "b")
        assert await self.behind(store, after="a") == ("b",)
        assert await self.behind(store, limit=1) == ("a",)
        assert await store.database.read_long(search_backlog, model=MODEL) == SearchBacklog(words=3, meanings=3)
        await index(store, "a")
        assert await self.behind(store) == ("b",)
        assert await store.database.read_long(search_backlog) == SearchBacklog(words=1)
        branch = await branch_off(store, "a", 2)
        assert await self.behind(store) == ("b",)
        await say(store, branch, "a fork")
        assert await self.behind(store) == (branch, "b")

    async def test_work_that_is_done_or_put_off_is_not_behind(self, store: Store) -> None:
        await say(store, "a", "a cat")
        lease = await lease_of(store, "a", INDEX_SEARCH)
        assert await self.behind(store) == ()
        later = wall_clock() + MINUTE
        await store.summaries.release(lease, due_at=later, attempts=1, error="redaction")
        assert await self.behind(store) == ()
        assert await store.database.read_long(behind_in_words, after="", now=later, limit=9) == ("a",)
        assert await store.database.read_long(behind_in_meanings, model=MODEL, after="", now=wall_clock(), limit=9) == (
            "a",
        )

    async def test_a_range_follows_the_one_before(self, store: Store) -> None:
        await say(store, "a", "a cat")
        part = await unindexed(store, "a")
        assert await store_words(store, part)
        assert not await store_words(store, part)
        assert await store_meanings(store, part)
        await say(store, "a", "a dog")
        assert not await store_meanings(store, await unindexed(store, "a", after=2))
        assert await found(store, "cat dog") == [("a", 1)]

    async def test_only_the_newest_lease_of_a_living_conversation_writes(self, store: Store) -> None:
        await say(store, "a", "a cat")
        part = await unindexed(store, "a")
        stale = await store.summaries.claim("a", INDEX_SEARCH, now=0, lease_microseconds=0)
        assert stale is not None
        fresh = await store.summaries.claim("a", INDEX_SEARCH, now=wall_clock() + MINUTE, lease_microseconds=MINUTE)
        if fresh is None:
            await store.summaries.release(stale, due_at=None)
            fresh = await lease_of(store, "a", INDEX_SEARCH)
        assert not await store.database.write_relaxed(index_words, stale, part)
        await store.delete("a", ANN, now=1, purge=False)
        assert not await store.database.write_relaxed(index_words, fresh, part)

    async def test_messages_that_were_given_up_are_counted(self, store: Store) -> None:
        await say(store, "a", "a cat", "a dog")
        whole = await unindexed(store, "a")
        part = IndexedRange(
            conversation_id="a", owner_id=ANN, first=0, after=0, end_seq=2, words=whole.words[:1], parked=1, read_at=1
        )
        assert await store_words(store, part)
        assert await found(store, "cat dog") == [("a", 1)]
        assert await store.database.read_long(search_backlog) == SearchBacklog(parked=1)

    async def test_no_word_is_an_order(self, store: Store) -> None:
        await say(store, "a", "a cat not a dog")
        await index(store, "a")
        for text in ("*", '"', "%_", "|", "'", "\0", "\\", "(", "-"):
            assert await found(store, text) == []
        for text in ("cat NOT dog", "cat*", '"cat', "terms:cat", "cat\0", "NEAR(cat dog)", "cat & !dog", "cat<->dog"):
            assert await found(store, text) == [("a", 1)]

    async def behind(self, store: Store, *, after: str = "", limit: int = 9) -> Sequence[str]:
        return await store.database.read_long(behind_in_words, after=after, now=wall_clock(), limit=limit)

    async def test_what_is_near_in_a_branch_is_found(self, store: Store) -> None:
        said = [Message.user("a zoo"), Message.assistant("a cat"), Message.assistant("a zebra"), Message.user("a dog")]
        await append_messages(store, "a", said, user_id=ANN)
        await say(store, "b", "another zoo")
        await embed(store, "a", "b")
        assert await near(store, "a", "z") == [3, 1]
        assert await near(store, "a", "z", limit=1) == [3]
        assert await near(store, "a", "z", until=2) == [1]
        assert await near(store, "a", "dog", until=4) == [4, 2]

    async def test_a_fork_is_near_to_its_own_path_alone(self, store: Store) -> None:
        await say(store, "a", "a zoo", "a zebra", "a lizard")
        branch = await branch_off(store, "a", 2)
        await say(store, branch, "a wizard")
        await embed(store, "a", branch)
        assert await near(store, branch, "z", until=2) == [2, 1]
        assert await near(store, branch, "z", until=1) == [1]
        assert await near(store, "a", "z", until=3) == [3, 2, 1]

    async def test_what_is_gone_is_near_to_nothing(self, store: Store) -> None:
        await say(store, "a", "a zoo", "a zebra", "a lizard")
        await embed(store, "a")
        await erase(store, "a", (1, 1), user_id=ANN)
        await store.withdraw("a", ANN, seq=3, now=wall_clock(), refold=folded)
        assert await near(store, "a", "z") == [2]

    async def test_a_posted_summary_is_near_to_nothing(self, store: Store) -> None:
        await say(store, "a", "a zoo")
        summary = Message(role="summary", content="they spoke of a zoo")
        await append_messages(store, "a", [summary], user_id=ANN)
        await embed(store, "a")
        assert await near(store, "a", "z") == [1]
