"""Long-term notes in the contexts of an agent: off by default, fresh each turn, of nobody else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, Memory, Message, open_memory
from reactor_memory.adapters.middleware import ModelCall, memory_middleware
from reactor_memory.core.context.verification import verify
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, SessionOwnershipError, StoreUnavailableError
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.conftest import Run
from tests.acceptance.scenes import USER, extract, save, settings, talk
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

AGENT = "travel"
NOTES = "# Seats\nat the window"


def counting() -> FaultyDatabase:
    """Never fails, and notes how often notes were read."""
    return FaultyDatabase(memory_database(), at=0, mode="before", operations={"read_notes"})


@asynccontextmanager
async def opened(database: Database | None = None, *, enabled: bool = True, **sections: Any) -> AsyncGenerator[Memory]:
    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(ScriptedSummarizer(default=extract)))
        container.database.override(providers.Object(database or memory_database()))

    async with open_memory(settings(notes={"enabled": enabled}, **sections), configure=configure) as memory:
        yield memory


async def write(memory: Memory, text: str, user_id: str = USER, agent_name: str = AGENT) -> None:
    await memory.container.long_term_memory().apply(user_id, agent_name, "overwrite", content=text)


async def load(memory: Memory, **named: Any) -> list[tuple[str, str]]:
    """The parts of a context with their texts; the context is verified."""
    named = {"user_id": USER, "agent_name": AGENT} | named
    context = await memory.load_history("s", **named)
    assert verify(context, count=memory.container.message_counter().of) == []
    return [(part, message.content) for part, message in zip(context.report.parts, context.messages, strict=True)]


async def test_they_stand_first() -> None:
    async with opened() as memory:
        await write(memory, NOTES)
        await save(memory, "s", talk(60))
        await memory.drain()
        parts = await load(memory, message=Message.user("hello"))
        assert [part for part, _ in parts[:3]] == ["notes", "facts", "narrative"]
        assert parts[0][1].splitlines()[2:] == NOTES.splitlines()
        assert parts[-1] == ("current", "hello")


async def test_a_new_session_begins_with_them() -> None:
    """What an agent knows of a user outlasts the conversation."""
    async with opened() as memory:
        await write(memory, NOTES)
        parts = await load(memory, message=Message.user("hello"))
        assert [part for part, _ in parts] == ["notes", "current"]


async def test_they_are_read_afresh_each_turn() -> None:
    async with opened() as memory:
        tool = memory.container.long_term_memory().tool(USER, AGENT)
        assert await load(memory) == []
        await tool(operation="append", content="likes tea")
        assert "likes tea" in (await load(memory))[0][1]
        await tool(operation="overwrite", content="likes coffee")
        assert "likes tea" not in (await load(memory))[0][1]
        await tool(operation="delete_all_notes")
        assert await load(memory) == []


async def test_they_are_those_of_this_user_and_agent() -> None:
    database = counting()
    async with opened(database) as memory:
        await write(memory, "of bob", user_id="bob")
        await write(memory, "of the shop", agent_name="shop")
        assert await load(memory) == []
        assert "of the shop" in (await load(memory, agent_name="shop"))[0][1]
        database.calls = 0
        assert await load(memory, agent_name=None) == []
        assert await load(memory, user_id=None) == []
        assert database.calls == 0


async def test_who_may_not_read_the_session_gets_no_notes_either() -> None:
    database = counting()
    async with opened(database) as memory:
        await write(memory, "of bob", user_id="bob")
        await save(memory, "s", talk(2))
        database.calls = 0
        with pytest.raises(SessionOwnershipError):
            await load(memory, user_id="bob")
        assert database.calls == 0


async def test_off_by_default_and_then_nothing_is_read() -> None:
    assert not settings().notes.enabled
    database = counting()
    async with opened(database, enabled=False) as memory:
        await write(memory, NOTES)
        await save(memory, "s", talk(60))
        await memory.drain()
        database.calls = 0
        parts = await load(memory)
        assert "notes" not in {part for part, _ in parts}
        assert database.calls == 0


async def test_one_read_a_load() -> None:
    database = counting()
    async with opened(database) as memory:
        await save(memory, "s", talk(60))
        await load(memory)
        assert database.calls == 1


async def test_a_turn_and_the_middleware_show_them_too() -> None:
    async with opened() as memory:
        await write(memory, NOTES)
        async with memory.turn("s", Message.user("hello"), user_id=USER, agent_name=AGENT) as turn:
            turn.add(Message.assistant("one moment"))
            assert turn.current_context().report.parts[0] == "notes"
            turn.answer(Message.assistant("hi"))
        seen: list[ModelCall] = []

        async def answer(call: ModelCall) -> Message:
            seen.append(call)
            return Message.assistant("hi")

        call = ModelCall(session_id="s", message=Message.user("again"), user_id=USER, agent_name=AGENT)
        await memory_middleware(memory)(call, answer)
        assert "at the window" in seen[0].messages[0].content
        stored = await memory.read_messages("s", user_id=USER)
        assert [message.content for message in stored] == ["hello", "one moment", "hi", "again", "hi"]


async def test_their_role_is_that_of_the_memory() -> None:
    async with opened(summary={"memory_role": "user"}) as memory:
        await write(memory, NOTES)
        context = await memory.load_history("s", user_id=USER, agent_name=AGENT)
        assert context.messages[0].role == "user"


async def test_a_history_of_the_caller_is_used_as_it_is() -> None:
    async with opened() as memory:
        await write(memory, NOTES)
        assert await load(memory, history=[Message.user("mine")]) == [("current", "mine")]


async def test_a_store_that_fails_is_loud() -> None:
    """A context without the notes would look like a user about whom nothing is known."""
    database = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True, operations={"read_notes"})
    async with opened(database) as memory:
        with pytest.raises(StoreUnavailableError):
            await load(memory)


async def test_the_name_of_an_agent_is_checked() -> None:
    async with opened() as memory:
        with pytest.raises(InvalidInputError, match="agent_name"):
            await load(memory, agent_name="a\n")


@pytest.mark.parametrize("budget", [60, 120, 250, 500, 1000, 4000])
@pytest.mark.parametrize("summaries", [True, False])
async def test_every_budget_is_kept(budget: int, summaries: bool) -> None:
    async with opened(summary={"enabled": summaries}) as memory:
        await write(memory, "\n".join(f"- preference number {number}" for number in range(100)))
        await save(memory, "s", talk(60))
        await memory.drain()
        for message in (None, Message.user("hello"), Message.user("hello " * 40)):
            await load(memory, budget=budget, message=message)
            await load(memory, budget=budget, message=message, query="A-0003")


async def test_a_context_with_notes_is_explained_as_it_is() -> None:
    async with opened() as memory:
        await write(memory, NOTES)
        await save(memory, "s", talk(60))
        await memory.drain()
        named: dict[str, Any] = {"user_id": USER, "agent_name": AGENT, "budget": 600}
        explanation = await memory.explain("s", **named)
        assert explanation.context == await memory.load_history("s", **named)
        assert explanation.context.report.parts[0] == "notes"


def test_the_command_line_shows_them(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(_begin, f"sqlite:///{folder / 'reactor-memory.db'}")
    monkeypatch.setenv("REACTOR_MEMORY_NOTES__ENABLED", "true")
    assert "at the window" not in run("context", "s", "--user", USER).out
    shown = run("context", "s", "--user", USER, "--agent", AGENT)
    assert (shown.code, shown.err) == (0, "")
    assert "at the window" in shown.out
    assert "notes · " in shown.out


async def _begin(url: str) -> None:
    async with open_memory(settings(url)) as memory:
        await write(memory, NOTES)
        await save(memory, "s", talk(4))
