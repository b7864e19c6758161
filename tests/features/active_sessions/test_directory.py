"""The order in which a session is found, and what an outage never does."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import UUID

import anyio
import pytest

from reactor_memory import Settings, open_container
from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.database.database import Database
from reactor_memory.errors import (
    ActiveSessionConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionOwnershipError,
    StoreUnavailableError,
)
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.active_sessions.directory import Resolved, SessionDirectory
from reactor_memory.testing import FakeClock, append_messages, numbered
from tests.doubles.faulty_database import FaultyDatabase, Mode
from tests.scenes.stores import SqlStore

pytestmark = pytest.mark.anyio

USER, AGENT = "ann", "travel"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def directory_on(database: Database, clock: FakeClock, log: Database | None = None) -> SessionDirectory:
    """New ids are new-1, new-2, ..."""
    numbers = count(1)
    return SessionDirectory(
        database=database,
        messages=SqlMessageStore(log or database),
        clock=clock,
        new_id=lambda: f"new-{next(numbers)}",
    )


@pytest.fixture
def directory(store: SqlStore, clock: FakeClock) -> SessionDirectory:
    return directory_on(store.database, clock)


async def active_id(store: SqlStore) -> str | None:
    active = await store.database.read(active_rows.get_active, USER, AGENT)
    return None if active is None else active.session_id


class TestResolving:
    """The order of the seed: the cached id if it is the active one, the active one, a new one."""

    async def test_the_first_time_a_new_one(self, directory: SessionDirectory, store: SqlStore) -> None:
        assert await directory.resolve(USER, AGENT) == Resolved(session_id="new-1", source="new")
        assert await active_id(store) == "new-1"

    async def test_a_cached_id_that_is_active(self, directory: SessionDirectory) -> None:
        await directory.resolve(USER, AGENT)
        assert await directory.resolve(USER, AGENT, cached_id="new-1") == Resolved(session_id="new-1", source="cached")

    @pytest.mark.parametrize("cached_id", [None, "old", "", "x" * 300, "a\nb"])
    async def test_else_the_active_one(self, directory: SessionDirectory, cached_id: str | None) -> None:
        await directory.resolve(USER, AGENT)
        resolved = await directory.resolve(USER, AGENT, cached_id=cached_id)
        assert resolved == Resolved(session_id="new-1", source="active")

    async def test_a_cached_id_does_not_become_active_by_itself(
        self, directory: SessionDirectory, store: SqlStore
    ) -> None:
        assert (await directory.resolve(USER, AGENT, cached_id="old")).source == "new"
        assert await active_id(store) == "new-1"

    async def test_resolving_again_writes_nothing(self, store: SqlStore, clock: FakeClock) -> None:
        await directory_on(store.database, clock).resolve(USER, AGENT)
        before = await store.database.read(active_rows.get_active, USER, AGENT)
        clock.advance(60)
        await directory_on(store.database, clock).resolve(USER, AGENT, cached_id="new-1")
        assert await store.database.read(active_rows.get_active, USER, AGENT) == before

    async def test_every_user_and_agent_has_its_own(self, directory: SessionDirectory) -> None:
        found = {
            (await directory.resolve(user, agent)).session_id
            for user in ("ann", "bob")
            for agent in ("travel", "shop")
            for _ in range(2)
        }
        assert len(found) == 4

    async def test_many_at_once_agree(self, directory: SessionDirectory, store: SqlStore) -> None:
        found: list[Resolved] = []

        async def resolve() -> None:
            found.append(await directory.resolve(USER, AGENT))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(resolve)
        assert {each.session_id for each in found} == {await active_id(store)}
        assert [each.source for each in found].count("new") == 1

    async def test_a_deleted_session_is_followed_by_a_new_one(
        self, directory: SessionDirectory, store: SqlStore
    ) -> None:
        await directory.resolve(USER, AGENT)
        await append_messages(store, "new-1", numbered(2), user_id=USER)
        await store.delete("new-1", USER, now=1, purge=True)
        resolved = await directory.resolve(USER, AGENT, cached_id="new-1")
        assert (resolved.source, await active_id(store)) == ("new", resolved.session_id)
        assert resolved.session_id != "new-1"

    async def test_so_is_one_that_became_someone_elses(self, directory: SessionDirectory, store: SqlStore) -> None:
        await directory.get_or_create(USER, AGENT, candidate="guessable")
        await append_messages(store, "guessable", numbered(1), user_id="bob")
        resolved = await directory.resolve(USER, AGENT, cached_id="guessable")
        assert (resolved.source, await active_id(store)) == ("new", resolved.session_id)
        assert resolved.session_id != "guessable"
        assert (await directory.get_or_create(USER, AGENT)).session_id == resolved.session_id

    @pytest.mark.parametrize(("user_id", "agent_name"), [("", "a"), (None, "a"), ("u", ""), ("u", None)])
    async def test_a_user_and_an_agent_are_needed(
        self, directory: SessionDirectory, user_id: Any, agent_name: Any
    ) -> None:
        with pytest.raises(InvalidInputError):
            await directory.resolve(user_id, agent_name, cached_id="s")

    async def test_the_ids_of_the_library_are_uuids(self) -> None:
        async with open_container(Settings(store={"url": "memory://"})) as container:
            resolved = await container.session_directory().resolve(USER, AGENT)
        assert str(UUID(resolved.session_id)) == resolved.session_id


class TestAnOutage:
    """At every call of the store, before or after it was done, once or for ever."""

    FAULTS = [(at, mode, for_ever) for at in (1, 2, 3) for mode in ("before", "after") for for_ever in (False, True)]

    @pytest.mark.parametrize(("at", "mode", "for_ever"), FAULTS)
    async def test_cached_id_is_given_back_unverified_and_nothing_is_overwritten(
        self, store: SqlStore, clock: FakeClock, at: int, mode: Mode, for_ever: bool
    ) -> None:
        await store.database.write(active_rows.get_or_create_active, USER, AGENT, "active", now=1)
        before = await store.database.read(active_rows.get_active, USER, AGENT)
        faulty = FaultyDatabase(store.database, at=at, mode=mode, for_ever=for_ever)
        resolved = await directory_on(faulty, clock).resolve(USER, AGENT, cached_id="cached")
        expected = Resolved(session_id="cached", source="unverified")
        assert resolved == (expected if faulty.failures else Resolved(session_id="active", source="active"))
        assert bool(faulty.failures) == (at <= 2)
        assert await store.database.read(active_rows.get_active, USER, AGENT) == before

    @pytest.mark.parametrize(("at", "mode", "for_ever"), FAULTS)
    async def test_without_one_it_is_loud_and_the_next_try_agrees(
        self, store: SqlStore, clock: FakeClock, at: int, mode: Mode, for_ever: bool
    ) -> None:
        faulty = FaultyDatabase(store.database, at=at, mode=mode, for_ever=for_ever)
        directory = directory_on(faulty, clock)
        found: list[str] = []
        try:
            found.append((await directory.resolve(USER, AGENT)).session_id)
        except StoreUnavailableError:
            assert faulty.failures
        faulty.heal()
        found.append((await directory.resolve(USER, AGENT)).session_id)
        assert set(found) == {await active_id(store)}

    async def test_what_a_store_made_without_saying_so_is_found(self, store: SqlStore, clock: FakeClock) -> None:
        faulty = FaultyDatabase(store.database, at=1, mode="after", operations={"get_or_create_active"})
        directory = directory_on(faulty, clock)
        with pytest.raises(StoreUnavailableError):
            await directory.resolve(USER, AGENT)
        assert await directory.resolve(USER, AGENT) == Resolved(session_id="new-1", source="active")

    async def test_a_cache_that_holds_no_id_does_not_count(self, store: SqlStore, clock: FakeClock) -> None:
        faulty = FaultyDatabase(store.database, at=1, mode="before", for_ever=True)
        with pytest.raises(StoreUnavailableError):
            await directory_on(faulty, clock).resolve(USER, AGENT, cached_id="not\nan id")

    async def test_the_log_alone_may_be_out_of_reach(self, store: SqlStore, clock: FakeClock) -> None:
        await store.database.write(active_rows.get_or_create_active, USER, AGENT, "active", now=1)
        directory = directory_on(
            store.database, clock, FaultyDatabase(store.database, at=1, mode="before", for_ever=True)
        )
        assert (await directory.resolve(USER, AGENT, cached_id="cached")).source == "unverified"
        assert await active_id(store) == "active"


class TestGettingAndSwitching:
    async def test_a_candidate_becomes_active_if_there_is_none(self, directory: SessionDirectory) -> None:
        assert (await directory.get_or_create(USER, AGENT, candidate="mine")).session_id == "mine"
        assert (await directory.get_or_create(USER, AGENT, candidate="other")).session_id == "mine"

    async def test_getting_notes_the_use(self, directory: SessionDirectory, clock: FakeClock) -> None:
        first = await directory.get_or_create(USER, AGENT)
        clock.advance(1)
        assert (await directory.get_or_create(USER, AGENT)).last_active_at == first.last_active_at + 1_000_000

    async def test_switching_compares_and_sets(self, directory: SessionDirectory, store: SqlStore) -> None:
        await directory.switch(USER, AGENT, expected=None, new="a")
        assert (await directory.switch(USER, AGENT, expected="a", new="b")).session_id == "b"
        for expected in ("a", None):
            with pytest.raises(ActiveSessionConflictError) as error:
                await directory.switch(USER, AGENT, expected=expected, new="c")
            assert error.value.session_id == "c"
        assert await active_id(store) == "b"

    async def test_the_session_of_another_user_never_becomes_active(
        self, directory: SessionDirectory, store: SqlStore
    ) -> None:
        await append_messages(store, "of bob", numbered(1), user_id="bob")
        with pytest.raises(SessionOwnershipError):
            await directory.get_or_create(USER, AGENT, candidate="of bob")
        with pytest.raises(SessionOwnershipError):
            await directory.switch(USER, AGENT, expected=None, new="of bob")
        assert await active_id(store) is None

    async def test_nor_does_a_deleted_one(self, directory: SessionDirectory, store: SqlStore) -> None:
        await append_messages(store, "gone", numbered(1), user_id=USER)
        await store.delete("gone", USER, now=1, purge=True)
        with pytest.raises(SessionDeletedError):
            await directory.switch(USER, AGENT, expected=None, new="gone")

    async def test_session_of_ones_own_fork_and_an_open_one_may(
        self, directory: SessionDirectory, store: SqlStore
    ) -> None:
        await append_messages(store, "own", numbered(2), user_id=USER)
        await append_messages(store, "open", numbered(2))
        await store.fork("own", USER, at_seq=2, fork_id="own~fork", now=1)
        active = None
        for session_id in ("own", "own~fork", "open"):
            active = (await directory.switch(USER, AGENT, expected=active, new=session_id)).session_id
        assert active == "open"

    @pytest.mark.parametrize("session_id", ["", "own~unknown", "a\n", "x" * 256])
    async def test_what_can_be_no_session(self, directory: SessionDirectory, session_id: str) -> None:
        with pytest.raises(InvalidInputError):
            await directory.switch(USER, AGENT, expected=None, new=session_id)
        with pytest.raises(InvalidInputError):
            await directory.get_or_create(USER, AGENT, candidate=session_id)

    async def test_starting_anew(self, directory: SessionDirectory) -> None:
        first = await directory.start_new(USER, AGENT)
        second = await directory.start_new(USER, AGENT)
        assert first.session_id != second.session_id
        assert (await directory.resolve(USER, AGENT, cached_id=first.session_id)).session_id == second.session_id

    async def test_starting_anew_gives_way_to_others_a_few_times(self, store: SqlStore, clock: FakeClock) -> None:
        class Restless(FaultyDatabase):
            """Something else is active by the time of each of the first `times` switches."""

            times = 2

            async def _fail(self, work: Callable[[], Awaitable[Any]]) -> Any:
                self.times -= 1
                return None if self.times >= 0 else await work()

        restless = Restless(store.database, at=1, mode="before", for_ever=True, operations={"switch_active"})
        assert (await directory_on(restless, clock).start_new(USER, AGENT)).session_id == "new-1"
        restless.times = 3
        with pytest.raises(ActiveSessionConflictError):
            await directory_on(restless, clock).start_new(USER, AGENT)
        assert await active_id(store) == "new-1"


class TestUse:
    async def test_a_heartbeat_keeps_a_session_from_going_stale(
        self, directory: SessionDirectory, store: SqlStore, clock: FakeClock
    ) -> None:
        session_id = (await directory.resolve(USER, AGENT)).session_id
        clock.advance(20)
        assert await directory.heartbeat(USER, AGENT, session_id)
        assert not await directory.heartbeat(USER, AGENT, "other")
        clock.advance(20)
        assert await directory.deactivate_stale(older_than_seconds=30) == 0
        clock.advance(11)
        assert await directory.deactivate_stale(older_than_seconds=30) == 1
        assert await active_id(store) is None
        assert (await directory.resolve(USER, AGENT, cached_id=session_id)).source == "new"

    @pytest.mark.parametrize("seconds", [0, -1, float("nan")])
    async def test_an_age_is_positive(self, directory: SessionDirectory, seconds: float) -> None:
        with pytest.raises(InvalidInputError):
            await directory.deactivate_stale(older_than_seconds=seconds)

    async def test_the_list_of_a_user(self, directory: SessionDirectory, clock: FakeClock) -> None:
        for agent in ("travel", "shop"):
            clock.advance(1)
            await directory.resolve(USER, agent)
        await directory.resolve("bob", AGENT)
        assert [active.agent_name for active in await directory.list(USER)] == ["shop", "travel"]
