"""Background work: leases, what is due, what was given up.

A store may use the clock of its database for leases. So these tests use times around now: an hour ago is past and an
hour ahead is to come by every clock, and a lease of one microsecond has expired by the next call.
"""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.requests import SUMMARIZE, Ahead
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.summary_recording import HOUR, MINUTE, Store


async def claim(
    store: Store, session_id: str = "s", *, lease: int = MINUTE, ahead: int = 0, wait: int | None = None
) -> Lease | None:
    return await store.summaries.claim(
        session_id, SUMMARIZE, now=wall_clock() + ahead, lease_microseconds=lease, wait_microseconds=wait
    )


async def sure_claim(store: Store, session_id: str = "s", *, lease: int = MINUTE, ahead: int = 0) -> Lease:
    found = await claim(store, session_id, lease=lease, ahead=ahead)
    assert found is not None
    return found


async def due(store: Store, limit: int = 100) -> tuple[str, ...]:
    return tuple((await store.summaries.due([SUMMARIZE], now=wall_clock(), limit=limit))[SUMMARIZE])


async def state(store: Store, session_id: str = "s") -> WorkState:
    found = await store.summaries.work_state(session_id, SUMMARIZE)
    assert found is not None
    return found


class Leases:
    """One worker a session, and a fence that grows."""

    async def test_one_lease_at_a_time(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lease = await sure_claim(store)
        assert (lease.session_id, lease.kind, lease.attempts) == ("s", SUMMARIZE, 0)
        assert abs(lease.lease_until - wall_clock()) < HOUR
        assert await claim(store) is None
        assert (await state(store)).fence == lease.fence

    async def test_sessions_and_kinds_have_their_own(self, store: Store) -> None:
        for session_id in ("s", "t"):
            await append_messages(store, session_id, numbered(4))
        await fork(store, "s", "s~f", 3)
        for session_id in ("s", "t", "s~f"):
            assert await claim(store, session_id)
        assert await store.summaries.claim("s", "other", now=wall_clock(), lease_microseconds=MINUTE)

    async def test_one_of_many_gets_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        leases: list[Lease | None] = []

        async def take() -> None:
            leases.append(await claim(store))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(take)
        assert len([lease for lease in leases if lease]) == 1

    async def test_an_older_look_at_the_clock_does_not_get_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await sure_claim(store, ahead=1_000_000)
        assert await claim(store) is None
        assert await claim(store, wait=MINUTE) is None

    async def test_an_expired_lease_is_free(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        fences = [(await sure_claim(store, lease=1, ahead=number * MINUTE)).fence for number in range(4)]
        assert fences == sorted(set(fences))

    async def test_a_lease_given_back_is_free(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        first = await sure_claim(store)
        await store.summaries.release(first, due_at=None)
        assert (await sure_claim(store)).fence > first.fence

    async def test_a_renewed_lease_is_kept(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lease = await sure_claim(store, lease=1)
        assert await store.summaries.renew(lease, now=wall_clock(), lease_microseconds=MINUTE)
        assert await claim(store) is None

    async def test_a_lost_lease_is_not_renewed(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lost = await sure_claim(store, lease=1)
        await sure_claim(store, ahead=MINUTE)
        assert not await store.summaries.renew(lost, now=wall_clock(), lease_microseconds=MINUTE)

    async def test_a_lost_lease_cannot_be_given_back(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        lost = await sure_claim(store, lease=1)
        await sure_claim(store, ahead=MINUTE)
        before = await state(store)
        await store.summaries.release(lost, due_at=wall_clock(), attempts=7, parked=True, error="late")
        assert await state(store) == before
        assert await claim(store, ahead=MINUTE) is None

    async def test_a_lease_knows_the_failures_before_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await store.summaries.release(await sure_claim(store), due_at=None, attempts=3, error="timeout")
        assert (await sure_claim(store)).attempts == 3


class Due:
    """What is due: by appends, by the worker's own word, longest waiting first."""

    async def append(self, store: Store, count: int, *, every: int | None, session_id: str = "s", ago: int = 0) -> None:
        await append_messages(store, session_id, numbered(count), work_every=every, now=wall_clock() - ago)

    async def test_nothing_was_ever_done(self, store: Store) -> None:
        await self.append(store, 4, every=None)
        assert await due(store) == ()
        assert await store.summaries.work_state("s", SUMMARIZE) is None
        assert await store.summaries.work_state("unknown", SUMMARIZE) is None

    @pytest.mark.parametrize(
        ("batches", "expected"),
        [([9], False), ([10], True), ([9, 1], True), ([9, 3], True), ([4, 5], False), ([25], True), ([1] * 10, True)],
    )
    async def test_an_append_that_reaches_a_multiple(self, store: Store, batches: list[int], expected: bool) -> None:
        for count in batches:
            await self.append(store, count, every=10)
        assert await due(store) == (("s",) if expected else ())

    async def test_an_append_between_multiples_makes_nothing_due(self, store: Store) -> None:
        await self.append(store, 10, every=10)
        await store.summaries.release(await sure_claim(store), due_at=None)
        await self.append(store, 9, every=10)
        assert await due(store) == ()
        await self.append(store, 1, every=10)
        assert await due(store) == ("s",)

    async def test_a_replayed_append_makes_nothing_due(self, store: Store) -> None:
        for _ in range(2):
            await append_messages(store, "s", numbered(10), idempotency_key="k", work_every=10)
            if await due(store):
                await store.summaries.release(await sure_claim(store), due_at=None)
        assert await due(store) == ()

    async def test_the_length_of_a_fork_counts_what_it_shares(self, store: Store) -> None:
        await self.append(store, 9, every=None)
        await fork(store, "s", "s~f", 10)
        await self.append(store, 1, every=10, session_id="s~f")
        assert await due(store) == ("s~f",)

    async def test_longest_waiting_first(self, store: Store) -> None:
        for session_id, ago in (("b", 2), ("c", 1), ("a", 3)):
            await self.append(store, 4, every=4, session_id=session_id, ago=ago * MINUTE)
        assert await due(store) == ("a", "b", "c")
        assert await due(store, limit=2) == ("a", "b")

    async def test_another_append_does_not_send_a_session_to_the_end(self, store: Store) -> None:
        for session_id, ago in (("a", 3), ("b", 2), ("a", 1)):
            await self.append(store, 4, every=4, session_id=session_id, ago=ago * MINUTE)
        assert await due(store) == ("a", "b")

    async def test_leased_work_is_not_due(self, store: Store) -> None:
        await self.append(store, 4, every=4, ago=MINUTE)
        await sure_claim(store)
        assert await due(store) == ()

    async def test_the_work_of_a_worker_that_died_is_due_again(self, store: Store) -> None:
        await self.append(store, 4, every=4, ago=MINUTE)
        await sure_claim(store, lease=1)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock() + MINUTE))[SUMMARIZE] == ("s",)

    async def test_also_when_a_hint_began_it_and_nothing_was_due(self, store: Store) -> None:
        await self.append(store, 4, every=None)
        await sure_claim(store, lease=1)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock() + MINUTE))[SUMMARIZE] == ("s",)

    async def test_also_when_put_off_and_asked_for_by_name(self, store: Store) -> None:
        await self.append(store, 4, every=None)
        await store.summaries.release(await sure_claim(store), due_at=wall_clock() + HOUR, attempts=1)
        await sure_claim(store, lease=1)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock() + MINUTE))[SUMMARIZE] == ("s",)

    async def test_done_is_not_due(self, store: Store) -> None:
        await self.append(store, 4, every=4)
        await store.summaries.release(await sure_claim(store), due_at=None)
        assert await due(store) == ()
        found = await state(store)
        assert (found.due_at, found.attempts, found.parked, found.last_error) == (None, 0, False, None)

    async def test_the_worker_says_when_it_is_due_again(self, store: Store) -> None:
        for session_id, due_at in (("s", wall_clock() - HOUR), ("t", wall_clock() + HOUR)):
            await self.append(store, 4, every=None, session_id=session_id)
            await store.summaries.release(
                await sure_claim(store, session_id), due_at=due_at, attempts=1, error="timeout"
            )
            found = await state(store, session_id)
            assert (found.due_at, found.attempts, found.last_error) == (due_at, 1, "timeout")
        assert await due(store) == ("s",)

    async def test_kinds_are_apart(self, store: Store) -> None:
        await self.append(store, 4, every=4)
        assert (await store.summaries.due(["other"], now=wall_clock()))["other"] == ()

    async def test_kinds_that_are_asked_for_together_answer_each_for_itself(self, store: Store) -> None:
        for session_id, kind in (("s", "one"), ("t", "one"), ("u", "one"), ("s", "two"), ("t", "three")):
            await self.append(store, 4, every=None, session_id=session_id)
            lease = await store.summaries.claim(session_id, kind, now=wall_clock(), lease_microseconds=MINUTE)
            assert lease is not None
            await store.summaries.release(lease, due_at=wall_clock() - HOUR)
        found = await store.summaries.due(["one", "two", "none"], now=wall_clock(), limit=2)
        assert found == {"one": ("s", "t"), "two": ("s",), "none": ()}

    async def test_what_an_append_made_due_meanwhile_stays_due(self, store: Store) -> None:
        await self.append(store, 4, every=4, ago=MINUTE)
        lease = await sure_claim(store)
        await self.append(store, 4, every=4)
        await store.summaries.release(lease, due_at=None)
        assert await due(store) == ("s",)

    async def test_also_when_it_was_claimed_before_anything_was_due(self, store: Store) -> None:
        await self.append(store, 3, every=4)
        lease = await sure_claim(store)
        await self.append(store, 1, every=4)
        assert await store.summaries.renew(lease, now=wall_clock(), lease_microseconds=MINUTE)
        await store.summaries.release(lease, due_at=None)
        assert await due(store) == ("s",)

    async def test_an_append_during_a_lease_leaves_the_lease(self, store: Store) -> None:
        await self.append(store, 4, every=4)
        lease = await sure_claim(store)
        await self.append(store, 4, every=4)
        assert await claim(store) is None
        assert await store.summaries.renew(lease, now=wall_clock(), lease_microseconds=MINUTE)


