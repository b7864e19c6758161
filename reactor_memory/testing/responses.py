"""The suites for a `ResponseStore`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random
from typing import Protocol, cast

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError, LimitExceededError, SessionDeletedError, SessionNotFoundError
from reactor_memory.models import Message
from reactor_memory.protocols import MessageStore, SummaryStore
from reactor_memory.responses import Addition, Ending, Response, ResponseSignals, ResponseState, ResponseStore
from reactor_memory.storage import erasing
from reactor_memory.streams.polling import PolledSignals
from reactor_memory.testing.builders import append_messages
from reactor_memory.testing.log import TEXTS, nothing_left

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
EXPIRES = 60 * SECOND
KEEP = 600 * SECOND

_conversations: Iterator[int] = count()


class ResponsesAndMessages(ResponseStore, MessageStore, SummaryStore, Protocol):
    """A store that holds the conversations, too."""


async def conversation(store: ResponseStore) -> str:
    """A conversation of its own: a store may be shared by many examples."""
    session_id = f"talk-{next(_conversations)}"
    if hasattr(store, "read_context"):
        await append_messages(cast("MessageStore", store), session_id, [Message.user("hello")], user_id="u")
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


async def start(store: ResponseStore, conversation_id: str, response_id: str = "r1", *, now: int = NOW) -> Response:
    new = response(conversation_id, response_id, now=now)
    return await store.start_response(new, keep_until=now + KEEP)


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


async def add(store: ResponseStore, to: Response, *texts: str, first: int = 1, now: int = NOW) -> Response:
    added = await store.append_pieces(addition(to, texts, first=first, now=now))
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


async def pieces(store: ResponseStore, of: Response, *, after: int = 0, limit: int = 1000) -> list[tuple[int, str]]:
    found = await store.read_pieces(of.conversation_id, of.response_id, after=after, limit=limit)
    return [(piece.event, piece.text) for piece in found]


async def standing(store: ResponseStore, of: Response) -> Response | None:
    return await store.get_response(of.conversation_id, of.response_id)


def signals_of(store: ResponseStore) -> ResponseSignals:
    if isinstance(store, ResponseSignals):
        return store
    return PolledSignals(store, min_seconds=0.005, max_seconds=0.02)


@pytest.mark.anyio
class ResponseStoreConformance:
    """What every `ResponseStore` promises. The fixture `store` gives an opened, empty one."""

    async def test_a_conversation_has_no_response_at_first(self, store: ResponseStore) -> None:
        unknown = response(await conversation(store), "r9")
        assert await standing(store, unknown) is None
        assert await store.list_responses([unknown.conversation_id, "elsewhere"], limit=5) == ()
        assert await pieces(store, unknown) == []
        assert await store.append_pieces(addition(unknown, ["a"])) is None
        assert await store.finish_response(ending(unknown)) is None
        assert await store.request_stop(unknown.conversation_id, "r9", now=NOW) is None

    async def test_a_started_response_is_kept_as_it_was_given(self, store: ResponseStore) -> None:
        new = replace(response(await conversation(store)), producer="null")
        started = await store.start_response(new, keep_until=NOW + KEEP)
        assert started == replace(new, fence=1)
        assert await standing(store, started) == started

    async def test_starting_again_changes_nothing(self, store: ResponseStore) -> None:
        first = await start(store, await conversation(store))
        added = await add(store, first, "a")
        assert await start(store, first.conversation_id, now=NOW + 5) == added

    async def test_pieces_are_read_from_any_place(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        assert (await add(store, started, "a", "b")).last_event == 2
        added = await add(store, started, "c", "d", "e", first=3, now=NOW + 7)
        assert added == replace(started, last_event=5, size=5, updated_at=NOW + 7, expires_at=NOW + 7 + EXPIRES)
        assert await standing(store, started) == added
        assert await pieces(store, started) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
        assert await pieces(store, started, after=3) == [(4, "d"), (5, "e")]
        assert await pieces(store, started, after=1, limit=2) == [(2, "b"), (3, "c")]
        assert await pieces(store, started, after=5) == await pieces(store, started, after=2**40) == []

    async def test_repeated_pieces_do_no_harm(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        await add(store, started, "a", "b")
        assert (await add(store, started, "x", "y")).last_event == 2
        assert (await add(store, started, "y", "c", first=2)).size == 3
        assert await pieces(store, started) == [(1, "a"), (2, "b"), (3, "c")]

    async def test_a_gap_is_refused(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        with pytest.raises(InvalidInputError, match="number 1"):
            await add(store, started, "a", first=2)
        await add(store, started, "a", "b")
        with pytest.raises(InvalidInputError, match="number 3"):
            await add(store, started, "d", first=4)
        assert await pieces(store, started) == [(1, "a"), (2, "b")]

    async def test_a_response_has_an_end_to_its_length(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        await add(store, started, "é")
        for limit in ({"max_events": 2}, {"max_size": 3}):
            tight = replace(addition(started, ["é", "x"], first=2), **limit)
            with pytest.raises(LimitExceededError) as refused:
                await store.append_pieces(tight)
            assert (refused.value.actual, refused.value.limit) in {(3, 2), (5, 3)}
        assert await pieces(store, started) == [(1, "é")]
        exact = replace(addition(started, ["é", "x"], first=2), max_events=3, max_size=5)
        assert (await store.append_pieces(exact)) == await standing(store, started)

    @pytest.mark.parametrize("text", [*TEXTS.values(), "", "\n\ndata: x\r\n", "\u2028"], ids=repr)
    async def test_pieces_come_back_as_they_were(self, store: ResponseStore, text: str) -> None:
        started = await start(store, await conversation(store))
        await add(store, started, text, text)
        assert await pieces(store, started) == [(1, text), (2, text)]
        latest = await standing(store, started)
        assert latest is not None
        assert latest.size == 2 * len(text.encode())

    async def test_the_newer_response_fences_the_older(self, store: ResponseStore) -> None:
        old = await start(store, await conversation(store))
        await add(store, old, "a")
        new = await start(store, old.conversation_id, "r2", now=NOW + 3)
        assert new.fence > old.fence
        late = await store.append_pieces(addition(old, ["b"], first=2, now=NOW + 4))
        assert late == await standing(store, old)
        assert late == replace(
            old, state="superseded", last_event=1, size=1, updated_at=NOW + 3, expires_at=NOW + 3 + KEEP
        )
        assert await store.finish_response(ending(old, now=NOW + 4)) == late
        assert await pieces(store, old) == [(1, "a")]
        assert (await add(store, new, "c", now=NOW + 4)).state == "running"

    async def test_only_its_own_producer_opens_a_response(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        assert await store.append_pieces(addition(started, ["a"], fence=started.fence + 1)) == started
        assert await store.finish_response(replace(ending(started), fence=started.fence + 1)) == started
        assert await store.append_pieces(replace(addition(started, ["a"]), client_id="other")) == started
        assert await store.finish_response(replace(ending(started), client_id="other")) == started
        assert await pieces(store, started) == []

    async def test_the_newest_of_many_at_once_is_the_only_one_that_runs(self, store: ResponseStore) -> None:
        conversation_id = await conversation(store)
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(start, store, conversation_id, f"r{number}")
        listed = await store.list_responses([conversation_id], limit=100)
        assert [each.fence for each in listed] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert [each.state for each in listed] == ["running", *["superseded"] * 7]

    async def test_pieces_that_are_sent_many_times_at_once_are_there_once(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(add, store, started, "a", "b", "c")
        assert await pieces(store, started) == [(1, "a"), (2, "b"), (3, "c")]

    @pytest.mark.parametrize("state", ["completed", "failed", "stopped"])
    async def test_what_is_finished_stays_as_it_is(self, store: ResponseStore, state: ResponseState) -> None:
        started = await start(store, await conversation(store))
        added = await add(store, started, "a")
        ended = await store.finish_response(ending(started, state, message_id="m1", now=NOW + 2))
        assert ended == await standing(store, started)
        assert ended == replace(added, state=state, message_id="m1", updated_at=NOW + 2, expires_at=NOW + 2 + KEEP)
        assert await store.append_pieces(addition(started, ["b"], first=2)) == ended
        assert await store.finish_response(ending(started, "failed", now=NOW + 9)) == ended
        assert await store.request_stop(started.conversation_id, started.response_id, now=NOW + 9) == ended
        again = await start(store, started.conversation_id, "r2", now=NOW + 10)
        assert again.fence > started.fence
        assert await standing(store, started) == ended

    async def test_a_stop_reaches_the_producer_and_ends_nothing(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        asked = await store.request_stop(started.conversation_id, started.response_id, now=NOW + 1)
        assert asked == replace(started, stop_requested=True, updated_at=NOW + 1)
        assert await store.request_stop(started.conversation_id, started.response_id, now=NOW + 2) == asked
        assert (await add(store, started, "a", now=NOW + 3)).stop_requested
        assert (await add(store, started, "b", first=2, now=NOW + 3)).last_event == 2

    async def test_a_response_whose_producer_is_silent_takes_no_more(self, store: ResponseStore) -> None:
        started = await start(store, await conversation(store))
        late = started.expires_at
        assert await store.append_pieces(addition(started, ["a"], now=late)) == started
        assert await store.finish_response(ending(started, now=late)) == started
        assert await store.request_stop(started.conversation_id, started.response_id, now=late) == started
        await start(store, started.conversation_id, "r2", now=late)
        assert await standing(store, started) == started
        added = await add(store, await start(store, started.conversation_id, "r3", now=late), "a", now=late)
        assert added.expires_at == late + EXPIRES

    async def test_the_newest_responses_of_conversations(self, store: ResponseStore) -> None:
        one, other = await conversation(store), await conversation(store)
        for number in range(3):
            await start(store, one, f"a{number}")
        await start(store, other, "b0")
        listed = await store.list_responses([other, one, "unknown"], limit=2)
        assert [each.response_id for each in listed] == ["b0", "a2", "a1"]

    async def test_responses_of_one_id_in_two_conversations_are_two(self, store: ResponseStore) -> None:
        one, other = await start(store, await conversation(store)), await start(store, await conversation(store))
        await add(store, one, "one")
        await add(store, other, "other")
        assert await pieces(store, one) == [(1, "one")]
        assert await pieces(store, other) == [(1, "other")]

    async def test_forgetting_conversations_leaves_the_others(self, store: ResponseStore) -> None:
        gone, stays = await start(store, await conversation(store)), await start(store, await conversation(store))
        for each in (gone, stays):
            await add(store, each, "a")
        await store.forget_responses([gone.conversation_id, "unknown"])
        assert await standing(store, gone) is None
        assert await pieces(store, gone) == []
        assert await store.list_responses([gone.conversation_id], limit=5) == ()
        assert await pieces(store, stays) == [(1, "a")]

    async def test_forgetting_answers_takes_those_that_became_these_messages(self, store: ResponseStore) -> None:
        conversation_id = await conversation(store)
        for number in range(3):
            started = await start(store, conversation_id, f"r{number}")
            await add(store, started, "a")
            if number < 2:
                await store.finish_response(ending(started, message_id=f"m{number}"))
        await store.forget_answers([conversation_id], [])
        await store.forget_answers([conversation_id, "unknown"], ["m0", "m9"])
        listed = await store.list_responses([conversation_id], limit=5)
        assert [each.response_id for each in listed] == ["r2", "r1"]
        assert await pieces(store, response(conversation_id, "r0")) == []
        assert await pieces(store, response(conversation_id, "r1")) == [(1, "a")]

    async def test_what_is_not_over_is_not_removed(self, store: ResponseStore) -> None:
        conversation_id = await conversation(store)
        ended = await start(store, conversation_id)
        await store.finish_response(ending(ended))
        runs = await start(store, conversation_id, "r2")
        await add(store, runs, "a")
        soon = min(NOW + KEEP, runs.expires_at + KEEP) - 1
        assert await store.remove_expired_responses(now=soon, keep_microseconds=KEEP) == 0
        assert len(await store.list_responses([conversation_id], limit=5)) == 2
        assert await pieces(store, runs) == [(1, "a")]

    @pytest.mark.parametrize("seed", range(5))
    async def test_any_batches_sent_any_number_of_times_give_the_text_once(
        self, store: ResponseStore, seed: int
    ) -> None:
        chance = Random(seed)  # noqa: S311 (texts of a test)
        started = await start(store, await conversation(store))
        sent: list[str] = []
        for _ in range(4):
            batch = chance.choices(list(TEXTS.values()), k=chance.randint(1, 5))
            for begin in {0, len(sent)}:
                await store.append_pieces(addition(started, [*sent, *batch][begin:], first=begin + 1))
            sent += batch
        assert await pieces(store, started) == list(enumerate(sent, start=1))

    async def test_a_change_is_noticed(self, store: ResponseStore) -> None:
        """By whoever waits, whatever it is that changes."""
        known = await start(store, await conversation(store))
        changes = (
            lambda: add(store, known, "a"),
            lambda: store.request_stop(known.conversation_id, known.response_id, now=NOW + 1),
            lambda: add(store, known, "b", first=2),
            lambda: start(store, known.conversation_id, "r2", now=NOW + 2),
        )
        seen: Response | None = known
        for change in changes:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(change)
                assert seen is not None
                seen = await self.changed(store, seen)
            assert seen == await standing(store, known)
        assert seen is not None
        assert seen.state == "superseded"

    async def test_a_change_from_before_is_noticed_at_once(self, store: ResponseStore) -> None:
        known = await start(store, await conversation(store))
        ended = await store.finish_response(ending(known))
        assert await self.changed(store, known) == ended
        await store.forget_responses([known.conversation_id])
        assert await self.changed(store, known) is None

    async def test_waiting_has_an_end(self, store: ResponseStore) -> None:
        known = await start(store, await conversation(store))
        assert await signals_of(store).wait_for_change(known, timeout_seconds=0.01) == known

    async def changed(self, store: ResponseStore, known: Response) -> Response | None:
        latest: Response | None = known
        while latest == known:
            latest = await signals_of(store).wait_for_change(known, timeout_seconds=5)
        return latest


@pytest.mark.anyio
class StoredResponsesConformance:
    """For a `ResponseStore` that keeps responses until it is asked to remove them, next to the conversations."""

    async def test_a_response_needs_its_conversation(self, store: ResponsesAndMessages) -> None:
        with pytest.raises(SessionNotFoundError):
            await start(store, "never begun")
        conversation_id = await conversation(store)
        await store.delete(conversation_id, "u", now=NOW, purge=False)
        with pytest.raises(SessionDeletedError):
            await start(store, conversation_id)

    async def test_a_purge_takes_responses_and_pieces(self, store: ResponsesAndMessages) -> None:
        started = await start(store, await conversation(store))
        await add(store, started, "a")
        await store.delete(started.conversation_id, "u", now=NOW, purge=True)
        assert await standing(store, started) is None
        assert await pieces(store, started) == []
        assert await store.append_pieces(addition(started, ["b"], first=2)) is None

    async def test_what_was_deleted_is_purged_in_time(self, store: ResponsesAndMessages) -> None:
        started = await start(store, await conversation(store))
        await add(store, started, "a")
        await store.delete(started.conversation_id, "u", now=NOW, purge=False)
        assert await pieces(store, started) == [(1, "a")]
        assert await store.purge_deleted(before=NOW + 1) == 1
        assert await standing(store, started) is None
        assert await pieces(store, started) == []

    async def test_erased_messages_take_the_responses_that_became_them(self, store: ResponsesAndMessages) -> None:
        conversation_id = await conversation(store)
        await append_messages(store, conversation_id, [Message.assistant("two")], user_id="u")
        message_ids = [message.message_id for message in await store.read(conversation_id, "u")]
        for number, message_id in enumerate(message_ids):
            started = await start(store, conversation_id, f"r{number}")
            await add(store, started, "a")
            await store.finish_response(ending(started, message_id=message_id))
        await store.fork(conversation_id, "u", at_seq=2, fork_id=f"{conversation_id}~f", now=NOW)
        shared = await start(store, f"{conversation_id}~f")
        await add(store, shared, "a")
        await store.finish_response(ending(shared, message_id=message_ids[0]))
        await store.database.write(erasing.erase, conversation_id, "u", ranges=[(1, 1)], now=NOW, refold=nothing_left)
        assert await pieces(store, response(conversation_id, "r0")) == await pieces(store, shared) == []
        assert await standing(store, shared) is None
        (left,) = await store.list_responses([conversation_id], limit=5)
        assert left.response_id == "r1"
        assert await pieces(store, left) == [(1, "a")]

    async def test_what_is_over_is_removed_with_its_pieces(self, store: ResponsesAndMessages) -> None:
        conversation_id = await conversation(store)
        for number in range(3):
            started = await start(store, conversation_id, f"r{number}")
            await add(store, started, "a")
        over = NOW + EXPIRES + KEEP
        assert await store.remove_expired_responses(now=NOW + KEEP, keep_microseconds=KEEP, limit=1) == 1
        assert await store.remove_expired_responses(now=NOW + KEEP, keep_microseconds=KEEP) == 1
        assert await store.remove_expired_responses(now=over - 1, keep_microseconds=KEEP) == 0
        assert await pieces(store, response(conversation_id, "r2")) == [(1, "a")]
        assert await store.remove_expired_responses(now=over, keep_microseconds=KEEP) == 1
        assert await store.list_responses([conversation_id], limit=5) == ()
        for number in range(3):
            assert await pieces(store, response(conversation_id, f"r{number}")) == []
