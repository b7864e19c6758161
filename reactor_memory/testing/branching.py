"""Forks that continue the numbering, and the newest message taken back."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import InvalidInputError, SessionNotFoundError
from reactor_memory.models import Message, Session
from reactor_memory.models.requests import Appended, ContextQuery
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left, seqs, texts


async def fork(
    store: MessageStore,
    session_id: str,
    fork_id: str,
    at_seq: int,
    *,
    own: Sequence[str] = (),
    user_id: str | None = None,
) -> Session:
    """A fork, with a message of its own for every text of `own`."""
    session = await store.fork(session_id, user_id, at_seq=at_seq, fork_id=fork_id, now=wall_clock())
    if own:
        await append_messages(store, fork_id, [Message.user(text) for text in own], user_id=user_id)
    return session


async def withdraw(store: MessageStore, session_id: str, seq: int | None = None) -> Message:
    withdrawn = await store.withdraw(session_id, None, seq=seq, now=wall_clock(), refold=nothing_left)
    assert withdrawn.conversation_id == session_id
    return withdrawn.message


async def branch_of(store: MessageStore, session_id: str) -> list[tuple[str, int, int | None]]:
    session = await store.get_session(session_id, None)
    assert session is not None
    return [(part.conversation_id, part.start_seq, part.end_seq) for part in session.branch]


async def length_of(store: MessageStore, session_id: str) -> int:
    session = await store.get_session(session_id, None)
    assert session is not None
    return session.last_seq


class Forks:
    """A fork at seq k shares 1..k-1 and writes from k."""

    async def test_a_fork_shares_what_came_before(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(5), user_id="u")
        session = await store.fork("s", "u", at_seq=4, fork_id="s~f", now=7_000)
        assert session == await store.get_session("s~f", "u")
        assert (session.session_id, session.group_id, session.owner_id) == ("s~f", "s", "u")
        assert (session.forked_from_id, session.forked_at_seq, session.last_seq) == ("s", 4, 3)
        assert (session.created_at, session.updated_at, session.deleted_at) == (7_000, 7_000, None)
        assert [(part.conversation_id, part.start_seq, part.end_seq) for part in session.branch] == [
            ("s", 1, 3),
            ("s~f", 4, None),
        ]
        assert texts(await store.read("s~f", "u")) == ["message 1", "message 2", "message 3"]

    async def test_a_fork_continues_the_numbering(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(5))
        await fork(store, "s", "s~f", 4)
        assert await append_messages(store, "s~f", numbered(2, start=40)) == Appended(first_seq=4, last_seq=5)
        messages = await store.read("s~f", None)
        assert seqs(messages) == [1, 2, 3, 4, 5]
        assert texts(messages) == ["message 1", "message 2", "message 3", "message 40", "message 41"]

    async def test_branches_grow_apart(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 3, own=["in the fork"])
        await append_messages(store, "s", numbered(1, start=4))
        assert texts(await store.read("s", None, after=2)) == ["message 3", "message 4"]
        assert texts(await store.read("s~f", None, after=2)) == ["in the fork"]

    async def test_a_fork_at_the_first_message_shares_nothing(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 1)
        assert await branch_of(store, "s~f") == [("s~f", 1, None)]
        assert await store.read("s~f", None) == ()
        assert await append_messages(store, "s~f", numbered(1)) == Appended(first_seq=1, last_seq=1)

    async def test_a_fork_behind_the_last_message_shares_all(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 4, own=["own"])
        await append_messages(store, "s", numbered(1, start=4))
        assert texts(await store.read("s~f", None)) == ["message 1", "message 2", "message 3", "own"]

    @pytest.mark.parametrize("at_seq", [-1, 0, 5, 100])
    async def test_a_position_out_of_range_is_refused(self, store: MessageStore, at_seq: int) -> None:
        await append_messages(store, "s", numbered(3))
        with pytest.raises(InvalidInputError):
            await fork(store, "s", "s~f", at_seq)
        assert await store.get_session("s~f", None) is None

    async def test_an_unknown_session_cannot_be_forked(self, store: MessageStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await fork(store, "s", "s~f", 1)

    async def test_a_fork_id_is_used_once(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 3, own=["own"])
        with pytest.raises(InvalidInputError):
            await fork(store, "s", "s~f", 2)
        assert texts(await store.read("s~f", None)) == ["message 1", "message 2", "own"]

    @pytest.mark.parametrize("fork_id", ["f", "t~f", "s"])
    async def test_a_fork_id_names_its_group(self, store: MessageStore, fork_id: str) -> None:
        await append_messages(store, "s", numbered(3))
        with pytest.raises(InvalidInputError):
            await fork(store, "s", fork_id, 2)

    async def test_the_owner_is_the_owner_of_the_group(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        session = await fork(store, "s", "s~f", 2, user_id="whoever")
        assert session.owner_id is None
        assert seqs(await store.read("s~f", "another")) == [1]

    async def test_a_fork_of_a_fork(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.user(f"s{seq}") for seq in range(1, 7)])
        await fork(store, "s", "s~a", 4, own=["a4", "a5", "a6"])
        await fork(store, "s~a", "s~b", 6, own=["b6"])
        assert await branch_of(store, "s~b") == [("s", 1, 3), ("s~a", 4, 5), ("s~b", 6, None)]
        assert texts(await store.read("s~b", None)) == ["s1", "s2", "s3", "a4", "a5", "b6"]
        session = await store.get_session("s~b", None)
        assert session is not None
        assert (session.group_id, session.forked_from_id, session.forked_at_seq) == ("s", "s~a", 6)

    async def test_a_fork_of_a_fork_before_its_own_messages(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.user(f"s{seq}") for seq in range(1, 7)])
        await fork(store, "s", "s~a", 5, own=["a5"])
        await fork(store, "s~a", "s~b", 3, own=["b3", "b4"])
        await fork(store, "s~a", "s~c", 5, own=["c5"])
        assert await branch_of(store, "s~b") == [("s", 1, 2), ("s~b", 3, None)]
        assert await branch_of(store, "s~c") == [("s", 1, 4), ("s~c", 5, None)]
        assert texts(await store.read("s~b", None)) == ["s1", "s2", "b3", "b4"]
        assert texts(await store.read("s~c", None)) == ["s1", "s2", "s3", "s4", "c5"]

    async def test_a_chain_of_forks_without_messages_of_their_own(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(2))
        await fork(store, "s", "s~a", 3)
        await fork(store, "s~a", "s~b", 3)
        await fork(store, "s~b", "s~c", 3, own=["c3"])
        assert texts(await store.read("s~c", None)) == ["message 1", "message 2", "c3"]

    async def test_reads_across_the_ranges_of_a_branch(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(10))
        await fork(store, "s", "s~a", 5, own=[f"a{seq}" for seq in range(5, 13)])
        await fork(store, "s~a", "s~b", 9, own=[f"b{seq}" for seq in range(9, 13)])
        whole = texts(await store.read("s~b", None))
        expected = [f"message {seq}" for seq in range(1, 5)]
        expected += [f"a{seq}" for seq in range(5, 9)] + [f"b{seq}" for seq in range(9, 13)]
        assert whole == expected
        for after in range(0, 13, 2):
            for until in (None, 1, 4, 5, 8, 9, 12):
                part = expected[after:until]
                assert texts(await store.read("s~b", None, after=after, until=until)) == part
                assert texts(await store.read("s~b", None, after=after, until=until, last=5)) == part[-5:]
                assert texts(await store.read("s~b", None, after=after, until=until, limit=5)) == part[:5]

    async def test_background_and_context_read_along_the_branch(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 4, own=["f4", "f5"])
        behind = await store.read_background("s~f", after=1, limit=3)
        session = behind.session
        assert session == await store.get_session("s~f", None)
        assert texts(behind.messages) == ["message 2", "message 3", "f4"]
        rows = await store.read_context(ContextQuery(session_id="s~f", user_id=None, last_count=4))
        assert rows.session == session
        assert texts(rows.messages) == ["message 2", "message 3", "f4", "f5"]

    async def test_forking_and_appending_at_once(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(fork, store, "s", f"s~{number}", 4)
                tasks.start_soon(append_messages, store, "s", numbered(2))
        assert seqs(await store.read("s", None)) == list(range(1, 24))
        for number in range(10):
            assert seqs(await store.read(f"s~{number}", None)) == [1, 2, 3]


class Withdrawal:
    """The newest message taken back: out of every view, its seq never used again."""

    async def test_the_newest_message_goes_out_of_view(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        message = await withdraw(store, "s")
        assert (message.seq, message.content) == (3, "message 3")
        assert seqs(await store.read("s", None)) == [1, 2]
        assert seqs(await store.read("s", None, last=1)) == [2]
        rows = await store.read_context(ContextQuery(session_id="s", user_id=None, last_count=2))
        assert seqs(rows.messages) == [1, 2]
        assert seqs((await store.read_background("s")).messages) == [1, 2]

    async def test_its_seq_is_not_used_again(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await withdraw(store, "s")
        assert await length_of(store, "s") == 3
        assert await append_messages(store, "s", numbered(1, start=4)) == Appended(first_seq=4, last_seq=4)
        assert seqs(await store.read("s", None)) == [1, 2, 4]
        assert seqs(await store.read("s", None, last=2)) == [2, 4]
        assert seqs(await store.read("s", None, limit=3)) == [1, 2, 4]

    async def test_again_and_again(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        assert [(await withdraw(store, "s")).seq for _ in range(3)] == [3, 2, 1]
        assert await store.read("s", None) == ()
        with pytest.raises(InvalidInputError):
            await withdraw(store, "s")
        assert await append_messages(store, "s", numbered(1)) == Appended(first_seq=4, last_seq=4)

    async def test_the_message_can_be_named(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        assert (await withdraw(store, "s", 3)).seq == 3
        for seq in (0, 1, 3, 4):
            with pytest.raises(InvalidInputError):
                await withdraw(store, "s", seq)
        assert (await withdraw(store, "s", 2)).seq == 2
        assert seqs(await store.read("s", None)) == [1]

    async def test_an_unknown_session_has_nothing_to_withdraw(self, store: MessageStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await withdraw(store, "s")

    async def test_an_inherited_message_is_refused(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 4, own=["f4"])
        assert (await withdraw(store, "s~f")).content == "f4"
        with pytest.raises(InvalidInputError):
            await withdraw(store, "s~f")
        assert seqs(await store.read("s~f", None)) == seqs(await store.read("s", None)) == [1, 2, 3]

    async def test_it_leaves_every_branch_that_showed_it(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~before", 3, own=["b3"])
        await fork(store, "s", "s~behind", 4, own=["h4"])
        await fork(store, "s~behind", "s~below", 5, own=["l5"])
        withdrawn = await store.withdraw("s", None, seq=3, now=wall_clock(), refold=nothing_left)
        assert {branch.session_id for branch in withdrawn.branches} == {"s", "s~behind", "s~below"}
        for branch in withdrawn.branches:
            assert branch.branch == (await store.read_background(branch.session_id)).session.branch
        assert texts(await store.read("s~before", None)) == ["message 1", "message 2", "b3"]
        assert texts(await store.read("s~behind", None)) == ["message 1", "message 2", "h4"]
        assert texts(await store.read("s~below", None)) == ["message 1", "message 2", "h4", "l5"]

    async def test_what_a_fork_withdraws_stays_in_no_other_branch(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 3, own=["f3"])
        withdrawn = await store.withdraw("s~f", None, seq=None, now=wall_clock(), refold=nothing_left)
        assert [branch.session_id for branch in withdrawn.branches] == ["s~f"]
        assert seqs(await store.read("s", None)) == [1, 2, 3]

    async def test_forks_at_and_behind_a_withdrawn_message(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await withdraw(store, "s")
        await fork(store, "s", "s~at", 3, own=["a3"])
        await fork(store, "s", "s~behind", 4, own=["b4"])
        assert seqs(await store.read("s~at", None)) == [1, 2, 3]
        assert seqs(await store.read("s~behind", None)) == [1, 2, 4]