class WrongClocks:
    """What a clock wrote that was an hour ahead holds nothing up for longer than a lease or a pause can take."""

    async def test_a_lease_that_ends_too_late_is_free_and_due(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4), work_every=4, now=wall_clock() - MINUTE)
        held = await sure_claim(store, lease=HOUR)
        ahead = Ahead(lease_microseconds=MINUTE, wait_microseconds=MINUTE)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock(), ahead=ahead))[SUMMARIZE] == ("s",)
        assert (await sure_claim(store, lease=MINUTE)).fence > held.fence
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock(), ahead=ahead))[SUMMARIZE] == ()
        assert await claim(store, lease=MINUTE) is None

    async def test_what_is_put_off_for_too_long_is_due(self, store: Store) -> None:
        for session_id in ("s", "t"):
            await append_messages(store, session_id, numbered(4))
            lease = await sure_claim(store, session_id)
            await store.summaries.release(lease, due_at=wall_clock() + HOUR, attempts=1)
        patient, ahead = 2 * HOUR, Ahead(lease_microseconds=MINUTE, wait_microseconds=2 * HOUR)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock(), ahead=ahead))[SUMMARIZE] == ()
        assert await claim(store, "s", wait=patient) is None
        ahead = replace(ahead, wait_microseconds=MINUTE)
        assert set((await store.summaries.due([SUMMARIZE], now=wall_clock(), ahead=ahead))[SUMMARIZE]) == {"s", "t"}
        assert await claim(store, "t", wait=MINUTE) is not None

    async def test_a_clock_that_went_back_leaves_due_work_due(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4), work_every=4, now=wall_clock() + HOUR)
        ahead = Ahead(lease_microseconds=MINUTE, wait_microseconds=MINUTE)
        assert (await store.summaries.due([SUMMARIZE], now=wall_clock(), ahead=ahead))[SUMMARIZE] == ("s",)
        assert await claim(store, wait=MINUTE) is not None


