"""Work that somebody left behind: killed processes, wrong clocks, erasures cut off. Looking once finds all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Message, SummarizationError
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.models.leases import WorkState
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, SUMMARIZE, ErasedBranch
from reactor_memory.testing import FakeClock, ScriptedSummarizer, append_messages
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.acceptance.scenes import USER, eventually, save, scripted, settings, talk
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

LEASE = 60
HOUR = 3600
SESSIONS = ("a", "b", "c", "d", "e")


@asynccontextmanager
async def memory(
    clock: FakeClock,
    *,
    url: str = "memory://",
    summarizer: ScriptedSummarizer | None = None,
    store: Mapping[str, Any] | None = None,
    **parts: Any,
) -> AsyncGenerator[ServiceContainer]:
    """A container that waits patiently: only what a test asks for is done."""

    def configure(container: ServiceContainer) -> None:
        container.clock.override(providers.Object(clock))
        container.summarizer.override(providers.Object(summarizer or scripted()))
        for name, part in parts.items():
            getattr(container, name).override(providers.Object(part))

    waiting = {"lease_seconds": LEASE, "backoff_seconds": LEASE, "max_backoff_seconds": LEASE, "close_grace_seconds": 0}
    async with open_service_container(
        settings(url, background=waiting, store=store or {}), configure=configure
    ) as container:
        yield container


async def state(container: ServiceContainer, session_id: str, kind: str = SUMMARIZE) -> WorkState | None:
    return await container.summary_store().work_state(session_id, kind)


async def covered(container: ServiceContainer, session_id: str) -> int:
    summary = await container.summary_store().get_summary_head(session_id)
    return summary.covered_seq if summary else 0


async def hold(container: ServiceContainer, session_id: str) -> None:
    """Take the lease as a process does that is killed then."""
    now = container.clock()()
    lease = await container.summary_store().claim(
        session_id, SUMMARIZE, now=now, lease_microseconds=LEASE * 1_000_000, wait_microseconds=LEASE * 1_000_000
    )
    assert lease is not None


async def test_what_killed_processes_held_is_done_by_the_next_look() -> None:
    """Whatever made their work begin: nothing was ever due here."""
    clock = FakeClock()
    async with memory(clock) as container:
        for session_id in SESSIONS:
            await append_messages(container.message_store(), session_id, talk(30), user_id=USER, work_every=None)
            await hold(container, session_id)
        assert await container.background_work().run_once() == 0, "they may still live"
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == len(SESSIONS)
        for session_id in SESSIONS:
            assert await covered(container, session_id) == 30
            left = await state(container, session_id)
            assert left is not None
            assert (left.due_at, left.lease_until) == (None, 0)
        assert await container.background_work().run_once() == 0


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_jumping_clock_holds_up_nobodys_lease_beyond_one_lease(jump: int) -> None:
    """The process that holds the lease dies; the clock goes wrong, before or after that."""
    clock = FakeClock()
    async with memory(clock) as container:
        await append_messages(container.message_store(), "s", talk(30), user_id=USER)
        await hold(container, "s")
        clock.advance(jump)
        await container.background_work().run_once()
        clock.advance(LEASE + 1)
        await container.background_work().run_once()
        assert await covered(container, "s") == 30


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_clock_that_jumps_puts_nothing_off_for_longer_than_pause(jump: int) -> None:
    clock, summarizer = FakeClock(), scripted().then(SummarizationError("unavailable", "no answer"))
    async with memory(clock, summarizer=summarizer) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await container.conversation_manager().drain()
        assert await container.background_work().run_once() == 0, "it is put off"
        clock.advance(jump)
        assert await container.background_work().run_once() == 1
        assert await covered(container, "s") == 30


async def test_lease_that_is_held_through_jump_is_lost_without_harm() -> None:
    """Another process takes the work over; what the first one brings is refused, and nothing is read in vain twice."""
    clock, slow = FakeClock(), scripted()
    slow.hold()
    async with memory(clock, summarizer=slow) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await eventually(lambda: slow.running == 1)
        clock.advance(-HOUR)
        await hold(container, "s")
        slow.let_go()
        await container.conversation_manager().drain()
        assert await covered(container, "s") == 0
        clock.advance(LEASE + 1)
        await container.background_work().run_once()
        assert await covered(container, "s") == 30


# -- what is deleted ---------------------------------------------------------------------------------------------------


async def test_of_deleted_conversation_no_row_stays_but_that_it_was(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    sections: dict[str, Any] = {"search": {"enabled": True}, "background": {"close_grace_seconds": 0}}
    async with open_service_container(settings(f"sqlite:///{path}", **sections)) as container:
        manager = container.conversation_manager()
        for session_id in ("s", "kept"):
            await save(manager, session_id, talk(40))
            fork = await manager.fork(session_id, at_seq=21, user_id=USER)
            await save(manager, fork.session_id, talk(20, start=21))
            await container.pins().add(session_id, seq=1, user_id=USER)
            await manager.load_history(session_id, user_id=USER, message=Message.user("A-0001?"))
            await container.erasure().erase(session_id, seq=5, user_id=USER)
        await manager.drain()
        await container.background_work().run_once()
        await manager.delete("s", user_id=USER)
        await container.background_work().run_once()
    assert rows_of("s", path) == {"conversations": 2}
    assert rows_of("kept", path).keys() >= {"conversations", "messages", "background_work", "segments", "facts"}


def rows_of(group_id: str, path: Path) -> dict[str, int]:
    """How many rows each table has of a group, where it has some. What was spent on it counts for the day."""
    counts: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            if "group_id" in columns and table != "summary_spending":
                query = f"SELECT COUNT(*) FROM {table} WHERE group_id = ?"
                counts[table] = connection.execute(query, [group_id]).fetchone()[0]
    return {table: count for table, count in counts.items() if count}


# -- what is erased ----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


class Elsewhere:
    """`KeptElsewhere` that fails when it is told to, with a `fault`."""

    name = "elsewhere"

    def __init__(self, fault: type[BaseException] = Killed) -> None:
        self.fault = fault
        self.failures = 0
        self.gone: set[str] = set()
        self.forgotten: set[str] = set()

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.fault("is away")

    async def messages_gone(self, branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
        self._fail()
        self.gone.update(message_ids)

    async def forget(self, session_ids: Sequence[str]) -> None:
        self._fail()
        self.forgotten.update(session_ids)


async def test_an_erasure_that_ended_leaves_nothing_to_do() -> None:
    async with memory(FakeClock()) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(4))
        await container.erasure().erase("s", seq=2, user_id=USER)
        assert await state(container, "s", ERASE) is None
        await container.erasure().erase_user(USER)
        assert await state(container, "s", ERASE_USER) is None
        assert await container.background_work().run_once() == 0


async def test_an_erasure_that_was_cut_off_goes_on_by_itself() -> None:
    """Nobody else goes on as long as the process may live that began it."""
    clock, elsewhere = FakeClock(), Elsewhere()
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(6))
        messages = await manager.read_messages("s", user_id=USER)
        ids = {message.message_id for message in messages if message.seq in (2, 3)}
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await container.erasure().erase("s", seq=range(2, 4), user_id=USER)
        assert await container.background_work().run_once() == 0
        assert elsewhere.gone == set()
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == 2, "elsewhere, and in the files"
        assert elsewhere.gone == ids
        assert await state(container, "s", ERASE) is None


async def test_a_withdrawal_that_was_cut_off_goes_on_by_itself() -> None:
    clock, elsewhere = FakeClock(), Elsewhere()
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(6))
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await container.erasure().withdraw("s", user_id=USER)
        assert await container.background_work().run_once() == 0, "who began it may still live"
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == 1
        newest = (await manager.read_messages("s", user_id=USER))[-1]
        assert newest.seq == 5
        assert len(elsewhere.gone) == 1
        assert newest.message_id not in elsewhere.gone
        assert await state(container, "s", ERASE) is None


async def test_a_withdrawal_that_ended_leaves_nothing_to_do() -> None:
    clock, elsewhere = FakeClock(), Elsewhere()
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        await save(container.conversation_manager(), "s", talk(6))
        await container.erasure().withdraw("s", user_id=USER)
        assert len(elsewhere.gone) == 1
        assert await state(container, "s", ERASE) is None


async def test_erasures_that_meet_are_both_finished() -> None:
    """The second one takes the lease of the first away: what is left of both stays due until somebody has done it."""
    clock, elsewhere = FakeClock(), Elsewhere()
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(6))
        gone = elsewhere.messages_gone

        async def meet(branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
            elsewhere.messages_gone = gone
            elsewhere.failures = 1
            with pytest.raises(Killed):
                await container.erasure().erase("s", seq=4, user_id=USER)
            await gone(branches, message_ids)

        elsewhere.messages_gone = meet
        await container.erasure().erase("s", seq=2, user_id=USER)
        assert len(elsewhere.gone) == 1
        assert await container.background_work().run_once() == 1
        assert len(elsewhere.gone) == 2
        assert await state(container, "s", ERASE) is None


async def test_an_erasure_goes_on_while_what_is_elsewhere_is_away() -> None:
    clock, elsewhere = FakeClock(), Elsewhere(StoreUnavailableError)
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(6))
        elsewhere.failures = 50
        erased = await container.erasure().erase("s", seq=2, user_id=USER)
        assert (erased.message_count, erased.is_scrubbed, erased.left) == (1, False, ("elsewhere",))
        assert await container.background_work().run_once() == 0
        tries = 50 - 1 - elsewhere.failures
        assert await container.background_work().run_once() == 0
        assert 50 - 1 - elsewhere.failures == tries, "it is put off"
        elsewhere.failures = 0
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == 1
        assert len(elsewhere.gone) == 1


async def test_users_are_erased_while_what_is_elsewhere_is_away() -> None:
    """The database forgets at once; asking again tells what is left until it is gone."""
    clock, elsewhere = FakeClock(), Elsewhere(StoreUnavailableError)
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        await save(container.conversation_manager(), "s", talk(6))
        elsewhere.failures = 2
        for count in (1, 0):
            erased = await container.erasure().erase_user(USER)
            assert (erased.session_count, erased.is_scrubbed, erased.left) == (count, False, ("elsewhere",))
        health = await container.message_store().check()
        assert dict(health.details)["messages"] == "0"
        assert [problem for problem in health.problems if problem.startswith("left to destroy: sessions of erased")]
        assert await container.background_work().run_once() == 1
        assert elsewhere.forgotten == {"s"}
        again = await container.erasure().erase_user(USER)
        assert (again.session_count, again.is_scrubbed, again.left) == (0, True, ())
        assert (await container.message_store().check()).problems == ()


async def test_a_withdrawal_is_done_while_what_is_elsewhere_is_away() -> None:
    """It raises nothing: whoever asked again would withdraw the message before, too."""
    clock, elsewhere = FakeClock(), Elsewhere(RuntimeError)
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        await save(container.conversation_manager(), "s", talk(6))
        elsewhere.failures = 1
        assert (await container.erasure().withdraw("s", user_id=USER)).seq == 6
        assert elsewhere.gone == set()
        assert await container.background_work().run_once() == 1
        assert len(elsewhere.gone) == 1
        assert await state(container, "s", ERASE) is None


# -- what is deleted, and kept elsewhere -------------------------------------------------------------------------------


async def delete_one(container: ServiceContainer) -> None:
    await container.conversation_manager().delete("s", user_id=USER)


async def prune(container: ServiceContainer) -> None:
    await container.pruner().prune(older_than_seconds=-1)


async def delete_for_a_caller(container: ServiceContainer) -> None:
    await container.conversations().delete(Principal(user_id=USER), "s")


@pytest.mark.parametrize("deletes", [delete_one, prune, delete_for_a_caller])
async def test_deletion_that_was_cut_off_goes_on_in_another_process(
    tmp_path: Path, deletes: Callable[[ServiceContainer], Awaitable[None]]
) -> None:
    """Cut off between the log and what is kept elsewhere, whoever deletes; a fork goes with its root."""
    clock, away, elsewhere = FakeClock(), Elsewhere(), Elsewhere()
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with memory(clock, url=url, kept_elsewhere=(away,)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(4))
        ids = {"s", (await manager.fork("s", at_seq=3, user_id=USER)).session_id}
        away.failures = 1
        with pytest.raises(Killed):
            await deletes(container)
    async with memory(clock, url=url, kept_elsewhere=(elsewhere,)) as container:
        assert await container.background_work().run_once() == 0, "who began it may still live"
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == 3, "two sessions elsewhere, and the files"
        assert elsewhere.forgotten == ids
        assert {await state(container, each, FORGET) for each in ids} == {None}
        assert await container.background_work().run_once() == 0


async def test_a_deletion_goes_on_while_what_is_elsewhere_is_away() -> None:
    clock, elsewhere = FakeClock(), Elsewhere(RuntimeError)
    async with memory(clock, kept_elsewhere=(elsewhere,)) as container:
        await save(container.conversation_manager(), "s", talk(4))
        elsewhere.failures = 50
        deleted = await container.conversation_manager().delete("s", user_id=USER)
        assert (deleted.session_ids, deleted.is_scrubbed, deleted.left) == (("s",), False, ("elsewhere",))
        assert await container.background_work().run_once() == 0
        elsewhere.failures = 0
        clock.advance(LEASE + 1)
        assert await container.background_work().run_once() == 1
        assert elsewhere.forgotten == {"s"}


@pytest.mark.parametrize("parts", [(), (Elsewhere(),)])
async def test_a_deletion_that_ended_leaves_nothing_to_do(parts: tuple[Elsewhere, ...]) -> None:
    async with memory(FakeClock(), kept_elsewhere=parts) as container:
        await save(container.conversation_manager(), "s", talk(4))
        await delete_one(container)
        assert await state(container, "s", FORGET) is None
        assert all(part.forgotten == {"s"} for part in parts)


async def test_what_is_kept_elsewhere_goes_when_grace_time_is_over() -> None:
    clock, elsewhere = FakeClock(), Elsewhere()
    async with memory(clock, store={"delete_grace_days": 1}, kept_elsewhere=(elsewhere,)) as container:
        await save(container.conversation_manager(), "s", talk(4))
        await delete_one(container)
        await container.background_work().run_once()
        assert elsewhere.forgotten == set()
        clock.advance(25 * HOUR)
        await container.background_work().run_once()
        await container.background_work().run_once()
        assert elsewhere.forgotten == {"s"}
        assert await state(container, "s", FORGET) is None


@pytest.mark.postgres
async def test_a_deletion_that_was_cut_off_goes_on_in_postgres(postgres_dsn: str) -> None:
    elsewhere = Elsewhere()

    def configure(container: ServiceContainer) -> None:
        container.kept_elsewhere.override(providers.Object((elsewhere,)))

    short = {"lease_seconds": 0.2, "backoff_seconds": 0.01, "max_backoff_seconds": 0.01}
    async with open_service_container(settings(postgres_dsn, background=short), configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(4))
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await delete_one(container)
        await anyio.sleep(0.3)
        assert await container.background_work().run_once() == 1
        assert elsewhere.forgotten == {"s"}
        assert await state(container, "s", FORGET) is None


@pytest.mark.postgres
async def test_erasures_that_were_cut_off_go_on_in_postgres(postgres_dsn: str) -> None:
    """Its own clock tells when a lease has run out, so this one waits."""
    elsewhere = Elsewhere()

    def configure(container: ServiceContainer) -> None:
        container.kept_elsewhere.override(providers.Object((elsewhere,)))

    short = {"lease_seconds": 0.2, "backoff_seconds": 0.01, "max_backoff_seconds": 0.01}
    async with open_service_container(settings(postgres_dsn, background=short), configure=configure) as container:
        manager, work = container.conversation_manager(), container.background_work()
        for session_id in SESSIONS[:3]:
            await save(manager, session_id, talk(4))
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await container.erasure().erase("a", seq=2, user_id=USER)
        await anyio.sleep(0.3)
        assert await work.run_once() == 1
        assert len(elsewhere.gone) == 1
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await container.erasure().erase_user(USER)
        await anyio.sleep(0.3)
        assert await work.run_once() == 3
        assert elsewhere.forgotten == {*SESSIONS[:3]}
        assert await container.database().read(erasure.owned_groups, USER) == ()
        assert await state(container, "a", ERASE_USER) is None
        assert await work.run_once() == 0


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6, 7, 8])
async def test_an_interrupted_erasure_of_a_user_goes_on_by_itself(at: int) -> None:
    clock = FakeClock()
    steps = {"delete", "purge_group", "settle_group", "owned_groups", "_merge"}
    database = FaultyDatabase(memory_database(), at=at, mode="before", operations=steps)
    async with memory(clock, database=database) as container:
        manager = container.conversation_manager()
        for session_id in SESSIONS[:3]:
            await save(manager, session_id, talk(2))
        await save(manager, "other", talk(2), user_id="bob")
        with pytest.raises(StoreUnavailableError):
            await container.erasure().erase_user(USER)
        clock.advance(LEASE + 1)
        await container.background_work().run_once()
        assert await database.read(erasure.owned_groups, USER) == ()
        for session_id in SESSIONS[:3]:
            assert await state(container, session_id, ERASE_USER) is None
        assert len(await manager.read_messages("other", user_id="bob")) == 2
        assert await container.background_work().run_once() == 0


async def test_what_was_deleted_is_removed_after_its_grace_time() -> None:
    clock = FakeClock()

    def configure(container: ServiceContainer) -> None:
        container.clock.override(providers.Object(clock))

    async def stored(container: ServiceContainer) -> str:
        return dict((await container.message_store().check()).details)["messages"]

    async with open_service_container(settings(store={"delete_grace_days": 1}), configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(4))
        await container.conversation_manager().delete("s", user_id=USER)
        await container.background_work().run_once()
        assert await stored(container) == "4"
        clock.advance(25 * HOUR)
        await container.background_work().run_once()
        assert await stored(container) == "0"


async def test_without_summaries_an_erasure_that_was_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # away from the file of settings, which has every setting
    clock, elsewhere = FakeClock(), Elsewhere()
    values = settings(summary={"enabled": False}, background={"lease_seconds": LEASE, "poll_seconds": 0.01})

    def configure(container: ServiceContainer) -> None:
        container.clock.override(providers.Object(clock))
        container.kept_elsewhere.override(providers.Object((elsewhere,)))

    async with open_service_container(values, configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(6))
        elsewhere.failures = 1
        with pytest.raises(Killed):
            await container.erasure().erase("s", seq=2, user_id=USER)
        clock.advance(LEASE + 1)
        await eventually(lambda: len(elsewhere.gone) == 1)
