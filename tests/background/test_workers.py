"""Background work: once per segment, patient with failures, gone when told to go."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, Message, SessionDeletedError, SummarizationError, open_container
from reactor_memory.core.log import background_work
from reactor_memory.core.log.summary_store import SqlSummaryStore
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.extractor import ANSWERED, AT_ONCE
from reactor_memory.models import ToolCall
from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.ledger import Extraction
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.providers import asked_models
from reactor_memory.testing import FakeClock, ScriptedSummarizer, append_messages
from tests.acceptance.scenes import USER, eventually, extract, memory, save, scripted, settings, talk, texts
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio


def ledger() -> ModuleType:
    return fact_operations


DOWN = SummarizationError("unavailable", "no answer")


async def work_state(container: Container, session_id: str = "s") -> WorkState:
    state = await container.summary_store().work_state(session_id, SUMMARIZE)
    assert state is not None
    return state


async def test_a_save_returns_before_the_summarizer_is_asked() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer, background={"close_grace_seconds": 0}) as container:
        with anyio.fail_after(30):
            await save(container.conversation_manager(), "s", talk(40))
        assert summarizer.calls == []


async def test_saves_that_come_while_a_job_runs_coalesce_behind_it() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: summarizer.running == 1)
        for start in range(31, 61, 2):
            await save(manager, "s", talk(2, start=start))
        assert summarizer.running == 1
        summarizer.let_go()
        await manager.drain()
    assert summarizer.most_running == 1
    assert [call.seqs[0] for call in summarizer.calls] == [1, 11, 21, 31, 41, 51]


async def test_sessions_are_worked_on_side_by_side_up_to_limit() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer, background={"max_concurrent_sessions": 3}) as container:
        manager = container.conversation_manager()
        for number in range(8):
            await save(manager, f"s{number}", talk(30))
        await eventually(lambda: summarizer.running == 3)
        await anyio.sleep(0.05)
        assert summarizer.running == 3
        summarizer.let_go()
        await manager.drain()
        assert {call.seqs[0] for call in summarizer.calls} == {1, 11, 21}
    assert len(summarizer.calls) == 24


async def test_failed_work_is_tried_again_and_then_counts_as_done() -> None:
    summarizer = scripted().then(DOWN, DOWN)
    async with memory(summarizer) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 5)
        await container.conversation_manager().drain()
        state = await work_state(container)
    assert [call.seqs[0] for call in summarizer.calls] == [1, 1, 1, 11, 21]
    assert (state.attempts, state.parked, state.last_error) == (0, False, None)


async def test_work_that_keeps_failing_is_parked_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_models, "FAILURES", 100)
    summarizer = scripted().then(*[DOWN] * 50)
    background = {"max_attempts": 3, "backoff_seconds": 0.001, "max_backoff_seconds": 60}
    async with memory(summarizer, background=background) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 3)
        await manager.drain()
        state = await work_state(container)
        (reported,) = await container.database().read(background_work.list_work, SUMMARIZE)
        context = await manager.load_history("s", user_id=USER)
    assert (state.attempts, state.parked, state.last_error) == (3, True, "unavailable")
    assert reported == state
    assert len(summarizer.calls) == 3, "a load does not ask for parked work"
    assert context.report.freshness == "failed"


async def test_saves_and_loads_leave_parked_work_alone() -> None:
    """Or a session that a provider does not answer would cost a call for every turn."""
    summarizer = ScriptedSummarizer(default=DOWN)
    background = {"max_attempts": 2, "backoff_seconds": 0.001, "max_backoff_seconds": 60}
    async with memory(summarizer, background=background) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 2)
        await manager.drain()
        for start in range(31, 71, 2):
            await save(manager, "s", talk(2, start=start))
            context = await manager.load_history("s", user_id=USER)
            await manager.drain()
        assert (await work_state(container)).parked
    assert context.report.freshness == "catching_up"
    assert len(summarizer.calls) == 2


@pytest.mark.parametrize("mode", ["ledger", "full"])
@pytest.mark.parametrize("reason", sorted(ANSWERED - AT_ONCE))
async def test_useless_answers_are_retried_once_then_replaced_without_a_model(mode: str, reason: str) -> None:
    summarizer = ScriptedSummarizer(default=SummarizationError(reason, "no answer"))
    background = {"backoff_seconds": 0.001, "max_backoff_seconds": 60}
    messages = [Message.user("My order number is 48213."), Message.assistant("Noted."), *talk(28, start=3)]
    async with memory(summarizer, background=background, summary={"mode": mode}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", messages)
        await eventually(lambda: len(summarizer.calls) >= 2)
        await manager.drain()
        state = await work_state(container)
        segments = await container.facts().segments("s", user_id=USER)
        facts = await container.facts().list("s", user_id=USER)
    assert (state.parked, state.attempts) == (False, 0)
    assert {segment.summarizer for segment in segments} == ({"extractive"} if mode == "ledger" else set())
    assert "48213" in " ".join(fact.value for fact in facts)
    assert [call.seqs[0] for call in summarizer.calls[:2]] == [1, 1]


async def test_parked_work_is_tried_again_after_the_longest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it failed for a reason that has gone is known by trying only: also of what another process gave up."""
    monkeypatch.setattr(asked_models, "FAILURES", 100)
    summarizer = ScriptedSummarizer(default=DOWN)
    background = {"max_attempts": 2, "backoff_seconds": 0.01, "max_backoff_seconds": 0.2}
    async with memory(summarizer, background=background) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 2)
        await manager.drain()
        assert (await work_state(container)).parked
        await anyio.sleep(0.25)
        assert len(summarizer.calls) == 2, "unused, it is left alone"
        await save(manager, "s", talk(2, start=31))
        await manager.drain()
        assert len(summarizer.calls) == 3
        await save(manager, "s", talk(2, start=33))
        await manager.drain()
        state = await work_state(container)
    assert (state.parked, state.attempts) == (True, 3)
    assert len(summarizer.calls) == 3