class Patience:
    """Who was not asked for by name leaves what is put off or given up alone."""

    async def test_what_is_put_off_waits(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await store.summaries.release(
            await sure_claim(store), due_at=wall_clock() + MINUTE, attempts=1, error="timeout"
        )
        before = await state(store)
        assert await claim(store, wait=HOUR) is None
        assert await state(store) == before
        assert await claim(store) is not None

    async def test_what_was_given_up_waits(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await store.summaries.release(await sure_claim(store), due_at=None, attempts=5, parked=True)
        assert await claim(store, wait=HOUR) is None
        assert (await state(store)).parked
        assert await claim(store) is not None

    async def test_what_is_due_or_was_never_done_does_not(self, store: Store) -> None:
        for session_id in ("s", "t"):
            await append_messages(store, session_id, numbered(4))
        await store.summaries.release(await sure_claim(store), due_at=wall_clock() - MINUTE, attempts=1)
        assert await claim(store, wait=HOUR) is not None
        assert await claim(store, "t", wait=HOUR) is not None


class Parked:
    """Work that was given up waits until it is asked for by name."""

    async def park(self, store: Store, session_id: str = "s") -> None:
        await append_messages(store, session_id, numbered(4), work_every=4)
        lease = await sure_claim(store, session_id)
        await store.summaries.release(lease, due_at=None, attempts=5, parked=True, error="refused")

    async def test_it_is_not_due(self, store: Store) -> None:
        await self.park(store)
        assert await due(store) == ()
        found = await state(store)
        assert (found.due_at, found.parked, found.attempts, found.last_error) == (None, True, 5, "refused")

    async def test_an_append_does_not_bring_it_back(self, store: Store) -> None:
        await self.park(store)
        await append_messages(store, "s", numbered(4), work_every=4)
        assert await due(store) == ()
        assert (await state(store)).parked

    async def test_a_claim_by_name_does(self, store: Store) -> None:
        await self.park(store)
        lease = await sure_claim(store)
        assert lease.attempts == 5
        await store.summaries.release(lease, due_at=wall_clock() - MINUTE)
        assert await due(store) == ("s",)
        found = await state(store)
        assert (found.parked, found.attempts, found.last_error) == (False, 0, None)
