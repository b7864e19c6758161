"""Words that a redactor takes out are neither summarised nor indexed; the log, and what is read from it, keep them."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import (
    ConfigurationError,
    Container,
    Memory,
    Message,
    RedactionError,
    Settings,
    ToolCall,
    open_memory,
)
from reactor_memory.features.recall.recaller import RecallOptions
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, eventually, save, settings, talk, texts

pytestmark = pytest.mark.anyio

SECRET = "ann.walrus@example.org"
PLAN = [
    Message.user(f"My address is {SECRET}, write to it when table 17 at the Blue Door is free"),
    Message.assistant("", tool_calls=[ToolCall(id="c1", name="watch_table", arguments={"mail": SECRET, "table": 17})]),
    Message.tool(f'{{"watching": true, "notify": "{SECRET}"}}', tool_call_id="c1"),
    Message.assistant(f"I will write to {SECRET}."),
]


def mask(text: str) -> str:
    return re.sub(r"\S+@\S+?\.org", "[MAIL]", text)


class Switch:
    """A redactor that can break."""

    def __init__(self) -> None:
        self.broken = False

    def __call__(self, text: str) -> str:
        if self.broken:
            raise OSError(text)
        return mask(text)


@asynccontextmanager
async def agent_memory(
    url: str = "memory://",
    redactor: Callable[[str], str] = mask,
    summarizer: ScriptedSummarizer | None = None,
    recalling: RecallOptions | None = None,
    **sections: Any,
) -> AsyncGenerator[Memory]:
    """Memory with a redactor, and with the offline summarizer unless another one is given."""

    def configure(container: Container) -> None:
        container.redactor.override(providers.Object(redactor))
        if summarizer is not None:
            container.summarizer.override(providers.Object(summarizer))
        if recalling is not None:
            container.recall_options.override(providers.Object(recalling))

    async with open_memory(settings(url, **sections), configure=configure) as memory:
        yield memory


async def filled(memory: Memory) -> None:
    """The plan, then talk that pushes it out of the window; everything sealed and indexed."""
    await save(memory, "s", PLAN)
    await save(memory, "s", talk(60, start=5))
    await memory.drain()


async def found(memory: Memory, query: str) -> list[str]:
    return [hit.text for hit in await memory.recall("s", query, user_id=USER)]


@pytest.mark.parametrize("mode", ["ledger", "full"])
async def test_a_summarizer_reads_nothing_that_is_taken_out(mode: str) -> None:
    summarizer = ScriptedSummarizer(default=quoting)
    async with agent_memory(summarizer=summarizer, summary={"mode": mode}) as memory:
        await filled(memory)
        await save(memory, "s", talk(20, start=65))
        await memory.drain()
        summary = await memory.container.summary_store().get_summary("s")
    assert summarizer.calls
    assert "[MAIL]" in repr(summarizer.calls[0])
    assert SECRET not in repr(summarizer.calls)
    assert SECRET not in repr(summary)
    assert any(call.known.facts for call in summarizer.calls) == (mode == "full")


def quoting(messages: Sequence[Message]) -> Extraction:
    """A fact of what the first user message says, in its words."""
    first = next(message for message in messages if message.role == "user")
    fact = Fact(anchor="user", key="said", value=first.content, source_seq=first.seq or 0)
    return Extraction(facts=(fact,), narrative="They talked.")


async def test_nothing_derived_holds_it_and_the_log_does(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    async with agent_memory(f"sqlite:///{file}") as memory:
        await filled(memory)
        context = await memory.load_history("s", user_id=USER, budget=400)
        assert "watch_table: (MAIL); table=17" in context.messages[0].content
        assert texts(await memory.container.message_store().read("s", USER, until=4)) == texts(PLAN)
    with closing(sqlite3.connect(file)) as database:
        every = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = [name for name in every if name != "recall_terms"]  # recall_postings tells what it holds
        held = {name for name in tables if "walrus" in repr(database.execute(f"SELECT * FROM {name}").fetchall())}
    assert held == {"messages"}


async def test_facts_are_verified_in_and_quoted_from_what_was_read() -> None:
    async with agent_memory() as memory:
        await filled(memory)
        traced = await memory.facts.trace("s", user_id=USER, everything=True)
    quotes = [each for each in traced if "[MAIL]" in each.fact.value]
    assert quotes
    for each in quotes:
        assert each.fact.verified
        assert " ".join(each.fact.value.split()) in each.quote
    assert SECRET not in repr(traced)


async def test_no_other_words_are_quoted_when_the_redactor_has_changed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with agent_memory(url) as memory:
        await filled(memory)
    async with agent_memory(url, redactor=lambda text: f"Somebody said: {mask(text)}") as memory:
        traced = await memory.facts.trace("s", user_id=USER, everything=True)
    assert "" in [each.quote for each in traced if each.fact.verified]
    assert all(each.fact.value in each.quote for each in traced if each.quote)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "not indexed"])
async def test_it_is_not_found_and_what_stands_around_it_is(indexed: bool) -> None:
    async with agent_memory(summary={"enabled": indexed}) as memory:
        await filled(memory)
        assert await found(memory, "walrus") == []
        assert await found(memory, SECRET) == []
        assert any(SECRET in text for text in await found(memory, "address to write when a table is free"))


async def test_no_load_waits_for_a_slow_redactor() -> None:
    go_on, answered = threading.Event(), list[str]()

    def wait(text: str) -> str:
        go_on.wait(5)
        answered.append(text)
        return text

    hasty = RecallOptions(seconds=0.05)
    async with agent_memory(redactor=wait, recalling=hasty, summary={"enabled": False}) as memory:
        await save(memory, "s", talk(4))
        try:
            await memory.load_history("s", user_id=USER, query="plan")
            assert answered == []
        finally:
            go_on.set()


async def test_a_recalled_turn_comes_back_as_it_was_said() -> None:
    async with agent_memory(summarizer=ScriptedSummarizer()) as memory:
        await filled(memory)
        context = await memory.load_history("s", user_id=USER, budget=400, query="the Blue Door")
        recalled = [m for m, part in zip(context.messages, context.report.parts, strict=True) if part == "recalled"]
    assert PLAN[0].content in recalled[0].content


async def test_a_pinned_message_is_shown_as_it_was_said() -> None:
    async with agent_memory() as memory:
        await filled(memory)
        await memory.pins.add("s", seq=1, user_id=USER)
        context = await memory.load_history("s", user_id=USER, budget=600)
    assert PLAN[0].content in texts(context.messages)


async def test_a_broken_redactor_stops_summaries_but_no_save_or_load() -> None:
    redactor, summarizer = Switch(), ScriptedSummarizer()
    redactor.broken = True
    async with agent_memory(redactor=redactor, summarizer=summarizer, background={"max_attempts": 3}) as memory:
        memory, summaries = memory, memory.container.summary_store()
        await save(memory, "s", PLAN + talk(40, start=5))
        state = None
        while state is None or not state.parked:
            await anyio.sleep(0.005)
            state = await summaries.work_state("s", SUMMARIZE)
        assert (state.attempts, state.last_error) == (3, "redaction")
        assert summarizer.calls == []
        assert await summaries.get_summary("s") is None
        assert await memory.container.recall_index().indexed_until("s") == 0
        context = await memory.load_history("s", user_id=USER, message=Message.user("what of the Blue Door?"))
        assert context.messages[-1].content == "what of the Blue Door?"
        with pytest.raises(RedactionError):
            await memory.recall("s", "Blue Door", user_id=USER)
        redactor.broken = False
        memory.container.background_work().request("s")
        await eventually(lambda: len(summarizer.calls) == 4)
        await memory.drain()
        assert await memory.container.recall_index().indexed_until("s") == 40


async def test_what_broke_between_summary_and_index_is_indexed_later_redacted() -> None:
    async with agent_memory() as memory:
        memory, index = memory, memory.container.recall_index()
        extend = index.extend

        async def away(*_: Any) -> bool:
            raise OSError

        index.extend = away
        await filled(memory)
        assert await index.indexed_until("s") == 0
        index.extend = extend
        memory.container.background_work().request("s")
        await memory.drain()
        assert await memory.container.recall_index().indexed_until("s") > 40
        assert await found(memory, "walrus") == []
        assert await found(memory, "Blue Door") != []


async def test_a_plug_in_may_bring_one() -> None:
    with pytest.raises(ConfigurationError, match="redactor: no redactor is called 'of_mine'; there are: none"):
        async with open_memory(Settings(redactor="of-mine")):
            pass