async def test_parked_work_is_done_when_asked_for_by_name() -> None:
    summarizer = scripted().then(*[DOWN] * 2)
    async with memory(summarizer, background={"max_attempts": 2}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 2)
        await manager.drain()
        summary = await manager.summarize("s", user_id=USER)
        state = await work_state(container)
    assert summary is not None
    assert summary.covered_seq == 30
    assert not state.parked


async def test_the_breaker_spares_a_provider_that_is_down() -> None:
    summarizer = scripted().then(*[DOWN] * 500)
    async with memory(summarizer, background={"max_backoff_seconds": 60}) as container:
        manager = container.conversation_manager()
        for number in range(20):
            await save(manager, f"s{number}", talk(30))
        await manager.drain()
        with anyio.fail_after(30):
            context = await manager.load_history("s7", user_id=USER)
    assert len(summarizer.calls) <= 5 + 3, "calls under way when it opened may still fail"
    assert context.report.strategy == "take_last"


async def test_the_breaker_lets_one_trial_through_and_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_models, "FAILURES", 2)
    monkeypatch.setattr(asked_models, "OPEN_SECONDS", 0.1)
    summarizer = scripted().then(*[DOWN] * 2)
    async with memory(summarizer, background={"max_concurrent_sessions": 1}) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await eventually(lambda: len(summarizer.calls) == 5)
        await container.conversation_manager().drain()
    assert [call.seqs[0] for call in summarizer.calls] == [1, 1, 1, 11, 21]


async def test_closing_lets_a_running_job_finish_within_the_grace_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    summarizer = scripted(delay_seconds=0.1)
    async with memory(summarizer, url) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await eventually(lambda: summarizer.running == 1)
    async with memory(scripted(), url, background={"enabled": False}) as container:
        summary = await container.summary_store().get_summary("s")
    assert summary is not None
    assert summary.covered_seq == 10
    assert summarizer.closed == 1


