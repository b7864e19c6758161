"""Requests that may be repeated: who works on one, and what the others are told."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.sharing import answered_requests
from reactor_memory.features.sharing.principals import AnsweredRequest
from reactor_memory.testing.builders import append_messages, numbered
from reactor_memory.testing.log import nothing_left
from reactor_memory.testing.summary_recording import Store


def request(
    key: str = "k", principal_id: str = "user:ann", *, fingerprint: str = "f", now: int = 10, lease: int = 100
) -> AnsweredRequest:
    return AnsweredRequest(
        principal_id=principal_id, request_key=key, fingerprint=fingerprint, lease_until=now + lease, created_at=now
    )


def answered(begun: AnsweredRequest, body: str = '{"id":1}') -> AnsweredRequest:
    return replace(begun, status=201, body=body)


async def claim(store: Store, begun: AnsweredRequest) -> AnsweredRequest | None:
    return await store.database.write(answered_requests.claim_request, begun, now=begun.created_at)


@pytest.mark.anyio
class AnsweredRequestConformance:
    """What the operations of `features.sharing.answered_requests` promise, of the database of an empty `store`."""

    async def test_a_new_request_is_claimed(self, store: Store) -> None:
        assert await claim(store, request()) is None

    async def test_one_that_is_worked_on_is_told(self, store: Store) -> None:
        await claim(store, request())
        assert await claim(store, request(now=50)) == request()

    async def test_an_answer_is_told_for_ever(self, store: Store) -> None:
        await claim(store, request())
        await store.database.write(answered_requests.answer_request, answered(request()))
        for now in (11, 10_000):
            assert await claim(store, request(now=now)) == answered(request())
        assert await claim(store, request(now=20, fingerprint="other")) == answered(request())

    async def test_the_first_answer_stays(self, store: Store) -> None:
        await claim(store, request())
        await store.database.write(answered_requests.answer_request, answered(request()))
        await store.database.write(answered_requests.answer_request, answered(request(), "late"))
        assert await claim(store, request(now=20)) == answered(request())

    async def test_an_answer_without_a_body(self, store: Store) -> None:
        await claim(store, request())
        nothing = replace(request(), status=204)
        await store.database.write(answered_requests.answer_request, nothing)
        assert await claim(store, request(now=20)) == nothing

    async def test_what_was_left_behind_is_taken_over_once(self, store: Store) -> None:
        await claim(store, request())
        late = request(now=110)
        assert await claim(store, late) is None
        assert await claim(store, request(now=111)) == replace(request(), lease_until=late.lease_until)

    async def test_what_was_left_behind_serves_no_other_request(self, store: Store) -> None:
        await claim(store, request())
        assert await claim(store, request(now=500, fingerprint="other")) == request()

    async def test_principals_have_keys_of_their_own(self, store: Store) -> None:
        await claim(store, request())
        assert await claim(store, request(principal_id="user:bob")) is None
        assert await claim(store, request("other")) is None

    async def test_a_released_request_begins_anew(self, store: Store) -> None:
        await claim(store, request())
        await claim(store, request("other"))
        await store.database.write(answered_requests.release_request, "user:ann", "k")
        assert await claim(store, request(now=20, fingerprint="other")) is None
        assert await claim(store, request("other", now=20)) == request("other")

    async def test_an_answered_request_is_not_released(self, store: Store) -> None:
        await claim(store, request())
        await store.database.write(answered_requests.answer_request, answered(request()))
        await store.database.write(answered_requests.release_request, "user:ann", "k")
        assert await claim(store, request(now=20)) == answered(request())

    @pytest.mark.parametrize("left_behind", [False, True])
    async def test_of_many_claims_at_once_one_wins(self, store: Store, left_behind: bool) -> None:
        if left_behind:
            await claim(store, request())
        told: list[AnsweredRequest | None] = []

        async def try_to_claim() -> None:
            told.append(await claim(store, request(now=200)))

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(try_to_claim)
        assert told.count(None) == 1
        assert {each.lease_until for each in told if each is not None} == {300}

    async def test_old_requests_are_forgotten_the_oldest_first(self, store: Store) -> None:
        for now in (30, 10, 20, 40):
            begun = request(str(now), now=now)
            await claim(store, begun)
            await store.database.write(answered_requests.answer_request, answered(begun))
        assert await store.database.write(answered_requests.forget_requests, before=40, limit=2) == 2
        assert await claim(store, request("30", now=50)) == answered(request("30", now=30))
        assert await store.database.write(answered_requests.forget_requests, before=40) == 1
        assert await store.database.write(answered_requests.forget_requests, before=40) == 0
        assert await claim(store, request("10", now=50)) is None
        assert await claim(store, request("40", now=50)) == answered(request("40", now=40))

    async def test_claims_forget_old_requests_faster_than_they_add_new_ones(self, store: Store) -> None:
        for number in range(4):
            await claim(store, request(f"old-{number}"))
        for number in range(3):
            begun = request(f"new-{number}", now=1000)
            assert (
                await store.database.write(answered_requests.claim_request, begun, now=1000, forget_before=500) is None
            )
        assert await store.database.write(answered_requests.forget_requests, before=500) == 0
        assert await store.database.write(answered_requests.forget_requests, before=5000) == 3

    async def test_answers_about_a_conversation_are_erased_with_any_of_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        for key, group_id in (("of it", "s"), ("known late", None), ("of another", "t")):
            begun = request(key)
            await claim(store, replace(begun, group_id=group_id))
            await store.database.write(
                answered_requests.answer_request, answered(replace(begun, group_id=group_id or "s"))
            )
        await store.database.write(erasure.erase, "s", None, ranges=[(2, 2)], now=50, refold=nothing_left)
        assert await claim(store, request("of it", now=60)) is None
        assert await claim(store, request("known late", now=60)) is None
        assert await claim(store, request("of another", now=60)) == answered(
            replace(request("of another"), group_id="t")
        )

    async def test_answers_are_purged_with_their_conversation(self, store: Store) -> None:
        await append_messages(store, "s", numbered(1))
        begun = replace(request(), group_id="s")
        await claim(store, begun)
        await store.database.write(answered_requests.answer_request, answered(begun))
        await store.delete("s", None, now=20, purge=True)
        assert await claim(store, request(now=30)) is None

    async def test_answers_are_forgotten_with_their_user(self, store: Store) -> None:
        for key, user_id in (("of ann", "ann"), ("of bob", "bob")):
            begun = replace(request(key), user_id=user_id)
            await claim(store, begun)
            await store.database.write(answered_requests.answer_request, answered(begun))
        assert await store.database.write(erasure.forget_user, "ann", now=50) == 1
        assert await claim(store, request("of ann", now=60)) is None
        assert await claim(store, request("of bob", now=60)) == answered(replace(request("of bob"), user_id="bob"))
