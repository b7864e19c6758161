"""Whoever looks into a store sees it under the settings of the agent that saved to it."""

from __future__ import annotations

import json
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactor_memory.features.overview.agent_settings import AgentSettings
from reactor_memory.memory import Memory, open_memory
from reactor_memory.models import Message
from reactor_memory.settings import agent_settings
from reactor_memory.settings.agent_settings import differences, kept_of, takeable
from reactor_memory.settings.settings import Settings
from reactor_memory.sync import open_memory as open_waiting
from tests.acceptance.conftest import Run

pytestmark = pytest.mark.usefixtures("folder")

CHANGED = "REACTOR_MEMORY_HISTORY__MAX_CONVERSATION_TURNS"

TURNS = [
    message
    for number in range(1, 31)
    for message in (Message.user(f"Question {number}"), Message.assistant(f"Answer {number}"))
]
LAST_TWO = {"history": {"strategy": "take_last", "max_conversation_turns": 2}}
RECORDED = {**LAST_TWO, "context": {"record": "all"}}
"""A load that asks for no budget leaves that in its record."""

LAST_TWO_KEPT = {"history.strategy": "take_last", "history.max_conversation_turns": 2, "summary.enabled": False}


async def save_as_agent(store: str, **sections: Any) -> None:
    async with open_memory(Settings(store={"url": store}, **sections)) as memory:
        await memory.save_history("talk", TURNS)
        await memory.load_history("talk")
        await memory.drain()


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'agent.db'}"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, store: str) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_dsn")
    return "memory://" if request.param == "memory" else store


async def kept_in(memory: Memory) -> AgentSettings | None:
    return await memory.overview.agent_settings()


@pytest.mark.anyio
async def test_agent_keeps_what_it_was_given_at_its_first_save(url: str) -> None:
    async with open_memory(Settings(store={"url": url}, **LAST_TWO)) as memory:
        assert await kept_in(memory) is None
        await memory.save_history("talk", [Message.user("Hello")])
        kept = await kept_in(memory)
    assert kept is not None
    assert kept.given == LAST_TWO_KEPT


@pytest.mark.anyio
async def test_the_last_agent_with_other_settings_counts(store: str) -> None:
    await save_as_agent(store, **LAST_TWO)
    await save_as_agent(store, context={"max_pins": 5})
    async with open_memory(store) as memory:
        kept = await kept_in(memory)
    assert kept is not None
    assert kept.given == {"context.max_pins": 5}


@pytest.mark.anyio
async def test_who_only_reads_keeps_nothing(store: str) -> None:
    await save_as_agent(store, **LAST_TWO)
    async with open_memory(store) as memory:
        await memory.load_history("talk")
        kept = await kept_in(memory)
    assert kept is not None
    assert "history.strategy" in kept.given


@pytest.mark.anyio
async def test_nothing_is_kept_if_the_settings_say_so(store: str) -> None:
    async with open_memory(Settings(store={"url": store, "keep_settings": False}, **LAST_TWO)) as memory:
        await memory.save_history("talk", TURNS)
        assert await kept_in(memory) is None


def test_without_awaiting(store: str) -> None:
    with open_waiting(store) as memory:
        memory.save_history("talk", [Message.user("Hello")])
        kept = memory.overview.agent_settings()
    assert kept is not None
    assert kept.given == {}


def shown(run: Run, store: str) -> Any:
    finished = run("context", "talk", "--store", store, "--json")
    return finished.json


def test_context_shows_what_the_agent_gets(run: Run, store: str) -> None:
    anyio.run(partial(save_as_agent, store, **RECORDED))
    context = shown(run, store)
    assert [message["content"] for message in context["messages"]] == [message.content for message in TURNS[-4:]]
    assert context["settings_unlike_the_agent"] == []


def test_a_difference_counts_and_is_shown(run: Run, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(partial(save_as_agent, store, **RECORDED))
    monkeypatch.setenv(CHANGED, "1")
    context = shown(run, store)
    assert len(context["messages"]) == 2
    assert context["settings_unlike_the_agent"] == [
        {"key": "history.max_conversation_turns", "agent": 2, "here": 1, "origin": "environment"}
    ]
    line = "history.max_conversation_turns: 1 here (environment), 2 for the agent"
    for command in ("context", "facts"):
        assert line in run(command, "talk", "--store", store).out
    monkeypatch.setattr("sys.stdin", StringIO("Hello\n"))
    assert line in run("chat", "talk", "--store", store).err


def test_commands_are_no_agents(run: Run, store: str, tmp_path: Path) -> None:
    anyio.run(partial(save_as_agent, store, **RECORDED))
    more = tmp_path / "more.json"
    more.write_text(json.dumps([{"role": "user", "content": "More"}]))
    assert run("import", more, "--store", store).code == 0
    assert len(shown(run, store)["messages"]) == 4


def test_no_key_no_address_and_no_path_is_kept() -> None:
    settings = Settings(
        store={"url": "postgresql://me:secret@host/name"},
        summary={"provider": "openai"},
        models={"openai": {"api_key": "secret", "base_url": "https://models.example"}},
        plugins={"options": {"mine": {"password": "secret"}}},
    )
    kept = kept_of(settings)
    assert kept == {"summary.provider": "openai"}


def test_a_store_cannot_make_a_reader_load_or_ask_anything() -> None:
    hostile = {
        "summary.provider": "openai",
        "models.openai.base_url": "https://evil.example",
        "plugins.disabled": ["mine"],
        "store.url": "sqlite:///other.db",
        "redactor": "mine",
        "context.record": "all",
        "context.max_pins": 5,
    }
    assert takeable(hostile) == {"context.max_pins": 5}


def test_what_was_not_taken_over_is_a_difference() -> None:
    found = differences(Settings(), {"summary.provider": "gemini"})
    assert [(each.key, each.agent, each.here, each.origin) for each in found] == [
        ("summary.provider", "gemini", "extractive", "default")
    ]


@pytest.mark.anyio
async def test_settings_are_gathered_by_the_first_save_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[Settings] = []

    def gather(settings: Settings) -> dict[str, Any]:
        gathered.append(settings)
        return {}

    monkeypatch.setattr(agent_settings, "deciding", gather)
    async with open_memory(tmp_path / "agent.db") as memory:
        await memory.load_history("s")
        assert not gathered
        await memory.save_history("s", "Hello")
        saved = len(gathered)
        await memory.save_history("s", "Hello")
    assert len(gathered) == saved > 0