async def test_closing_cancels_what_takes_longer_and_frees_the_lease(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    summarizer = scripted()
    summarizer.hold()
    with anyio.fail_after(30):
        async with memory(summarizer, url, background={"close_grace_seconds": 0.05}) as container:
            await save(container.conversation_manager(), "s", talk(30))
            await eventually(lambda: summarizer.running == 1)
    assert summarizer.running == 0
    successor = scripted()
    async with memory(successor, url) as container:
        summary = await container.conversation_manager().summarize("s", user_id=USER)
    assert summary is not None
    assert summary.covered_seq == 30


async def test_deleting_a_session_cancels_its_work_and_nothing_comes_back() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await eventually(lambda: summarizer.running == 1)
        await manager.delete("s", user_id=USER)
        assert summarizer.running == 0
        summarizer.let_go()
        await manager.drain()
        assert await container.summary_store().get_summary("s") is None
        with pytest.raises(SessionDeletedError):
            await manager.load_history("s", user_id=USER)


async def test_a_worker_that_is_late_cannot_overwrite() -> None:
    """Its lease has run out, another has done the work since: what it brings is refused."""
    late, clock = scripted(), FakeClock()
    late.hold()

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(late))
        container.clock.override(providers.Object(clock))

    async with open_container(settings(background={"lease_seconds": 60}), configure=configure) as container:
        manager = container.conversation_manager()
        store = container.summary_store()
        await save(manager, "s", talk(30))
        await eventually(lambda: late.running == 1)
        clock.advance(61)
        rival = await store.claim("s", SUMMARIZE, now=clock(), lease_microseconds=60_000_000)
        assert rival is not None
        late.let_go()
        await anyio.sleep(0.1)
        assert await store.get_summary("s") is None
        await store.release(rival, due_at=None)
        await manager.summarize("s", user_id=USER)
        summary = await store.get_summary("s")
    assert summary is not None
    assert summary.covered_seq == 30


async def test_a_message_withdrawn_while_it_is_read_leaves_no_trace() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        await save(manager, "s", [*talk(29), Message.assistant("noted, entry 30")])
        await eventually(lambda: summarizer.running == 1)
        for _ in range(23):
            await container.erasure().withdraw("s", user_id=USER)
        summarizer.let_go()
        await manager.drain()
        await save(manager, "s", talk(30, start=101))
        await manager.drain()
        facts = await container.facts().list("s", user_id=USER)
        context = await manager.load_history("s", user_id=USER)
    gone = {f"A-{number:04}" for number in range(9, 31, 2)}
    assert not gone & {fact.value for fact in facts}
    assert not any(number in "\n".join(texts(context.messages)) for number in gone)
    assert "A-0001" in {fact.value for fact in facts}


async def test_withdrawn_message_loses_its_facts_and_its_segment_is_reread() -> None:
    summarizer = scripted()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await manager.drain()
        await container.erasure().withdraw("s", user_id=USER)
        withdrawn = await container.erasure().withdraw("s", user_id=USER)
        assert "A-0029" not in {fact.value for fact in await container.facts().list("s", user_id=USER)}
        await manager.drain()
        facts = {fact.value for fact in await container.facts().list("s", user_id=USER)}
        summary = await manager.get_summary("s", user_id=USER)
    assert withdrawn.content.endswith("A-0029")
    assert "A-0029" not in facts
    assert "A-0027" in facts
    assert summary is not None
    assert (summary.covered_seq, summary.stale_ranges) == (30, ())
    assert summarizer.calls[-1].seqs == tuple(range(21, 29))


