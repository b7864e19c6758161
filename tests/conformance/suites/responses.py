"""Responses that are being written: what every store of them promises, and what one beside the log does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import TypeAlias

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import InvalidInputError, LimitExceededError, SessionDeletedError, SessionNotFoundError
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.responses.models import Addition, Ending, Response, ResponseSignals, ResponseStore
from reactor_memory.features.responses.polling import PolledSignals
from reactor_memory.models import Message, ResponseState
from reactor_memory.testing.builders import append_messages
from reactor_memory.testing.log import TEXTS, nothing_left
from reactor_memory.testing.summary_recording import Store

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
EXPIRES = 60 * SECOND
KEEP = 600 * SECOND

_conversations: Iterator[int] = count()

Conversation: TypeAlias = Callable[[], Awaitable[str]]
"""Begins a conversation; its id."""


def new_id() -> str:
    """The id of a conversation of its own: a store may be shared by many examples."""
    return f"talk-{next(_conversations)}"


async def begun(log: MessageStore) -> str:
    """A conversation with one message, in the log."""
    session_id = new_id()
    await append_messages(log, session_id, [Message.user("hello")], user_id="u")
    return session_id


def response(conversation_id: str, response_id: str = "r1", *, now: int = NOW) -> Response:
    return Response(
        conversation_id=conversation_id,
        response_id=response_id,
        client_id="agent",
        created_at=now,
        updated_at=now,
        expires_at=now + EXPIRES,
    )


async def start(responses: ResponseStore, conversation_id: str, response_id: str = "r1", *, now: int = NOW) -> Response:
    new = response(conversation_id, response_id, now=now)
    return await responses.start_response(new, keep_until=now + KEEP)


def addition(
    to: Response, texts: Sequence[str], *, first: int = 1, now: int = NOW, fence: int | None = None
) -> Addition:
    return Addition(
        conversation_id=to.conversation_id,
        response_id=to.response_id,
        client_id=to.client_id,
        fence=to.fence if fence is None else fence,
        first_event=first,
        texts=tuple(texts),
        now=now,
        expires_at=now + EXPIRES,
        max_events=1000,
        max_size=2**30,
    )


async def add(responses: ResponseStore, to: Response, *texts: str, first: int = 1, now: int = NOW) -> Response:
    added = await responses.append_pieces(addition(to, texts, first=first, now=now))
    assert added is not None
    return added


def ending(
    of: Response, state: ResponseState = "completed", *, message_id: str | None = None, now: int = NOW
) -> Ending:
    return Ending(
        conversation_id=of.conversation_id,
        response_id=of.response_id,
        client_id=of.client_id,
        fence=of.fence,
        state=state,
        message_id=message_id,
        now=now,
        expires_at=now + KEEP,
    )


async def pieces(responses: ResponseStore, of: Response, *, after: int = 0, limit: int = 1000) -> list[tuple[int, str]]:
    found = await responses.read_pieces(of.conversation_id, of.response_id, after=after, limit=limit)
    return [(piece.event, piece.text) for piece in found]


async def standing(responses: ResponseStore, of: Response) -> Response | None:
    return await responses.get_response(of.conversation_id, of.response_id)


def signals_of(responses: ResponseStore) -> ResponseSignals:
    if isinstance(responses, ResponseSignals):
        return responses
    return PolledSignals(responses, min_seconds=0.005, max_seconds=0.02)


@pytest.mark.anyio
class ResponseStoreConformance:
    """What every `ResponseStore` promises. The fixture `responses` gives an opened, empty one, `conversation` makes ids
    of conversations for it.
    """

    @pytest.fixture
    def conversation(self) -> Conversation:
        async def name() -> str:
            return new_id()

        return name

    async def test_a_conversation_has_no_response_at_first(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        unknown = response(await conversation(), "r9")
        assert await standing(responses, unknown) is None
        assert await responses.list_responses([unknown.conversation_id, "elsewhere"], limit=5) == ()
        assert await pieces(responses, unknown) == []
        assert await responses.append_pieces(addition(unknown, ["a"])) is None
        assert await responses.finish_response(ending(unknown)) is None
        assert await responses.request_stop(unknown.conversation_id, "r9", now=NOW) is None

    async def test_a_started_response_is_kept_as_it_was_given(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        new = replace(response(await conversation()), producer="null")
        started = await responses.start_response(new, keep_until=NOW + KEEP)
        assert started == replace(new, fence=1)
        assert await standing(responses, started) == started

    async def test_starting_again_changes_nothing(self, responses: ResponseStore, conversation: Conversation) -> None:
        first = await start(responses, await conversation())
        added = await add(responses, first, "a")
        assert await start(responses, first.conversation_id, now=NOW + 5) == added

    async def test_pieces_are_read_from_any_place(self, responses: ResponseStore, conversation: Conversation) -> None:
        started = await start(responses, await conversation())
        assert (await add(responses, started, "a", "b")).last_event == 2
        added = await add(responses, started, "c", "d", "e", first=3, now=NOW + 7)
        assert added == replace(started, last_event=5, size=5, updated_at=NOW + 7, expires_at=NOW + 7 + EXPIRES)
        assert await standing(responses, started) == added
        assert await pieces(responses, started) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
        assert await pieces(responses, started, after=3) == [(4, "d"), (5, "e")]
        assert await pieces(responses, started, after=1, limit=2) == [(2, "b"), (3, "c")]
        assert await pieces(responses, started, after=5) == await pieces(responses, started, after=2**40) == []

    async def test_repeated_pieces_do_no_harm(self, responses: ResponseStore, conversation: Conversation) -> None:
        started = await start(responses, await conversation())
        await add(responses, started, "a", "b")
        assert (await add(responses, started, "x", "y")).last_event == 2
        assert (await add(responses, started, "y", "c", first=2)).size == 3
        assert await pieces(responses, started) == [(1, "a"), (2, "b"), (3, "c")]

    async def test_a_gap_is_refused(self, responses: ResponseStore, conversation: Conversation) -> None:
        started = await start(responses, await conversation())
        with pytest.raises(InvalidInputError, match="number 1"):
            await add(responses, started, "a", first=2)
        await add(responses, started, "a", "b")
        with pytest.raises(InvalidInputError, match="number 3"):
            await add(responses, started, "d", first=4)
        assert await pieces(responses, started) == [(1, "a"), (2, "b")]

    async def test_a_response_has_an_end_to_its_length(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        started = await start(responses, await conversation())
        await add(responses, started, "é")
        for limit in ({"max_events": 2}, {"max_size": 3}):
            tight = replace(addition(started, ["é", "x"], first=2), **limit)
            with pytest.raises(LimitExceededError) as refused:
                await responses.append_pieces(tight)
            assert (refused.value.actual, refused.value.limit) in {(3, 2), (5, 3)}
        assert await pieces(responses, started) == [(1, "é")]
        exact = replace(addition(started, ["é", "x"], first=2), max_events=3, max_size=5)
        assert (await responses.append_pieces(exact)) == await standing(responses, started)

    @pytest.mark.parametrize("text", [*TEXTS.values(), "", "\n\ndata: x\r\n", "\u2028"], ids=repr)
    async def test_pieces_come_back_as_they_were(
        self, responses: ResponseStore, conversation: Conversation, text: str
    ) -> None:
        started = await start(responses, await conversation())
        await add(responses, started, text, text)
        assert await pieces(responses, started) == [(1, text), (2, text)]
        latest = await standing(responses, started)
        assert latest is not None
        assert latest.size == 2 * len(text.encode())

    async def test_the_newer_response_fences_the_older(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        old = await start(responses, await conversation())
        await add(responses, old, "a")
        new = await start(responses, old.conversation_id, "r2", now=NOW + 3)
        assert new.fence > old.fence
        late = await responses.append_pieces(addition(old, ["b"], first=2, now=NOW + 4))
        assert late == await standing(responses, old)
        assert late == replace(
            old, state="superseded", last_event=1, size=1, updated_at=NOW + 3, expires_at=NOW + 3 + KEEP
        )
        assert await responses.finish_response(ending(old, now=NOW + 4)) == late
        assert await pieces(responses, old) == [(1, "a")]
        assert (await add(responses, new, "c", now=NOW + 4)).state == "running"

    async def test_only_its_own_producer_opens_a_response(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        started = await start(responses, await conversation())
        assert await responses.append_pieces(addition(started, ["a"], fence=started.fence + 1)) == started
        assert await responses.finish_response(replace(ending(started), fence=started.fence + 1)) == started
        assert await responses.append_pieces(replace(addition(started, ["a"]), client_id="other")) == started
        assert await responses.finish_response(replace(ending(started), client_id="other")) == started
        assert await pieces(responses, started) == []

    async def test_newest_of_many_at_once_is_only_one_that_runs(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        conversation_id = await conversation()
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(start, responses, conversation_id, f"r{number}")
        listed = await responses.list_responses([conversation_id], limit=100)
        assert [each.fence for each in listed] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert [each.state for each in listed] == ["running", *["superseded"] * 7]

    async def test_pieces_sent_many_times_at_once_are_there_once(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        started = await start(responses, await conversation())
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(add, responses, started, "a", "b", "c")
        assert await pieces(responses, started) == [(1, "a"), (2, "b"), (3, "c")]

    @pytest.mark.parametrize("state", ["completed", "failed", "stopped"])
    async def test_what_is_finished_stays_as_it_is(
        self, responses: ResponseStore, conversation: Conversation, state: ResponseState
    ) -> None:
        started = await start(responses, await conversation())
        added = await add(responses, started, "a")
        ended = await responses.finish_response(ending(started, state, message_id="m1", now=NOW + 2))
        assert ended == await standing(responses, started)
        assert ended == replace(added, state=state, message_id="m1", updated_at=NOW + 2, expires_at=NOW + 2 + KEEP)
        assert await responses.append_pieces(addition(started, ["b"], first=2)) == ended
        assert await responses.finish_response(ending(started, "failed", now=NOW + 9)) == ended
        assert await responses.request_stop(started.conversation_id, started.response_id, now=NOW + 9) == ended
        again = await start(responses, started.conversation_id, "r2", now=NOW + 10)
        assert again.fence > started.fence
        assert await standing(responses, started) == ended

    async def test_a_stop_reaches_the_producer_and_ends_nothing(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        started = await start(responses, await conversation())
        asked = await responses.request_stop(started.conversation_id, started.response_id, now=NOW + 1)
        assert asked == replace(started, stop_requested=True, updated_at=NOW + 1)
        assert await responses.request_stop(started.conversation_id, started.response_id, now=NOW + 2) == asked
        assert (await add(responses, started, "a", now=NOW + 3)).stop_requested
        assert (await add(responses, started, "b", first=2, now=NOW + 3)).last_event == 2

    async def test_a_response_whose_producer_is_silent_takes_no_more(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        started = await start(responses, await conversation())
        late = started.expires_at
        assert await responses.append_pieces(addition(started, ["a"], now=late)) == started
        assert await responses.finish_response(ending(started, now=late)) == started
        assert await responses.request_stop(started.conversation_id, started.response_id, now=late) == started
        await start(responses, started.conversation_id, "r2", now=late)
        assert await standing(responses, started) == started
        added = await add(responses, await start(responses, started.conversation_id, "r3", now=late), "a", now=late)
        assert added.expires_at == late + EXPIRES

    async def test_the_newest_responses_of_conversations(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        one, other = await conversation(), await conversation()
        for number in range(3):
            await start(responses, one, f"a{number}")
        await start(responses, other, "b0")
        listed = await responses.list_responses([other, one, "unknown"], limit=2)
        assert [each.response_id for each in listed] == ["b0", "a2", "a1"]

    async def test_responses_of_one_id_in_two_conversations_are_two(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        one, other = await start(responses, await conversation()), await start(responses, await conversation())
        await add(responses, one, "one")
        await add(responses, other, "other")
        assert await pieces(responses, one) == [(1, "one")]
        assert await pieces(responses, other) == [(1, "other")]

    async def test_forgetting_conversations_leaves_the_others(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        gone, stays = await start(responses, await conversation()), await start(responses, await conversation())
        for each in (gone, stays):
            await add(responses, each, "a")
        await responses.forget_responses([gone.conversation_id, "unknown"])
        assert await standing(responses, gone) is None
        assert await pieces(responses, gone) == []
        assert await responses.list_responses([gone.conversation_id], limit=5) == ()
        assert await pieces(responses, stays) == [(1, "a")]

    async def test_forgetting_answers_takes_those_that_became_these_messages(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        conversation_id = await conversation()
        for number in range(3):
            started = await start(responses, conversation_id, f"r{number}")
            await add(responses, started, "a")
            if number < 2:
                await responses.finish_response(ending(started, message_id=f"m{number}"))
        await responses.forget_answers([conversation_id], [])
        await responses.forget_answers([conversation_id, "unknown"], ["m0", "m9"])
        listed = await responses.list_responses([conversation_id], limit=5)
        assert [each.response_id for each in listed] == ["r2", "r1"]
        assert await pieces(responses, response(conversation_id, "r0")) == []
        assert await pieces(responses, response(conversation_id, "r1")) == [(1, "a")]

    async def test_what_is_not_over_is_not_removed(self, responses: ResponseStore, conversation: Conversation) -> None:
        conversation_id = await conversation()
        ended = await start(responses, conversation_id)
        await responses.finish_response(ending(ended))
        runs = await start(responses, conversation_id, "r2")
        await add(responses, runs, "a")
        soon = min(NOW + KEEP, runs.expires_at + KEEP) - 1
        assert await responses.remove_expired_responses(now=soon, keep_microseconds=KEEP) == 0
        assert len(await responses.list_responses([conversation_id], limit=5)) == 2
        assert await pieces(responses, runs) == [(1, "a")]

    @pytest.mark.parametrize("seed", range(5))
    async def test_any_batches_sent_any_number_of_times_give_text_once(
        self, responses: ResponseStore, conversation: Conversation, seed: int
    ) -> None:
        chance = Random(seed)
        started = await start(responses, await conversation())
        sent: list[str] = []
        for _ in range(4):
            batch = chance.choices(list(TEXTS.values()), k=chance.randint(1, 5))
            for begin in {0, len(sent)}:
                await responses.append_pieces(addition(started, [*sent, *batch][begin:], first=begin + 1))
            sent += batch
        assert await pieces(responses, started) == list(enumerate(sent, start=1))

    async def test_a_change_is_noticed(self, responses: ResponseStore, conversation: Conversation) -> None:
        """By whoever waits, whatever it is that changes."""
        known = await start(responses, await conversation())
        changes = (
            lambda: add(responses, known, "a"),
            lambda: responses.request_stop(known.conversation_id, known.response_id, now=NOW + 1),
            lambda: add(responses, known, "b", first=2),
            lambda: start(responses, known.conversation_id, "r2", now=NOW + 2),
        )
        seen: Response | None = known
        for change in changes:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(change)
                assert seen is not None
                seen = await self.changed(responses, seen)
            assert seen == await standing(responses, known)
        assert seen is not None
        assert seen.state == "superseded"

    async def test_a_change_from_before_is_noticed_at_once(
        self, responses: ResponseStore, conversation: Conversation
    ) -> None:
        known = await start(responses, await conversation())
        ended = await responses.finish_response(ending(known))
        assert await self.changed(responses, known) == ended
        await responses.forget_responses([known.conversation_id])
        assert await self.changed(responses, known) is None

    async def test_waiting_has_an_end(self, responses: ResponseStore, conversation: Conversation) -> None:
        known = await start(responses, await conversation())
        assert await signals_of(responses).wait_for_change(known, timeout_seconds=0.01) == known

    async def changed(self, responses: ResponseStore, known: Response) -> Response | None:
        latest: Response | None = known
        while latest == known:
            latest = await signals_of(responses).wait_for_change(known, timeout_seconds=5)
        return latest


@pytest.mark.anyio
class StoredResponsesConformance:
    """For responses in the database of the log, `store`: kept until somebody asks to remove them, and gone with their
    messages.
    """

    @pytest.fixture
    def conversation(self, store: Store) -> Conversation:
        return partial(begun, store)

    async def test_a_response_needs_its_conversation(self, store: Store, responses: ResponseStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await start(responses, "never begun")
        conversation_id = await begun(store)
        await store.delete(conversation_id, "u", now=NOW, purge=False)
        with pytest.raises(SessionDeletedError):
            await start(responses, conversation_id)

    async def test_a_purge_takes_responses_and_pieces(self, store: Store, responses: ResponseStore) -> None:
        started = await start(responses, await begun(store))
        await add(responses, started, "a")
        await store.delete(started.conversation_id, "u", now=NOW, purge=True)
        assert await standing(responses, started) is None
        assert await pieces(responses, started) == []
        assert await responses.append_pieces(addition(started, ["b"], first=2)) is None

    async def test_what_was_deleted_is_purged_in_time(self, store: Store, responses: ResponseStore) -> None:
        started = await start(responses, await begun(store))
        await add(responses, started, "a")
        await store.delete(started.conversation_id, "u", now=NOW, purge=False)
        assert await pieces(responses, started) == [(1, "a")]
        assert await store.purge_deleted(before=NOW + 1) == 1
        assert await standing(responses, started) is None
        assert await pieces(responses, started) == []

    async def test_erased_messages_take_the_responses_that_became_them(
        self, store: Store, responses: ResponseStore
    ) -> None:
        conversation_id = await begun(store)
        await append_messages(store, conversation_id, [Message.assistant("two")], user_id="u")
        message_ids = [message.message_id for message in await store.read(conversation_id, "u")]
        for number, message_id in enumerate(message_ids):
            started = await start(responses, conversation_id, f"r{number}")
            await add(responses, started, "a")
            await responses.finish_response(ending(started, message_id=message_id))
        await store.fork(conversation_id, "u", at_seq=2, fork_id=f"{conversation_id}~f", now=NOW)
        shared = await start(responses, f"{conversation_id}~f")
        await add(responses, shared, "a")
        await responses.finish_response(ending(shared, message_id=message_ids[0]))
        await store.database.write(erasure.erase, conversation_id, "u", ranges=[(1, 1)], now=NOW, refold=nothing_left)
        assert await pieces(responses, response(conversation_id, "r0")) == await pieces(responses, shared) == []
        assert await standing(responses, shared) is None
        (left,) = await responses.list_responses([conversation_id], limit=5)
        assert left.response_id == "r1"
        assert await pieces(responses, left) == [(1, "a")]

    async def test_the_last_message_takes_a_running_response_along(
        self, store: Store, responses: ResponseStore
    ) -> None:
        conversation_id = await begun(store)
        await append_messages(store, conversation_id, [Message.assistant("two")], user_id="u")
        fork_id = f"{conversation_id}~f"
        await store.fork(conversation_id, "u", at_seq=2, fork_id=fork_id, now=NOW)
        running = [await start(responses, each) for each in (conversation_id, fork_id)]
        for each in running:
            await add(responses, each, "a")
        await store.database.write(erasure.erase, conversation_id, "u", ranges=[(1, 1)], now=NOW, refold=nothing_left)
        assert [await pieces(responses, each) for each in running] == [[(1, "a")], []], "the fork is empty now"
        await store.database.write(erasure.erase, conversation_id, "u", ranges=[(2, 2)], now=NOW, refold=nothing_left)
        assert await standing(responses, running[0]) is None
        assert await pieces(responses, running[0]) == []

    async def test_what_is_over_is_removed_with_its_pieces(self, store: Store, responses: ResponseStore) -> None:
        conversation_id = await begun(store)
        for number in range(3):
            started = await start(responses, conversation_id, f"r{number}")
            await add(responses, started, "a")
        over = NOW + EXPIRES + KEEP
        assert await responses.remove_expired_responses(now=NOW + KEEP, keep_microseconds=KEEP, limit=1) == 1
        assert await responses.remove_expired_responses(now=NOW + KEEP, keep_microseconds=KEEP) == 1
        assert await responses.remove_expired_responses(now=over - 1, keep_microseconds=KEEP) == 0
        assert await pieces(responses, response(conversation_id, "r2")) == [(1, "a")]
        assert await responses.remove_expired_responses(now=over, keep_microseconds=KEEP) == 1
        assert await responses.list_responses([conversation_id], limit=5) == ()
        for number in range(3):
            assert await pieces(responses, response(conversation_id, f"r{number}")) == []
