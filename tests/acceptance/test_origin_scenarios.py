"""Scenarios of the arc-reactor project, on the public surface. `README.md` beside this file maps each to its test.

Where this library promises something else on purpose, the name of the test says what.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dependency_injector import providers

from reactor_memory import (
    ConfigurationError,
    Container,
    InvalidInputError,
    Message,
    SessionDeletedError,
    SessionOwnershipError,
    Settings,
    SummarizationError,
    ToolCall,
    open_container,
)
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.testing import FakeClock
from reactor_memory.tokens.estimate import EstimateCounter
from tests.acceptance.scenes import (
    USER,
    eventually,
    extract,
    memory,
    memory_blocks,
    save,
    scripted,
    settings,
    talk,
    texts,
)
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.fixtures_stores import memory_or_sqlite
from tests.scenes.stores import memory_database, memory_store

pytestmark = pytest.mark.anyio

SMALL: dict[str, Any] = {
    "history": {"max_conversation_turns": 5},
    "summary": {"trigger_message_count": 6, "recent_message_count": 4, "segment_message_count": 2},
}
QUESTION = Message.user("what now?")
url = memory_or_sqlite


@asynccontextmanager
async def memory_that_fails(
    methods: Collection[str] | None = None, **sections: Any
) -> AsyncGenerator[tuple[Container, FaultyDatabase]]:
    """A memory whose store fails at every call (of `methods`, if given) until it is healed."""
    store = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True, operations=methods)

    def configure(container: Container) -> None:
        container.database.override(providers.Object(store))
        container.summarizer.override(providers.Object(scripted()))

    async with open_container(settings(**sections), configure=configure) as container:
        yield container, store


# Loading


async def test_a_given_history_needs_no_store() -> None:
    own = [Message.user("hello"), Message.assistant("hi")]
    async with memory_that_fails() as (container, store):
        context = await container.conversation_manager().load_history("s", user_id=USER, history=own)
        store.heal()
    assert context.messages == own
    assert store.calls == 0


@pytest.mark.parametrize("session_id", ["", None, 7])
async def test_session_without_a_name_is_refused_and_nobody_is_asked(session_id: Any) -> None:
    summarizer = scripted()
    async with memory(summarizer) as container:
        manager = container.conversation_manager()
        for call in (
            lambda: manager.load_history(session_id, user_id=USER),
            lambda: manager.save_history(session_id, talk(40), user_id=USER),
        ):
            with pytest.raises(InvalidInputError) as caught:
                await call()
            assert caught.value.field == "session_id"
        await manager.drain()
        assert (await manager.list_sessions(user_id=USER)).sessions == ()
    assert summarizer.calls == []


async def test_what_was_saved_is_there_turn_after_turn(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        for number, expected in ((1, 2), (2, 4)):
            async with manager.turn("s", Message.user(f"question {number}"), user_id=USER) as turn:
                turn.answer(f"answer {number}")
            context = await manager.load_history("s", user_id=USER)
            assert len(context.messages) == expected
    assert texts(context.messages) == ["question 1", "answer 1", "question 2", "answer 2"]


async def test_ten_messages_four_recent_are_two_blocks_and_four_messages(url: str) -> None:
    async with memory(scripted(), url, **SMALL) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(10))
        await manager.drain()
        context = await manager.load_history("s", user_id=USER)
    assert [message.content.splitlines()[0] for message in memory_blocks(context.messages)] == [
        "Conversation Facts:",
        "Conversation Summary:",
    ]
    assert texts(context.messages[2:]) == texts(talk(4, start=7))


async def test_thirty_two_messages_are_two_blocks_and_the_ten_newest(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        await manager.drain()
        context = await manager.load_history("s", user_id=USER)
    facts, narrative = memory_blocks(context.messages)
    assert all(f"A-{number:04}" in facts.content for number in range(1, 23, 2))
    assert "The customer gave order numbers." in narrative.content
    assert texts(context.messages[2:]) == texts(talk(10, start=23))


async def test_while_a_segment_waits_its_messages_are_shown_verbatim(url: str) -> None:
    """Not drained: of what the window leaves out, at most one segment may still wait, and nothing is left out."""
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        context = await manager.load_history("s", user_id=USER)
    window = [message.seq or 0 for message in context.messages if message.seq is not None]
    assert 10 <= len(window) <= 20
    assert window == list(range(window[0], 33))
    assert context.report.unread == ()
    shown = "\n".join(texts(context.messages))
    assert all(f"A-{number:04}" in shown for number in range(1, 33, 2))


async def test_one_kind_of_memory_is_one_block_and_ten_newest(url: str) -> None:
    for session_id, answer in (
        ("facts", lambda messages: Extraction(facts=extract(messages).facts)),
        ("narrative", Extraction(narrative="The customer was calm.")),
    ):
        async with memory(scripted().then(*[answer] * 3), url) as container:
            manager = container.conversation_manager()
            await save(manager, session_id, talk(32))
            await manager.drain()
            context = await manager.load_history(session_id, user_id=USER)
        assert len(memory_blocks(context.messages)) == 1
        assert texts(context.messages[1:]) == texts(talk(10, start=23))


async def test_a_hundred_messages_shrink_to_thirty_two_without_any_loss(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(100))
        await manager.drain()
        context = await manager.load_history("s", user_id=USER)
        stored = await manager.read_messages("s", user_id=USER)
    assert len(context.messages) == 12
    assert "A-0001" in context.messages[0].content
    assert texts(stored) == texts(talk(100))


def extract_totals(messages: Sequence[Message]) -> Extraction:
    """What `extract` finds, and the current total of the order."""
    totals = tuple(
        Fact(anchor="order", key="total", value=message.content.split()[-2], source_seq=message.seq or 0)
        for message in messages
        if message.content.startswith("the total is")
    )
    return Extraction(facts=(*extract(messages).facts, *totals), narrative="They talked about an order.")


async def test_updated_fact_is_shown_verbatim_and_replaces_old_one_later(url: str) -> None:
    """No call after every save: the correction stands in the window until its segment is read."""
    summarizer = scripted().then(*[extract_totals] * 9)
    async with memory(summarizer, url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", [Message.user("the total is 5150 euros"), *talk(31, start=2)])
        await manager.drain()
        before = await manager.load_history("s", user_id=USER)
        calls = len(summarizer.calls)
        await save(manager, "s", [Message.user("the total is 7275 euros"), Message.assistant("noted")])
        await manager.drain()
        corrected = await manager.load_history("s", user_id=USER)
        assert len(summarizer.calls) == calls
        await save(manager, "s", talk(26, start=35))
        await manager.drain()
        after = await manager.load_history("s", user_id=USER)
    assert "5150" in before.messages[0].content
    assert "the total is 7275 euros" in texts(corrected.messages)
    assert "7275" in after.messages[0].content
    assert "5150" not in "\n".join(texts(after.messages))


@pytest.mark.parametrize(
    "fault", [SummarizationError("unavailable", "no answer"), RuntimeError("a fault of a plug-in"), MemoryError()]
)
async def test_whatever_the_summarizer_raises_the_load_is_take_last(url: str, fault: Exception) -> None:
    async with memory(scripted().then(*[fault] * 9), url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        context = await manager.load_history("s", user_id=USER)
    assert texts(context.messages) == texts(talk(32))
    assert context.report.freshness == "failed"


class TenTokens:
    """Every text but the empty one has ten tokens."""

    name = "ten"

    def count(self, text: str) -> int:
        return 10 if text else 0


@pytest.mark.parametrize(
    ("counter", "budget", "newest"), [(TenTokens(), 25, 2), (TenTokens(), 30, 3), (EstimateCounter(), 40, 1)]
)
async def test_a_budget_keeps_the_newest_that_fit(url: str, counter: Any, budget: int, newest: int) -> None:
    """The estimate of a hundred letters is 25 tokens. Any object with a name and `count` is a counter."""

    def configure(container: Container) -> None:
        container.token_counter.override(providers.Object(counter))

    said = [Message.user(letter * 100) for letter in "abc"]
    async with open_container(
        settings(url, summary={"enabled": False}, tokens={"overhead_per_message": 0}), configure=configure
    ) as container:
        manager = container.conversation_manager()
        await save(manager, "s", said)
        context = await manager.load_history("s", user_id=USER, budget=budget)
    assert texts(context.messages) == texts(said[-newest:])


async def test_tokens_for_answer_system_prompt_and_tools_are_set_aside(url: str) -> None:
    tools = [{"name": "look", "description": "t" * 200}]
    limits = {"max_tokens": 1_000, "reserved_output_tokens": 200}
    async with memory(scripted(), url, context=limits, summary={"enabled": False}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", [Message.user("u" * 160) for _ in range(20)])
        context = await manager.load_history("s", user_id=USER, system="s" * 400, tools=tools, message=QUESTION)
    tool_tokens = EstimateCounter().count(msgspec.json.encode(tools[0]).decode())
    assert context.report.budget == 1_000 - 200 - (100 + 4) - tool_tokens
    assert context.report.total_tokens <= context.report.budget
    assert context.messages[-1] == QUESTION
    assert 1 < len(context.messages) < 21


# Saving


async def test_the_summarizer_is_called_behind_a_save(url: str) -> None:
    """Nobody loads: the turn that reaches the trigger is enough."""
    summarizer = scripted()
    async with memory(summarizer, url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(20))
        await manager.drain()
        assert summarizer.calls == []
        async with manager.turn("s", QUESTION, user_id=USER) as turn:
            _ = [chunk async for chunk in turn.stream(words("do ", "this"))]
        await manager.drain()
        summary = await manager.get_summary("s", user_id=USER)
    assert summarizer.calls[0].seqs == tuple(range(1, 11))
    assert summary is not None
    assert summary.covered_seq == 20


async def test_quick_saves_do_not_keep_a_summary_from_being_stored(url: str) -> None:
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer, url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(22))
        await eventually(lambda: summarizer.running == 1)
        for start in range(23, 43, 2):
            await save(manager, "s", talk(2, start=start))
        summarizer.let_go()
        await manager.drain()
        summary = await manager.get_summary("s", user_id=USER)
    assert summary is not None
    assert summary.covered_seq == 40


async def test_job_that_is_cut_off_by_closing_stores_no_summary(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    summarizer = scripted()
    summarizer.hold()
    async with memory(summarizer, url, background={"close_grace_seconds": 0.05}) as container:
        await save(container.conversation_manager(), "s", talk(30))
        await eventually(lambda: summarizer.running == 1)
    async with memory(scripted(), url, background={"enabled": False}) as container:
        manager = container.conversation_manager()
        assert await manager.get_summary("s", user_id=USER) is None
        assert texts(await manager.read_messages("s", user_id=USER)) == texts(talk(30))


async def test_work_for_a_session_that_is_gone_asks_nobody(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with memory(scripted(), url, background={"enabled": False}) as container:
        for session_id in ("gone", "there"):
            await save(container.conversation_manager(), session_id, talk(30))
        await container.conversation_manager().delete("gone", user_id=USER)
    summarizer = scripted()
    async with memory(summarizer, url) as container:
        assert await container.background_work().run_once() == 1
    assert len(summarizer.calls) == 3


async def test_cancelling_work_that_does_not_exist_is_no_error() -> None:
    async with memory(scripted()) as container:
        workers = container.background_work()
        await workers.cancel(["unknown"])
        await save(container.conversation_manager(), "s", talk(2))
        assert (await container.conversation_manager().delete("s", user_id=USER)).session_ids == ("s",)
    await workers.cancel(["unknown"])


async def test_a_summary_keeps_its_creation_and_its_update_time(url: str) -> None:
    clock = FakeClock()

    def configure(container: Container) -> None:
        container.clock.override(providers.Object(clock))
        container.summarizer.override(providers.Object(scripted()))

    async with open_container(settings(url), configure=configure) as container:
        manager = container.conversation_manager()
        made = clock.now
        for start in (1, 31):
            await save(manager, "s", talk(30, start=start))
            await manager.drain()
            summary = await manager.get_summary("s", user_id=USER)
            assert summary is not None
            assert (summary.created_at, summary.updated_at) == (made, clock.now)
            clock.advance(60)


async def test_deleted_sessions_alone_are_purged_after_the_days_of_grace(tmp_path: Path) -> None:
    clock = FakeClock()
    file = tmp_path / "memory.db"

    def configure(container: Container) -> None:
        container.clock.override(providers.Object(clock))

    def left() -> set[str]:
        with closing(sqlite3.connect(file)) as connection:
            return {name for (name,) in connection.execute("SELECT conversation_id FROM messages")}

    async with open_container(
        settings(f"sqlite:///{file}", store={"delete_grace_days": 30}), configure=configure
    ) as opened:
        manager, poller = opened.conversation_manager(), opened.background_work()
        for session_id in ("kept", "deleted"):
            await save(manager, session_id, talk(2))
        await manager.delete("deleted", user_id=USER)
        with pytest.raises(SessionDeletedError):
            await manager.load_history("deleted", user_id=USER)
        for days, expected in ((29, {"kept", "deleted"}), (2, {"kept"}), (9_999, {"kept"})):
            clock.advance(days * 86_400)
            await poller.run_once()
            assert left() == expected


async def words(*parts: str) -> AsyncIterator[str]:
    for part in parts:
        yield part


async def test_after_tools_whole_traffic_and_the_streamed_answer_are_saved(url: str) -> None:
    call = ToolCall(id="c1", name="look", arguments={"at": "it"})
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        async with manager.turn("s", QUESTION, user_id=USER) as turn:
            turn.add(Message.assistant("let me see", tool_calls=[call]), Message.tool("seen", tool_call_id="c1"))
            _ = [chunk async for chunk in turn.stream(words("do ", "this"))]
        stored = await manager.read_messages("s", user_id=USER)
    assert [(message.role, message.content) for message in stored] == [
        ("user", "what now?"),
        ("assistant", "let me see"),
        ("tool", "seen"),
        ("assistant", "do this"),
    ]


async def test_what_guard_puts_in_place_of_streamed_answer_is_saved(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        async with manager.turn("s", QUESTION, user_id=USER) as turn:
            _ = [chunk async for chunk in turn.stream(words("call ", "555-0100"))]
            turn.answer("call [masked]")
        stored = await manager.read_messages("s", user_id=USER)
    assert texts(stored) == ["what now?", "call [masked]"]


async def refuse(chunks: list[str]) -> None:
    raise PermissionError


async def test_of_an_answer_that_a_guard_refuses_nothing_is_saved(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        with pytest.raises(PermissionError):
            async with manager.turn("s", QUESTION, user_id=USER) as turn:
                await refuse([chunk async for chunk in turn.stream(words("the ", "secret"))])
        stored = await manager.read_messages("s", user_id=USER)
    assert texts(stored) == ["what now?"]


# A store that fails: an error of its own kind, never an empty history


async def test_save_that_the_store_refuses_raises_and_may_be_repeated() -> None:
    async with memory_that_fails() as (container, store):
        manager = container.conversation_manager()
        with pytest.raises(StoreUnavailableError):
            await manager.save_history("s", talk(2), user_id=USER, idempotency_key="k")
        store.heal()
        assert (await manager.save_history("s", talk(2), user_id=USER, idempotency_key="k")).last_seq == 2
        assert texts(await manager.read_messages("s", user_id=USER)) == texts(talk(2))


async def test_a_load_that_the_store_refuses_raises() -> None:
    """Also when only the owner is not known: there is no empty history that means a fault."""
    async with memory_that_fails() as (container, store):
        manager = container.conversation_manager()
        with pytest.raises(StoreUnavailableError):
            await manager.load_history("s", user_id=USER)
        store.heal()
        assert (await manager.load_history("s", user_id=USER)).messages == []


async def test_a_streamed_answer_reaches_the_user_before_a_save_fails() -> None:
    async with memory_that_fails({"append"}) as (container, store):
        manager = container.conversation_manager()
        received: list[str] = []
        with pytest.raises(StoreUnavailableError):
            async with manager.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
                received += [chunk async for chunk in turn.stream(words("do ", "this"))]
        store.heal()
        await manager.save_history("s", turn.saved_messages(), user_id=USER, idempotency_key="k")
        assert texts(await manager.read_messages("s", user_id=USER)) == ["what now?", "do this"]
    assert received == ["do ", "this"]


async def test_of_a_turn_that_never_began_nothing_is_saved() -> None:
    async with memory_that_fails({"read_context"}) as (container, store):
        manager = container.conversation_manager()
        with pytest.raises(StoreUnavailableError):
            async with manager.turn("s", QUESTION, user_id=USER):
                pytest.fail("the block must not run")
        store.heal()
        assert await manager.read_messages("s", user_id=USER) == ()


async def test_when_all_goes_well_no_warning_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        await manager.load_history("s", user_id=USER)
        await manager.drain()
    assert [record for record in caplog.records if record.levelname not in ("DEBUG", "INFO")] == []


# Owners


async def test_a_session_answers_its_owner_and_refuses_everybody_else(url: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        for owner in ("alice", "bob"):
            await manager.save_history(f"of {owner}", talk(2), user_id=owner)
        for owner, stranger in (("alice", "bob"), ("bob", "alice"), ("alice", None), ("alice", "anonymous")):
            session = await manager.get_session(f"of {owner}", user_id=owner)
            assert session.owner_id == owner
            assert len((await manager.load_history(f"of {owner}", user_id=owner)).messages) == 2
            with pytest.raises(SessionOwnershipError):
                await manager.load_history(f"of {owner}", user_id=stranger)
            with pytest.raises(SessionOwnershipError):
                await manager.save_history(f"of {owner}", talk(2), user_id=stranger)
            assert len(await manager.read_messages(f"of {owner}", user_id=owner)) == 2


async def test_a_save_without_a_user_makes_an_open_session(url: str) -> None:
    """Nobody is called "anonymous": the session has no owner, and stays open."""
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(2))
        for user_id in (None, "carol"):
            assert (await manager.get_session("s", user_id=user_id)).owner_id is None
            context = await manager.load_history("s", user_id=user_id)
            assert [message.role for message in context.messages] == ["user", "assistant"]
        assert [row.session_id for row in (await manager.list_sessions()).sessions] == ["s"]
        assert (await manager.list_sessions(user_id="anonymous")).sessions == ()


@pytest.mark.parametrize("session_id", ["slack-C1-171", "slack-", "anonymous", "web-1"])
async def test_no_name_opens_a_session_to_others(url: str, session_id: str) -> None:
    async with memory(scripted(), url) as container:
        manager = container.conversation_manager()
        await manager.save_history(session_id, talk(2), user_id="alice")
        with pytest.raises(SessionOwnershipError):
            await manager.load_history(session_id, user_id="bob")


# What is there when nothing is configured


def kinds(container: Container) -> list[str]:
    parts = (container.message_store, container.summary_store, container.background_work, container.token_counter)
    return [type(part()).__name__ for part in parts]


def test_parts_without_settings(folder: Path) -> None:
    parts = ["SqlMessageStore", "SqlSummaryStore", "WorkEngine", "TiktokenCounter"]
    assert kinds(Container(settings=Settings())) == parts
    assert list(folder.iterdir()) == [], "nothing is made before it is opened"


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("memory://", "MemoryDatabase"),
        ("sqlite:///a.db", "SqliteDatabase"),
        ("postgresql://app@nowhere/db", "PostgresDatabase"),
    ],
)
def test_parts_with_summaries(folder: Path, url: str, database: str) -> None:
    container = Container(settings=Settings(store={"url": url}, summary={"enabled": True}))
    assert type(container.database()).__name__ == database
    assert kinds(container) == ["SqlMessageStore", "SqlSummaryStore", "WorkEngine", "TiktokenCounter"]
    assert type(container.summarizer()).__name__ == "ExtractiveSummarizer"


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_address_of_the_store_is_refused(folder: Path, blank: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings(store={"url": blank})
    assert caught.value.key == "store.url"


def test_own_parts_win(folder: Path) -> None:
    container = Container(settings=Settings(store={"url": "sqlite:///a.db"}, summary={"enabled": True}))
    log, summaries, summarizer, counter = memory_store(), memory_store().summaries, scripted(), TenTokens()
    container.message_store.override(providers.Object(log))
    container.summary_store.override(providers.Object(summaries))
    container.summarizer.override(providers.Object(summarizer))
    container.token_counter.override(providers.Object(counter))
    assert container.message_store() is log
    assert container.summary_store() is summaries
    assert container.summarizer() is summarizer
    assert container.message_counter().name == "ten"