@pytest.mark.parametrize("then", ["full", "ledger"])
async def test_in_full_mode_a_withdrawn_message_makes_the_rest_reread(tmp_path: Path, then: str) -> None:
    """Also by whoever goes on in the other mode: what was covered without segments is in no ledger."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    full = {"mode": "full", "trigger_message_count": 4, "recent_message_count": 1}
    idle = {"enabled": False}
    async with memory(scripted(), url, summary=full) as container:
        await save(container.conversation_manager(), "s", talk(12))
        await container.conversation_manager().drain()
    async with memory(scripted(), url, summary=full, background=idle) as container:
        manager = container.conversation_manager()
        await container.erasure().withdraw("s", user_id=USER)
        await container.erasure().withdraw("s", user_id=USER)
        summary = await manager.get_summary("s", user_id=USER)
        assert summary is not None
        assert (summary.is_empty, summary.stale_ranges) == (True, ((1, 11),))
    async with memory(scripted(), url, summary={**full, "mode": then}) as container:
        manager = container.conversation_manager()
        summary = await manager.summarize("s", user_id=USER)
    assert summary is not None
    assert [fact.value for fact in summary.facts()] == [f"A-{number:04}" for number in (1, 3, 5, 7, 9)]
    assert (summary.stale_ranges, summary.covered_seq) == ((), 11)


async def test_fork_takes_over_the_facts_before_it_without_a_call() -> None:
    summarizer = scripted()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(40))
        await manager.drain()
        calls = len(summarizer.calls)
        fork = await manager.fork("s", at_seq=36, user_id=USER)
        context = await manager.load_history(fork.session_id, user_id=USER)
    assert len(summarizer.calls) == calls
    assert "A-0001" in context.messages[0].content
    assert "A-0037" not in "\n".join(texts(context.messages))
    assert context.report.freshness == "fresh"


async def test_inherited_messages_are_sealed_once_under_their_owner() -> None:
    """A fork of a session that was never summarized lets the root seal what both share."""
    summarizer = scripted()
    async with memory(summarizer, summary={"trigger_message_count": 60}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(40))
        fork = await manager.fork("s", at_seq=37, user_id=USER)
        await save(manager, fork.session_id, talk(30, start=37))
        await manager.drain()
        shared = await container.facts().segments("s", user_id=USER)
        branch = await container.facts().segments(fork.session_id, user_id=USER)
    assert [(part.start_seq, part.end_seq) for part in shared] == [(1, 10), (11, 20), (21, 30)]
    assert [part.conversation_id for part in branch] == ["s", "s", "s", *[fork.session_id] * 3]
    read = [seq for call in summarizer.calls for seq in call.seqs]
    assert read == sorted(set(read))


async def test_fork_inside_a_turn_seals_what_its_owner_cut_elsewhere(tmp_path: Path) -> None:
    """The user speaks where the root's agent went on working: there the branch has a border that the root has not."""
    summarizer = scripted()
    work = [
        message
        for call in map(str, range(6))
        for message in (
            Message.assistant(tool_calls=[ToolCall(id=call, name="look")]),
            Message.tool("found", tool_call_id=call),
        )
    ]
    async with memory(summarizer, f"sqlite:///{tmp_path / 'memory.db'}") as container:
        manager = container.conversation_manager()
        await save(manager, "s", [Message.user("go on"), *work, Message.assistant("done"), *talk(20)])
        await manager.drain()
        fork = await manager.fork("s", at_seq=12, user_id=USER)
        await save(manager, fork.session_id, talk(20))
        with anyio.fail_after(30):
            await manager.drain()
        root = await container.facts().segments("s", user_id=USER)
        branch = await container.facts().segments(fork.session_id, user_id=USER)
    assert (root[0].start_seq, root[0].end_seq) == (1, 14)
    assert [(part.start_seq, part.end_seq) for part in branch] == [(1, 11), (12, 21), (22, 31)]
    assert {part.conversation_id for part in branch} == {fork.session_id}


