"""The index in the database of the log: what goes out of view is gone from it at once."""

from __future__ import annotations

import pytest

from reactor_memory.models.ledger import Fact
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, wall_clock
from reactor_memory.testing.recall import asked, indexed, part, seqs, talk
from reactor_memory.testing.summary_recording import claimed, folded, ledger_of, seal, session_of
from tests.scenes.stores import SqlStore


@pytest.mark.anyio
class IndexInDatabase:
    """What goes out of view is gone at once from an index in the same database."""

    async def test_a_withdrawn_message_is_not_found(self, store: SqlStore) -> None:
        index = store.index
        await append_messages(store, "s", talk("one", "two", "walrus", "four"))
        await seal(store, "s", 1, 2)
        await seal(store, "s", 3, 4)
        await fork(store, "s", at_seq=5, fork_id="s~a")
        for each in (talk("one", "two"), talk("walrus", "four", start=3)):
            lease = await claimed(store, "s")
            assert await index.extend(lease, part("s", each))
            await store.summaries.release(lease, due_at=None)
        await store.withdraw("s", None, seq=4, now=wall_clock(), refold=folded)
        assert await index.indexed_until("s") == 2
        assert await seqs(store, index, "s", "walrus four") == []
        assert await seqs(store, index, "s~a", "walrus four") == []
        assert (await ledger_of(store, "s")).segments[-1].stale

    @pytest.mark.parametrize("purge", [True, False])
    async def test_deleted_session_is_not_extended_and_purged_one_not_found(self, store: SqlStore, purge: bool) -> None:
        index = store.index
        await indexed(store, index, "s", talk("walrus", "yes"))
        branch = (await session_of(store, "s")).branch
        lease = await claimed(store, "s")
        await store.delete("s", None, now=wall_clock(), purge=purge)
        assert not await index.extend(lease, part("s", talk("late", "yes", start=3)))
        assert bool((await index.search(asked("s", branch, "walrus"))).found) is not purge

    async def test_ranges_are_read_along_the_branch(self, store: SqlStore) -> None:
        await append_messages(store, "s", talk("one", "two", "three", "four"))
        await fork(store, "s", at_seq=3, fork_id="s~a")
        await append_messages(store, "s~a", talk("drei", "vier", start=3))
        read = await store.read_ranges("s~a", None, [(4, 9), (1, 1), (2, 3), (3, 3)])
        assert [message.content for message in read] == ["one", "two", "drei", "vier"]
        assert await store.read_ranges("s~a", None, []) == ()
        assert await store.read_ranges("unknown", None, [(1, 2)]) == ()

    async def test_facts_about_some_anchors(self, store: SqlStore) -> None:
        await append_messages(store, "s", talk("one", "two", "three", "four"))
        facts = [Fact(anchor=f"a {n % 2}", key="k", value=str(n), source_seq=n, verified=n != 3) for n in range(1, 5)]
        await seal(store, "s", 1, 2, facts[:2])
        await seal(store, "s", 3, 4, facts[2:])
        await fork(store, "s", at_seq=3, fork_id="s~a")

        async def values(session_id: str, *anchors: str) -> list[str]:
            branch = (await session_of(store, session_id)).branch
            return [fact.value for fact in await store.summaries.read_facts_about(session_id, branch, anchors)]

        assert await values("s", "a 0", "a 1") == ["1", "2", "4"]
        assert await values("s", "a 1", "unknown") == ["1"]
        assert await values("s~a", "a 0") == ["2"]

    async def test_facts_about_anchors_are_those_of_the_ledger(self, store: SqlStore) -> None:
        """What an ancestor seals behind the first segment of a fork is not the fork's, nor what went out of view."""

        async def values(session_id: str) -> list[str]:
            branch = (await session_of(store, session_id)).branch
            about = await store.summaries.read_facts_about(session_id, branch, ["a"])
            assert about == tuple(
                f for f in (await store.summaries.read_ledger(session_id, branch)).facts if f.anchor == "a"
            )
            return [fact.value for fact in about]

        def stated(owner: str, seq: int) -> Fact:
            return Fact(anchor="a", key="k", value=f"{seq} of {owner}", source_seq=seq, verified=True)

        await append_messages(store, "s", talk(*"12345678"))
        await seal(store, "s", 1, 2, [stated("s", 1)])
        await fork(store, "s", at_seq=7, fork_id="s~a")
        await append_messages(store, "s~a", talk("sieben", "acht", start=7))
        await seal(store, "s~a", 3, 8, [stated("s~a", 3), stated("s~a", 7)])
        await seal(store, "s", 3, 4, [stated("s", 3)])
        await seal(store, "s", 5, 8, [stated("s", 5)])
        assert await values("s") == ["1 of s", "3 of s", "5 of s"]
        assert await values("s~a") == ["1 of s", "3 of s~a", "7 of s~a"]
        await fork(store, "s~a", at_seq=9, fork_id="s~b")
        assert await values("s~b") == ["1 of s", "3 of s~a", "7 of s~a"]
        await store.withdraw("s", None, seq=8, now=wall_clock(), refold=folded)
        assert await values("s") == ["1 of s", "3 of s"]
