"""Appends done once under a key: a part of the suite of message stores."""

from __future__ import annotations

import anyio
import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import IdempotencyConflictError, SessionOwnershipError
from reactor_memory.models import Message
from reactor_memory.models.requests import Appended, AppendRequest
from reactor_memory.testing.builders import append_messages, numbered, stored_form, wall_clock
from reactor_memory.testing.log import nothing_left, seqs, texts


class Idempotency:
    """The same key and content give the first answer for ever; other content is a conflict."""

    async def test_a_repeated_batch_is_stored_once(self, store: MessageStore) -> None:
        first = await append_messages(store, "s", numbered(3), idempotency_key="k")
        assert first == Appended(first_seq=1, last_seq=3)
        await append_messages(store, "s", numbered(2, start=4))
        for _ in range(3):
            again = await append_messages(store, "s", numbered(3), idempotency_key="k")
            assert again == Appended(first_seq=1, last_seq=3, replayed=True)
        assert seqs(await store.read("s", None)) == [1, 2, 3, 4, 5]

    async def test_a_replay_leaves_the_session_alone(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3), idempotency_key="k", now=1_000)
        before = await store.get_session("s", None)
        await append_messages(store, "s", numbered(3), idempotency_key="k", now=2_000)
        assert await store.get_session("s", None) == before

    async def test_other_content_under_the_key_is_a_conflict(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="one")
        with pytest.raises(IdempotencyConflictError) as caught:
            await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="two")
        assert caught.value.session_id == "s"
        assert seqs(await store.read("s", None)) == [1, 2, 3]
        again = await append_messages(store, "s", numbered(3), idempotency_key="k", fingerprint="one")
        assert again.replayed

    async def test_without_a_key_nothing_is_compared(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1), fingerprint="same")
        await append_messages(store, "s", numbered(1), fingerprint="same")
        assert seqs(await store.read("s", None)) == [1, 2]

    async def test_a_key_belongs_to_one_conversation(self, store: MessageStore) -> None:
        await append_messages(store, "one", numbered(2), idempotency_key="k", fingerprint="one")
        other = await append_messages(store, "two", numbered(1), idempotency_key="k", fingerprint="two")
        assert other == Appended(first_seq=1, last_seq=1)
        await store.fork("one", None, at_seq=3, fork_id="one~f", now=wall_clock())
        in_fork = await append_messages(store, "one~f", numbered(1), idempotency_key="k", fingerprint="three")
        assert in_fork == Appended(first_seq=3, last_seq=3)
        again = await append_messages(store, "one~f", numbered(1), idempotency_key="k", fingerprint="three")
        assert again == Appended(first_seq=3, last_seq=3, replayed=True)

    async def test_many_keys_in_one_session(self, store: MessageStore) -> None:
        for number in range(5):
            await append_messages(store, "s", numbered(2), idempotency_key=f"k{number}")
        again = await append_messages(store, "s", numbered(2), idempotency_key="k3")
        assert again == Appended(first_seq=7, last_seq=8, replayed=True)

    async def test_the_same_batch_many_times_at_once(self, store: MessageStore) -> None:
        answers: list[Appended] = []

        async def append() -> None:
            answers.append(await append_messages(store, "s", numbered(3), idempotency_key="k"))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(append)
        assert {(answer.first_seq, answer.last_seq) for answer in answers} == {(1, 3)}
        assert [answer.replayed for answer in answers].count(False) == 1
        assert seqs(await store.read("s", None)) == [1, 2, 3]

    async def test_many_batches_many_times_at_once(self, store: MessageStore) -> None:
        answers: dict[str, set[tuple[int, int]]] = {}

        async def append(key: str) -> None:
            answer = await append_messages(store, "s", numbered(2), idempotency_key=key)
            answers.setdefault(key, set()).add((answer.first_seq, answer.last_seq))

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(append, f"k{number % 10}")
        assert seqs(await store.read("s", None)) == list(range(1, 21))
        assert all(len(answer) == 1 for answer in answers.values())

    async def test_of_two_contents_under_one_key_one_wins(self, store: MessageStore) -> None:
        outcomes: list[str] = []

        async def append(content: str) -> None:
            try:
                await append_messages(store, "s", [Message.user(content)], idempotency_key="k", fingerprint=content)
            except IdempotencyConflictError:
                return
            outcomes.append(content)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(append, f"content {number}")
        assert texts(await store.read("s", None)) == outcomes

    async def test_a_stranger_learns_nothing_from_a_key(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1), user_id="owner", idempotency_key="k")
        for fingerprint in ("fingerprint", "other"):
            with pytest.raises(SessionOwnershipError):
                await append_messages(
                    store, "s", numbered(1), user_id="stranger", idempotency_key="k", fingerprint=fingerprint
                )

    async def test_a_replay_answers_after_a_withdrawal(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(2), idempotency_key="k")
        await store.withdraw("s", None, seq=2, now=wall_clock(), refold=nothing_left)
        again = await append_messages(store, "s", numbered(2), idempotency_key="k")
        assert again == Appended(first_seq=1, last_seq=2, replayed=True)
        assert seqs(await store.read("s", None)) == [1]

    async def test_a_whole_batch_is_atomic_with_its_key(self, store: MessageStore) -> None:
        request = AppendRequest(
            session_id="s",
            user_id=None,
            messages=tuple(stored_form(message, now=1) for message in numbered(100)),
            now=1,
            idempotency_key="k",
            fingerprint="f",
        )
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.append(request)
        assert await store.append(request) in (
            Appended(first_seq=1, last_seq=100),
            Appended(first_seq=1, last_seq=100, replayed=True),
        )
        assert len(await store.read("s", None)) == 100
