"""Progressive summarisation through the public surface, on every store: steps, contexts, undoing, and by itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import (
    ConfigurationError,
    Container,
    ConversationManager,
    InvalidInputError,
    Message,
    SessionDeletedError,
    SessionOwnershipError,
    Settings,
    SummarizationError,
    ToolCall,
    open_container,
)
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.core.log import operations as log
from reactor_memory.features.tiers.progressive_tiers import (
    DISABLED,
    EMPTY,
    NOTHING_OLDER,
    OTHER_STRATEGY,
    OVERTAKEN,
    ProgressiveTiers,
)
from reactor_memory.testing import ScriptedCondenser
from tests.acceptance.scenes import USER, eventually, save, talk, texts

pytestmark = pytest.mark.anyio

SMALL = {"recent_count": 4, "condensed_count": 6, "auto_threshold": 12}
CURRENT = Message.user("and now?")


class Scene(NamedTuple):
    container: Container
    manager: ConversationManager
    tiers: ProgressiveTiers
    model: ScriptedCondenser

    async def say(self, messages: int, *, start: int = 1, session_id: str = "s") -> None:
        await save(self.manager, session_id, talk(messages, start=start))

    async def load(self, **options: Any) -> Context:
        """A context that the verifier has nothing to say against."""
        context = await self.manager.load_history("s", user_id=USER, message=CURRENT, **options)
        assert verify(context, count=self.container.message_counter().of) == []
        assert context.messages[-1] == CURRENT
        return context

    def stored(self, context: Context) -> list[int | None]:
        return [message.seq for message in context.part("window")]


@asynccontextmanager
async def scene(
    url: str, *, model: ScriptedCondenser | None = None, background: Any = (), **tiers: Any
) -> AsyncGenerator[Scene]:
    model = model or ScriptedCondenser()
    settings = Settings(
        store={"url": url},
        history={"strategy": "progressive"},
        summary={"enabled": False},
        tokens={"counter": "estimate"},
        background=dict(background),
        tiers={**SMALL, **tiers},
    )

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(model))

    async with open_container(settings, configure=configure) as container:
        yield Scene(container, container.conversation_manager(), container.tiers(), model)


async def test_context_has_compressed_part_condensed_part_and_the_recent_messages(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        report = await now.tiers.summarize("s", user_id=USER)
        assert (report.before, report.after, report.compressed_n, report.condensed_n, report.recent_n) == (
            16,
            6,
            6,
            6,
            4,
        )
        assert report.tokens == 22
        assert report.skipped_reason is None
        context = await now.load()
        assert [(m.role, m.content.splitlines()[2:]) for m in context.messages[:2]] == [
            ("system", ["m1 m2 m3 m4 m5 m6"]),
            ("assistant", ["m7 m8 m9 m10 m11 m12"]),
        ]
        assert now.stored(context) == [13, 14, 15, 16]
        assert texts(context.part("window")) == texts(talk(4, start=13))
        compress, condense = now.model.condensed
        assert "long-term memory" in compress.prompt
        assert texts(condense.messages) == texts(talk(6, start=7))


async def test_what_is_promoted_is_merged_and_nothing_is_lost(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        for start in range(1, 60, 10):
            await now.say(10, start=start)
            await now.tiers.summarize("s", user_id=USER)
        stats = await now.tiers.stats("s", user_id=USER)
        assert (stats.total, stats.recent, stats.to_condense, stats.to_compress) == (60, 4, 0, 0)
        assert stats.condensed + stats.compressed == 56
        assert stats.condensed >= 6
        context = await now.load()
        words = [
            word for message in context.messages[:2] for word in " ".join(message.content.splitlines()[2:]).split()
        ]
        assert words == [f"m{seq}" for seq in range(1, 57)]
        assert now.stored(context) == [57, 58, 59, 60]


async def test_an_idle_run_asks_nobody_and_says_so(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        await now.tiers.summarize("s", user_id=USER)
        calls, before = len(now.model.condensed), await now.load()
        report = await now.tiers.summarize("s", user_id=USER)
        assert report.skipped_reason == NOTHING_OLDER
        assert (report.before, report.after, len(now.model.condensed)) == (6, 6, calls)
        assert (await now.load()).report.digest == before.report.digest


async def test_empty_session_is_left_alone_and_the_report_says_so(url: str) -> None:
    async with scene(url) as now:
        report = await now.tiers.summarize("s", user_id=USER)
        assert (report.skipped_reason, report.before, report.after) == (EMPTY, 0, 0)
        assert (await now.tiers.stats("s", user_id=USER)).total == 0
        assert (await now.manager.load_history("s", user_id=USER)).messages == []
        assert now.model.condensed == []


async def test_dry_run_tells_what_would_be_done_and_does_nothing(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        report = await now.tiers.summarize("s", user_id=USER, dry_run=True)
        assert (report.compressed_n, report.condensed_n, report.recent_n, report.summary_ids) == (6, 6, 4, ())
        assert now.model.condensed == []
        assert (await now.tiers.stats("s", user_id=USER)).needs_summarization


@pytest.mark.parametrize("fails", [1, 2])
async def test_whichever_call_fails_the_context_stays_byte_for_byte(url: str, fails: int) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        before = await now.load()

        now.model.fail_after(fails - 1, SummarizationError("unavailable", "down"))
        with pytest.raises(SummarizationError):
            await now.tiers.summarize("s", user_id=USER)
        assert len(now.model.condensed) == fails
        after = await now.load()
        assert after.report.digest == before.report.digest
        assert after.report == before.report
        assert (await now.tiers.stats("s", user_id=USER)).summaries == ()


async def test_restoring_undoes_exactly(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        first = await now.tiers.summarize("s", user_id=USER)
        before, stats = await now.load(), await now.tiers.stats("s", user_id=USER)
        await now.say(10, start=17)
        second = await now.tiers.summarize("s", user_id=USER)
        assert len(second.summary_ids) == 2
        for summary_id in reversed(second.summary_ids):
            assert await now.tiers.restore("s", summary_id, user_id=USER)
            assert not await now.tiers.restore("s", summary_id, user_id=USER)
        restored = await now.tiers.stats("s", user_id=USER)
        assert restored.summaries == stats.summaries
        assert restored.total == 26
        context = await now.load()
        assert context.messages[:2] == before.messages[:2]
        assert now.stored(context) == list(range(13, 27))
        for summary_id in first.summary_ids:
            assert await now.tiers.restore("s", summary_id, user_id=USER)
        assert now.stored(await now.load()) == list(range(1, 27))


async def test_archived_messages_are_out_of_view_and_kept(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        await now.tiers.summarize("s", user_id=USER)
        shown = await now.manager.read_messages("s", user_id=USER)
        assert [message.seq for message in shown] == [13, 14, 15, 16]
        originals = await now.container.database().read(log.read_originals, "s", USER)
        assert texts(originals) == texts(talk(16))


@pytest.mark.parametrize(("retention", "in_view"), [("keep", 16), ("delete", 4)])
async def test_the_retention_is_a_setting(url: str, retention: str, in_view: int) -> None:
    async with scene(url, auto_summarize=False, retention=retention) as now:
        await now.say(16)
        report = await now.tiers.summarize("s", user_id=USER)
        assert len(await now.manager.read_messages("s", user_id=USER)) == in_view
        context = await now.load()
        assert now.stored(context) == [13, 14, 15, 16]
        assert (await now.tiers.summarize("s", user_id=USER)).skipped_reason == NOTHING_OLDER
        if retention == "delete":
            with pytest.raises(InvalidInputError):
                await now.tiers.restore("s", report.summary_ids[0], user_id=USER)


async def test_a_level_brings_everything_to_it(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        report = await now.tiers.summarize("s", user_id=USER, level="condensed")
        assert (report.compressed_n, report.condensed_n) == (0, 12)
        report = await now.tiers.summarize("s", user_id=USER, level="compressed")
        assert (report.compressed_n, report.condensed_n) == (12, 0)
        with pytest.raises(InvalidInputError, match="level"):
            await now.tiers.summarize("s", user_id=USER, level="brief")  # type: ignore[arg-type]


async def test_pairs_stay_whole(url: str) -> None:
    turn = [
        Message.user("look it up"),
        Message.assistant(tool_calls=[ToolCall(id="a", name="find"), ToolCall(id="b", name="find")]),
        Message.tool("one", tool_call_id="b"),
        Message.tool("two", tool_call_id="a"),
        Message.assistant("done"),
    ]
    async with scene(url, auto_summarize=False, recent_count=2) as now:
        for _ in range(6):
            await save(now.manager, "s", turn)
        await now.tiers.summarize("s", user_id=USER)
        stats = await now.tiers.stats("s", user_id=USER)
        assert [(each.start_seq, each.end_seq) for each in stats.summaries] == [(1, 15), (16, 25)]
        assert now.stored(await now.load()) == [26, 27, 28, 29, 30]


# -- by itself --------------------------------------------------------------------------------------------------------


async def test_with_more_messages_than_the_threshold_it_summarises_by_itself(url: str) -> None:
    async with scene(url) as now:
        reports: list[object] = []
        now.tiers.listen(lambda session_id, report: reports.append((session_id, report.before, report.after)))
        await now.say(12)
        await now.manager.drain()
        assert now.model.condensed == []
        await now.say(2, start=13)
        await now.manager.drain()
        assert len(now.model.condensed) == 2
        assert reports == [("s", 14, 6)]
        assert now.stored(await now.load()) == [11, 12, 13, 14]


async def test_what_has_a_summary_does_not_count_for_the_threshold(url: str) -> None:
    async with scene(url) as now:
        await now.say(16)
        await now.manager.drain()
        asked = len(now.model.condensed)
        await now.say(8, start=17)
        await now.tiers.summarize_if_due("s")
        assert (await now.tiers.stats("s", user_id=USER)).unsummarized == 12
        assert len(now.model.condensed) == asked
        await now.say(2, start=25)
        await now.manager.drain()
        assert len(now.model.condensed) > asked


async def test_a_deleted_session_leaves_nothing_behind_to_wait_for(url: str) -> None:
    async with scene(url, model=ScriptedCondenser(delay_seconds=30)) as now:
        await now.say(14)
        await now.manager.delete("s", user_id=USER)
        await now.manager.drain()
        with pytest.raises(SessionDeletedError):
            await now.tiers.stats("s", user_id=USER)


async def test_a_turn_without_its_answer_triggers_nothing(url: str) -> None:
    async with scene(url) as now:
        await now.say(13)  # ends with a user message
        await now.manager.drain()
        assert now.model.condensed == []
        call = Message.assistant(tool_calls=[ToolCall(id="a", name="find")])
        await save(now.manager, "s", [call])
        await now.manager.drain()
        assert now.model.condensed == []
        await save(now.manager, "s", [Message.tool("one", tool_call_id="a"), Message.assistant("done")])
        await now.manager.drain()
        assert now.model.condensed != []


async def test_between_two_steps_nobody_looks_at_the_session(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(url) as now:
        looked: list[str] = []
        look = now.tiers.summarize_if_due

        async def counted(session_id: str) -> int:
            looked.append(session_id)
            return await look(session_id)

        monkeypatch.setattr(now.tiers, "summarize_if_due", counted)
        for start in range(1, 41, 2):
            await now.say(2, start=start)
            await now.manager.drain()
        steps = len(now.model.condensed)
        assert steps
        assert len(looked) <= 8
        assert (await now.tiers.stats("s", user_id=USER)).unsummarized <= 12


async def test_switched_off_it_waits_to_be_asked(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(40)
        await now.manager.drain()
        assert now.model.condensed == []
        assert (await now.tiers.stats("s", user_id=USER)).auto_threshold is None
        assert (await now.tiers.summarize("s", user_id=USER)).skipped_reason is None


async def test_disabled_stays_disabled_and_still_shows_what_there_is(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        await now.tiers.summarize("s", user_id=USER)
        if url == "memory://":
            return
    async with scene(url, enabled=False, recent_count=0) as now:
        await now.say(20, start=17)
        await now.manager.drain()
        report = await now.tiers.summarize("s", user_id=USER)
        assert report.skipped_reason == DISABLED
        assert report.before == report.after == 26
        assert now.model.condensed == []
        assert (await now.tiers.stats("s", user_id=USER)).disabled == DISABLED
        assert now.stored(await now.load()) == list(range(13, 37))


async def test_failure_in_background_fails_no_save_and_is_tried_again(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(url, background={"backoff_seconds": 0.1, "max_backoff_seconds": 0.1}) as now:
        now.model.fail_after(0, SummarizationError("unavailable", "down"))
        with caplog.at_level(logging.WARNING):
            await now.say(14)
            await now.manager.drain()
        assert [record.reason for record in caplog.records] == ["unavailable"]  # type: ignore[attr-defined]
        assert now.stored(await now.load()) == list(range(1, 15))
        now.model.recover()
        await now.say(2, start=15)
        with anyio.fail_after(30):
            while now.stored(await now.load()) != [13, 14, 15, 16]:  # noqa: ASYNC110 - a state that no event tells of
                await anyio.sleep(0.02)


async def test_fault_of_plug_in_takes_nothing_down_and_quotes_nothing(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(url) as now:
        now.model.fail_after(0, RuntimeError("A-0001"))
        await now.say(14)
        await now.manager.drain()
        assert "A-0001" not in caplog.text
        assert "RuntimeError" in [getattr(record, "reason", "") for record in caplog.records]
        await now.say(2, start=15)


async def test_a_worker_does_it_for_processes_that_leave_it(url: str, tmp_path: Path) -> None:
    if url == "memory://":
        url = f"sqlite:///{tmp_path / 'shared.db'}"
    async with scene(url, background={"enabled": False}) as agent:
        await agent.say(14)
        await agent.manager.drain()
        assert agent.model.condensed == []
        async with scene(url) as worker:
            poller = worker.container.background_work()
            assert await poller.run_once() == 1
            assert len(worker.model.condensed) == 2
            assert await poller.run_once() == 0
        assert agent.stored(await agent.load()) == [11, 12, 13, 14]


async def test_worker_does_not_ask_at_once_again_for_what_failed(url: str) -> None:
    async with scene(url, background={"backoff_seconds": 60}) as now:
        now.model.fail_after(0, SummarizationError("timeout", "no answer"))
        await now.say(14)
        await now.manager.drain()
        assert await now.container.background_work().run_once() == 0
        assert len(now.model.condensed) == 1
        now.model.recover()
        await now.manager.summarize("s", user_id=USER)
        assert len(now.model.condensed) == 3


async def test_after_an_erasure_the_next_save_summarises_what_came_back(url: str) -> None:
    async with scene(url) as now:
        await now.say(14)
        await now.manager.drain()
        assert len(now.stored(await now.load())) == 4
        await now.container.erasure().erase("s", seq=range(2, 9), user_id=USER)
        await now.container.erasure().erase("s", seq=9, user_id=USER)
        await now.manager.drain()
        await now.say(8, start=15)
        await now.manager.drain()
        stats = await now.tiers.stats("s", user_id=USER)
        assert stats.unsummarized <= SMALL["auto_threshold"]


async def test_messages_that_a_fork_still_shows_are_archived_not_deleted(url: str) -> None:
    async with scene(url, auto_summarize=False, retention="delete") as now:
        await now.say(10)
        fork = await now.manager.fork("s", at_seq=6, user_id=USER)
        await now.say(6, start=11)
        assert (await now.tiers.summarize("s", user_id=USER)).skipped_reason is None
        assert now.stored(await now.load()) == [13, 14, 15, 16]
        shared = await now.manager.read_messages(fork.session_id, user_id=USER)
        assert texts(shared) == texts(talk(5))


async def test_two_steps_at_once_store_one(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        reports: list[str | None] = []

        async def step() -> None:
            reports.append((await now.tiers.summarize("s", user_id=USER)).skipped_reason)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(step)
        assert reports.count(None) == 1
        assert set(reports) <= {None, OVERTAKEN, NOTHING_OLDER}
        assert (await now.tiers.stats("s", user_id=USER)).total == 16


async def test_message_that_arrives_during_step_is_kept_out_of_it(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)

        now.model.hold()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: now.tiers.summarize("s", user_id=USER))
            await eventually(lambda: len(now.model.condensed) == 1)
            await now.say(2, start=17)
            now.model.let_go()
        assert now.stored(await now.load()) == [13, 14, 15, 16, 17, 18]


async def test_closing_waits_for_a_step_that_runs(url: str) -> None:
    model = ScriptedCondenser(delay_seconds=0.05)
    async with scene(url, model=model) as now:
        await now.say(14)
        await eventually(lambda: bool(model.condensed))
    assert len(model.condensed) == 2
    if url != "memory://":
        async with scene(url) as later:
            assert later.stored(await later.load()) == [11, 12, 13, 14]


# -- who may, and what else ------------------------------------------------------------------------------------------


async def test_a_stranger_is_refused(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        for refused in (
            now.tiers.stats("s", user_id="eve"),
            now.tiers.summarize("s", user_id="eve"),
            now.tiers.restore("s", "x", user_id="eve"),
        ):
            with pytest.raises(SessionOwnershipError):
                await refused
        await now.manager.delete("s", user_id=USER)
        with pytest.raises(SessionDeletedError):
            await now.tiers.summarize("s", user_id=USER)


async def test_a_fork_summarises_what_is_its_own(url: str) -> None:
    async with scene(url, auto_summarize=False) as now:
        await now.say(16)
        await now.tiers.summarize("s", user_id=USER)
        fork = await now.manager.fork("s", at_seq=15, user_id=USER)
        await now.say(12, start=15, session_id=fork.session_id)
        await now.tiers.summarize(fork.session_id, user_id=USER)
        context = await now.manager.load_history(fork.session_id, user_id=USER, message=CURRENT)
        assert verify(context, count=now.container.message_counter().of) == []
        stats = await now.tiers.stats(fork.session_id, user_id=USER)
        assert [(each.kind, each.start_seq, each.end_seq) for each in stats.summaries][:2] == [
            ("compressed", 1, 6),
            ("condensed", 7, 12),
        ]
        assert all(each.start_seq >= 15 for each in stats.summaries[2:])
        assert [each.seq for each in context.part("window")] == [13, 14, 23, 24, 25, 26]
        assert now.stored(await now.load()) == [13, 14, 15, 16]


async def test_a_redactor_keeps_its_words_out_of_every_text(url: str) -> None:
    def configure(container: Container) -> None:
        container.redactor.override(providers.Object(lambda text: text.replace("A-0001", "(number)")))

    settings = Settings(store={"url": url}, history={"strategy": "progressive"}, tiers=SMALL)
    async with open_container(settings, configure=configure) as container:
        await save(container.conversation_manager(), "s", talk(40))
        await container.conversation_manager().drain()
        stats = await container.tiers().stats("s", user_id=USER)
        assert stats.summaries
        assert all("A-0001" not in each.text for each in stats.summaries)
        assert any("A-0003" in each.text for each in stats.summaries)


async def test_with_another_strategy_nothing_is_summarised_and_report_says_why() -> None:
    async with open_container(Settings(store={"url": "memory://"}, tiers=SMALL)) as container:
        await save(container.conversation_manager(), "s", talk(40))
        await container.conversation_manager().drain()
        report = await container.tiers().summarize("s", user_id=USER)
        assert report.skipped_reason == OTHER_STRATEGY
        assert len(await container.conversation_manager().read_messages("s", user_id=USER)) == 40


async def test_deleting_is_refused_where_facts_depend_on_it() -> None:
    settings = Settings(
        store={"url": "memory://"},
        history={"strategy": "progressive"},
        tiers={"retention": "delete"},
        summary={"enabled": True},
    )
    with pytest.raises(ConfigurationError, match=r"tiers\.retention"):
        async with open_container(settings):
            pass
