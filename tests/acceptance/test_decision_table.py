"""What a load shows, row by row: take-last, memory and window, and every way in which memory may not be ready."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactor_memory import BudgetExceededError, InvalidInputError, Message, SummarizationError
from reactor_memory.models.ledger import Extraction
from tests.acceptance.scenes import USER, agent_memory, extract, memory_blocks, save, scripted, talk, texts
from tests.scenes.fixtures_stores import memory_or_sqlite

pytestmark = pytest.mark.anyio
url = memory_or_sqlite


async def test_an_unknown_session_is_an_empty_one(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        context = await memory.load_history("new", user_id=USER)
    assert context.messages == []
    assert context.report.freshness == "none"


@pytest.mark.parametrize("count", [2, 4, 19, 20])
async def test_up_to_the_trigger_everything_is_verbatim_without_any_call(url: str, count: int) -> None:
    summarizer = scripted()
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(count))
        await memory.drain()
        context = await memory.load_history("s", user_id=USER)
    assert texts(context.messages) == texts(talk(count))
    assert context.report.strategy == "take_last"
    assert summarizer.calls == []


async def test_with_summaries_off_only_the_newest_messages_come_back(url: str) -> None:
    summarizer = scripted()
    async with agent_memory(
        summarizer, url, summary={"enabled": False}, history={"max_conversation_turns": 5}
    ) as memory:
        await save(memory, "s", talk(30))
        context = await memory.load_history("s", user_id=USER)
    assert texts(context.messages) == texts(talk(10, start=21))
    assert summarizer.calls == []


async def test_above_the_trigger_facts_and_narrative_stand_before_the_window(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(32))
        await memory.drain()
        context = await memory.load_history("s", user_id=USER, message=Message.user("and now?"))
    facts, narrative = memory_blocks(context.messages)
    assert facts.content.startswith("Conversation Facts:\n")
    assert "A-0001" in facts.content
    assert narrative.content.startswith("Conversation Summary:\n")
    assert "The customer gave order numbers." in narrative.content
    assert context.report.parts[:2] == ("facts", "narrative")
    window = [message for message in context.messages if message.seq is not None]
    assert texts(window[-10:]) == texts(talk(10, start=23))
    assert context.messages[-1].content == "and now?"
    assert context.report.freshness == "fresh"


async def test_every_order_number_is_in_facts_or_in_the_window(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        for start in range(1, 120, 2):
            await save(memory, "s", talk(2, start=start))
            await memory.drain()
            context = await memory.load_history("s", user_id=USER)
            shown = "\n".join(texts(context.messages))
            assert all(f"A-{number:04}" in shown for number in range(1, start + 1, 2)), start
            assert context.report.unread == ()


async def test_a_fresh_summary_is_used_without_a_call(url: str) -> None:
    summarizer = scripted()
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(32))
        await memory.drain()
        calls = len(summarizer.calls)
        first = await memory.load_history("s", user_id=USER)
        second = await memory.load_history("s", user_id=USER)
        await memory.drain()
    assert len(summarizer.calls) == calls
    assert first.report.digest == second.report.digest


async def test_each_message_is_read_by_the_summarizer_once(url: str) -> None:
    summarizer = scripted()
    async with agent_memory(summarizer, url) as memory:
        for start in range(1, 200, 2):
            await save(memory, "s", talk(2, start=start))
        await memory.drain()
    read = [seq for call in summarizer.calls for seq in call.seqs]
    assert read == list(range(1, len(read) + 1))
    assert len(read) >= 190


async def test_a_missing_summary_is_made_while_the_load_waits(url: str) -> None:
    summarizer = scripted(delay_seconds=0.05)
    async with agent_memory(summarizer, url, background={"enabled": True}) as memory:
        await save(memory, "s", talk(22))
        context = await memory.load_history("s", user_id=USER)
    assert "A-0001" in context.messages[0].content
    assert context.report.freshness == "fresh"


async def test_a_hundred_stale_loads_make_one_call_per_segment(url: str) -> None:
    summarizer = scripted(delay_seconds=0.05)
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(32))
        digests: set[str] = set()

        async def load() -> None:
            context = await memory.load_history("s", user_id=USER)
            digests.add(context.report.digest)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(load)
        await memory.drain()
    assert [call.seqs for call in summarizer.calls] == [
        tuple(range(1, 11)),
        tuple(range(11, 21)),
        tuple(range(21, 31)),
    ]
    assert len(digests) == 1


async def test_far_behind_a_load_answers_and_names_unread_messages(url: str) -> None:
    summarizer = scripted()
    summarizer.hold()
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(100))
        with anyio.fail_after(30):
            context = await memory.load_history("s", user_id=USER, budget=400)
        summarizer.let_go()
        await memory.drain()
        later = await memory.load_history("s", user_id=USER)
    assert context.report.freshness == "catching_up"
    first = next(message.seq for message in context.messages if message.seq is not None)
    assert context.report.unread == ((1, (first or 0) - 1),)
    assert texts(context.messages)[-1] == talk(100)[-1].content
    assert later.report.freshness == "fresh"
    assert "A-0001" in later.messages[0].content


async def test_when_the_summarizer_fails_the_load_is_take_last(url: str) -> None:
    summarizer = scripted().then(*[SummarizationError("unavailable", "no answer")] * 3)
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(32))
        context = await memory.load_history("s", user_id=USER)
    assert texts(context.messages) == texts(talk(32))
    assert context.report.strategy == "take_last"
    assert context.report.freshness == "failed"
    assert context.report.unread == ()


async def test_when_summarizer_is_slow_the_load_goes_on_without_it(url: str) -> None:
    summarizer = scripted()
    summarizer.hold()
    async with agent_memory(
        summarizer, url, summary={"lazy_timeout_seconds": 0.05}, background={"close_grace_seconds": 0}
    ) as memory:
        await save(memory, "s", talk(22))
        context = await memory.load_history("s", user_id=USER)
    assert context.report.freshness == "failed"
    assert texts(context.messages) == texts(talk(22))


async def test_an_older_summary_stays_when_a_newer_one_fails(url: str) -> None:
    summarizer = scripted()
    async with agent_memory(summarizer, url, background={"backoff_seconds": 5, "max_backoff_seconds": 5}) as memory:
        await save(memory, "s", talk(22))
        await memory.drain()
        summarizer.then(*[SummarizationError("unavailable", "no answer")] * 9)
        await save(memory, "s", talk(30, start=23))
        await memory.drain()
        context = await memory.load_history("s", user_id=USER)
    shown = "\n".join(texts(context.messages))
    assert all(f"A-{number:04}" in shown for number in range(1, 53, 2))
    assert context.report.freshness in ("stale", "catching_up")
    assert context.report.unread == ()


async def test_an_empty_summary_falls_back_to_take_last(url: str) -> None:
    summarizer = scripted()
    summarizer.then(*[Extraction()] * 5)
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(32))
        await memory.drain()
        context = await memory.load_history("s", user_id=USER)
    assert texts(context.messages) == texts(talk(32))
    assert context.report.freshness == "empty"


async def test_only_facts_or_only_a_narrative_make_one_block(url: str) -> None:
    def facts_only(messages: Sequence[Message]) -> Extraction:
        return Extraction(facts=extract(messages).facts)

    for session_id, answer, header in (
        ("facts", facts_only, "Conversation Facts:"),
        ("narrative", Extraction(narrative="The customer was calm."), "Conversation Summary:"),
    ):
        summarizer = scripted().then(*[answer] * 3)
        async with agent_memory(summarizer, url) as memory:
            await save(memory, session_id, talk(32))
            await memory.drain()
            context = await memory.load_history(session_id, user_id=USER)
        (block,) = memory_blocks(context.messages)
        assert block.content.startswith(header)


async def test_callers_own_history_is_used_instead_of_the_stored_one(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(6))
        own = [Message.user("hello"), Message.assistant("hi")]
        context = await memory.load_history("s", user_id="a stranger", history=own, message=Message.user("now"))
    assert texts(context.messages) == ["hello", "hi", "now"]
    assert context.report.freshness == "history"


async def test_callers_own_history_may_be_empty_or_longer_than_batch() -> None:
    async with agent_memory(scripted(), limits={"max_batch_messages": 10}) as memory:
        empty = await memory.load_history("s", history=[], message=Message.user("now"))
        long = await memory.load_history("s", history=talk(40), message=Message.user("now"))
        with pytest.raises(InvalidInputError) as caught:
            await memory.load_history("s", history=[*talk(2), Message.user("nul \x00")])
        nothing = await memory.load_history("s", history=[])
    assert texts(empty.messages) == ["now"]
    assert texts(long.messages) == [*texts(talk(40)), "now"]
    assert nothing.messages == []
    assert caught.value.field == "history[2].content"


async def test_switched_off_later_the_same_data_is_take_last(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
    for turns, shown in ((10, talk(60)), (5, talk(10, start=51))):  # 10 is the default: then the budget decides
        off = {"summary": {"enabled": False}, "history": {"max_conversation_turns": turns}}
        async with agent_memory(scripted(), url, **off) as memory:
            context = await memory.load_history("s", user_id=USER)
        assert texts(context.messages) == texts(shown)
        assert context.report.strategy == "take_last"


async def test_switched_on_later_a_long_session_is_caught_up(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with agent_memory(scripted(), url, summary={"enabled": False}) as memory:
        await save(memory, "s", talk(60))
    async with agent_memory(scripted(), url) as memory:
        first = await memory.load_history("s", user_id=USER)
        await memory.drain()
        second = await memory.load_history("s", user_id=USER)
    assert first.report.freshness == "catching_up"
    assert second.report.freshness == "fresh"
    assert "A-0001" in second.messages[0].content


async def test_full_mode_reads_everything_before_window_again_with_existing_facts(url: str) -> None:
    summarizer = scripted()
    async with agent_memory(summarizer, url, summary={"mode": "full"}) as memory:
        await save(memory, "s", talk(32))
        await memory.drain()
        context = await memory.load_history("s", user_id=USER)
        await save(memory, "s", talk(2, start=33))
        await memory.drain()
    assert [call.seqs for call in summarizer.calls] == [tuple(range(1, 23)), tuple(range(1, 25))]
    assert summarizer.calls[0].known.facts == ()
    assert len(summarizer.calls[1].known.facts) == 11
    assert len(context.messages) == 12


async def test_budget_is_kept_and_named_when_it_is_too_small(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        for budget in (60, 120, 400, 2000):
            context = await memory.load_history("s", user_id=USER, budget=budget, message=Message.user("and now?"))
            assert context.report.total_tokens <= budget
            assert context.messages[-1].content == "and now?"
        with pytest.raises(BudgetExceededError) as caught:
            await memory.load_history("s", user_id=USER, budget=3, message=Message.user("and now? " * 50))
        context = await memory.load_history(
            "s", user_id=USER, budget=caught.value.minimum, message=Message.user("and now? " * 50)
        )
        assert context.report.total_tokens <= caught.value.minimum


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"budget": 0}, "budget"),
        ({"message": Message.assistant("no user message")}, "message"),
        ({"message": Message.user("nul \x00")}, "message"),
        ({"budget": "many"}, "budget"),
        ({"budget": 2**80}, "budget"),
        ({"tools": [{"name": "look"}, object()]}, "tools[1]"),
        ({"system": "You are a clerk. " * 40_000}, "system"),
    ],
)
async def test_bad_arguments_are_named(arguments: dict[str, object], field: str) -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(InvalidInputError) as caught:
            await memory.load_history("s", **arguments)  # type: ignore[arg-type]
    assert caught.value.field.startswith(field)


@pytest.mark.parametrize("name", ["user_id", "agent_name", "idempotency_key"])
async def test_what_a_store_cannot_keep_is_refused_in_every_argument(name: str, url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        for value in ("nul \x00", "surrogate \ud800", ""):
            with pytest.raises(InvalidInputError) as caught:
                await memory.save_history("s", talk(1), **{name: value})
            assert caught.value.field == name


async def test_an_explicit_query_brings_an_older_passage_back(url: str) -> None:
    async with agent_memory(scripted(), url, summary={"enabled": False}) as memory:
        await save(memory, "s", [Message.user("the password hint is walrus"), Message.assistant("I will remember")])
        await save(memory, "s", talk(60, start=3))
        context = await memory.load_history("s", user_id=USER, budget=400, query="What was the hint with the walrus?")
    assert any("the password hint is walrus" in text for text in texts(context.messages))
    assert context.report.tokens["recalled"] > 0
    assert context.report.total_tokens <= 400


async def test_explicit_query_brings_back_what_budget_cut_from_short_session(url: str) -> None:
    """The store read these messages for the window, which had no room for them."""
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", [Message.user("the password hint is walrus"), Message.assistant("I will remember")])
        await save(memory, "s", talk(16, start=3))
        context = await memory.load_history("s", user_id=USER, budget=150, query="What was the hint with the walrus?")
    assert any("the password hint is walrus" in text for text in texts(context.messages))
    assert context.report.total_tokens <= 150


def call_of(name: str, *values: object, **named: object) -> Callable[[Any], Awaitable[object]]:
    return lambda memory: getattr(memory, name)(*values, **named)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (call_of("read_messages", "s", after=-1), "after"),
        (call_of("read_messages", "s", until=2**70), "until"),
        (call_of("read_messages", "s", last=0), "last"),
        (call_of("fork", "s", at_seq="three"), "at_seq"),
        (call_of("withdraw", "s", seq=2**64), "seq"),
        (call_of("list_sessions", limit=0), "limit"),
    ],
)
async def test_positions_that_no_store_could_hold_are_named(
    call: Callable[[Any], Awaitable[object]], field: str
) -> None:
    async with agent_memory(scripted()) as memory:
        await memory.save_history("s", talk(4))
        with pytest.raises(InvalidInputError) as caught:
            await call(memory)
    assert caught.value.field == field