@pytest.mark.parametrize("fails", [True, False])
async def test_a_fork_leaves_undone_work_to_its_owner(fails: bool) -> None:
    """The fork needs the segments before it only, or failed: the root's other segments stay due."""
    summarizer = scripted().then(*[DOWN] * fails)
    patient = {"backoff_seconds": 60, "max_backoff_seconds": 60}
    async with memory(summarizer, summary={"trigger_message_count": 60}, background=patient) as container:
        manager, store = container.conversation_manager(), container.summary_store()
        await save(manager, "s", talk(70))
        fork = await manager.fork("s", at_seq=25, user_id=USER)
        await manager.drain()
        await store.forget(["s"])
        await append_messages(container.message_store(), "s", talk(10, start=71), user_id=USER, work_every=10)
        await save(manager, fork.session_id, talk(50, start=25))
        await manager.drain()
        due = (await store.due([SUMMARIZE], now=container.clock()()))[SUMMARIZE]
    assert "s" in due


async def test_who_is_cancelled_while_claiming_gives_the_lease_back() -> None:
    """Or nobody could work on the session until the lease runs out."""
    claimed = anyio.Event()

    class SlowSummaries(SqlSummaryStore):
        async def claim(self, *args: Any, **kwargs: Any) -> Lease | None:
            lease = await super().claim(*args, **kwargs)
            claimed.set()
            await anyio.sleep(0.05)
            return lease

    def configure(container: Container) -> None:
        container.summary_store.override(providers.Object(SlowSummaries(container.database(), ledger)))
        container.summarizer.override(providers.Object(scripted()))

    async with open_container(settings(background={"lease_seconds": 600}), configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await claimed.wait()
        await container.background_work().cancel(["s"])
        state = await container.summary_store().work_state("s", SUMMARIZE)
    assert state is not None
    assert state.lease_until == 0


async def test_what_is_saved_while_work_is_released_is_not_forgotten() -> None:
    class SavingStore(SqlSummaryStore):
        """Saves more at the moment when its worker has found nothing left to do."""

        async def release(self, lease: Lease, **outcome: Any) -> None:
            if not more_is_saved:
                more_is_saved.append(True)
                await save(container.conversation_manager(), "s", talk(10, start=31))
            await super().release(lease, **outcome)

    def configure(container: Container) -> None:
        container.summary_store.override(providers.Singleton(SavingStore, container.database, providers.Object(ledger)))
        container.summarizer.override(providers.Object(scripted()))

    more_is_saved: list[bool] = []
    async with open_container(settings(), configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await container.conversation_manager().drain()
        summary = await container.summary_store().get_summary("s")
    assert summary is not None
    assert summary.covered_seq == 40


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_text_of_messages_and_facts_stays_out_of_the_logs(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, kind: str
) -> None:
    """Out of those of the driver, too, and whatever the exception of a plug-in says."""
    caplog.set_level("DEBUG")
    url = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'memory.db'}"}[kind]
    summarizer = scripted().then(RuntimeError("cannot read A-0001"), DOWN, Extraction())
    async with memory(summarizer, url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(30))
        await manager.drain()
        await manager.load_history("s", user_id=USER, message=Message.user("where is A-0001?"))
        await container.erasure().withdraw("s", user_id=USER)
    assert caplog.records
    assert "A-00" not in caplog.text
    assert all("A-00" not in str(vars(record)) for record in caplog.records)


async def test_worker_finds_what_was_saved_while_summaries_were_switched_off(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with memory(scripted(), url, summary={"enabled": False}) as container:
        await save(container.conversation_manager(), "s", talk(40))
    async with memory(scripted(), url) as container:
        assert await container.background_work().run_once() == 1
        summary = await container.summary_store().get_summary("s")
        assert await container.background_work().run_once() == 0
    assert summary is not None
    assert summary.covered_seq == 40


async def test_a_worker_without_summary_work_is_done_with_them(tmp_path: Path) -> None:
    """Work stays due, for whoever switches summaries on. `worker --once` asks until nothing is done any more."""
    async with memory(scripted(), f"sqlite:///{tmp_path / 'memory.db'}", summary={"enabled": False}) as container:
        await save(container.conversation_manager(), "s", talk(40))
        assert await container.background_work().run_once() == 0


async def test_a_process_without_workers_announces_what_another_is_to_do(tmp_path: Path) -> None:
    """Nothing was appended to the fork that would make its work due."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with memory(scripted(), url, background={"enabled": False}) as web, memory(scripted(), url) as worker:
        manager, poller = web.conversation_manager(), worker.background_work()
        await save(manager, "s", talk(60))
        await poller.run_once()
        fork = await manager.fork("s", at_seq=46, user_id=USER)
        assert (await manager.load_history(fork.session_id, user_id=USER)).report.freshness == "catching_up"
        await manager.drain()
        assert await poller.run_once() == 1
        assert (await manager.load_history(fork.session_id, user_id=USER)).report.freshness == "fresh"


async def test_what_is_asked_by_name_needs_no_workers() -> None:
    """In the task of the caller, under the same lease: what came between is not done twice."""
    summarizer = scripted()
    async with memory(summarizer, background={"enabled": False}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(40))
        with anyio.fail_after(30):
            summary = await manager.summarize("s", user_id=USER)
            again = await manager.summarize("s", user_id=USER)
        state = await work_state(container)
    assert summary is not None
    assert summary == again
    assert summary.covered_seq == 40
    assert [call.seqs[0] for call in summarizer.calls] == [1, 11, 21, 31]
    assert (state.due_at, state.lease_until, state.attempts) == (None, 0, 0)


@pytest.mark.parametrize("enabled", [True, False])
async def test_who_asks_by_name_is_told_what_failed(enabled: bool) -> None:
    """What was done until then is stored."""
    summarizer = scripted().then(extract, DOWN)
    patient = {"backoff_seconds": 60, "max_backoff_seconds": 60, "enabled": enabled}
    async with memory(summarizer, background=patient) as container:
        manager = container.conversation_manager()
        await append_messages(container.message_store(), "s", talk(40), user_id=USER)
        with pytest.raises(SummarizationError) as caught:
            await manager.summarize("s", user_id=USER)
        summary = await manager.get_summary("s", user_id=USER)
        state = await work_state(container)
    assert caught.value.reason == "unavailable"
    assert summary is not None
    assert summary.covered_seq == 10
    assert (state.attempts, state.last_error, state.lease_until) == (1, "unavailable", 0)


@pytest.mark.parametrize("enabled", [True, False])
async def test_who_asks_by_name_is_told_that_store_is_away(enabled: bool) -> None:
    database = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True, operations={"claim"})

    def configure(container: Container) -> None:
        container.database.override(providers.Object(database))
        container.summarizer.override(providers.Object(scripted()))

    async with open_container(settings(background={"enabled": enabled}), configure=configure) as container:
        manager = container.conversation_manager()
        await append_messages(container.message_store(), "s", talk(40), user_id=USER)
        with anyio.fail_after(30), pytest.raises(StoreUnavailableError):
            await manager.summarize("s", user_id=USER)
        database.heal()
        summary = await manager.summarize("s", user_id=USER)
    assert summary is not None
    assert summary.covered_seq == 40


async def test_who_asks_by_name_waits_only_as_long_as_given(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    slow = scripted()
    slow.hold()
    async with (
        memory(slow, url, background={"close_grace_seconds": 0}) as worker,
        memory(scripted(), url, background={"enabled": False}) as web,
    ):
        await save(worker.conversation_manager(), "s", talk(40))
        await eventually(lambda: slow.running == 1)
        with anyio.fail_after(30), pytest.raises(SummarizationError) as caught:
            await web.conversation_manager().summarize("s", user_id=USER, timeout_seconds=0.2)
        assert caught.value.reason == "timeout"
        slow.let_go()
        with anyio.fail_after(30):
            summary = await web.conversation_manager().summarize("s", user_id=USER)
    assert summary is not None
    assert summary.covered_seq == 40
