"""The door: what `open_memory` takes, what a `Memory` does and what its features are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dependency_injector import providers

import reactor_memory
from reactor_memory import ConfigurationError, Container, InvalidInputError, Memory, Message, Settings, open_memory
from reactor_memory.errors import InvalidMessageError, SessionOwnershipError
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.memory import settings_of
from reactor_memory.models import Message as StoredMessage
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import extract, settings, texts
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio


async def test_a_turn_with_texts_and_no_settings(folder: Path) -> None:
    """What the first page of the documents shows."""
    async with open_memory("agent.db") as memory:
        for text in ("My order number is A-1042.", "What was my order number?"):
            async with memory.turn("session-1", text, user_id="u1", budget=4000) as turn:
                shown = turn.messages()
                turn.answer(f"I was given {len(shown)} messages")
        assert texts(shown) == ["My order number is A-1042.", "I was given 1 messages", "What was my order number?"]
    assert (folder / "agent.db").exists()
    async with open_memory(folder / "agent.db") as memory:
        assert (await memory.get_session("session-1", user_id="u1")).last_seq == 4


async def test_memory_is_on_and_offline(folder: Path) -> None:
    async with open_memory("memory://") as memory:
        for number in range(1, 21):
            news = "My order number is A-0001." if number == 1 else f"The weather is fine on day {number}."
            said = [news, Message.assistant("Noted.")]
            await memory.save_history("s", said, user_id="u")
        await memory.drain()
        context = await memory.load_history("s", user_id="u", message="Go on.", budget=300)
        assert context.report.strategy == "hierarchical"
        assert "A-0001" in context.part("facts")[0].content
        assert "A-0001" in str(await memory.facts.list("s", user_id="u"))


@each_row(
    ("given", "url"),
    [
        ("agent.db", "sqlite:///agent.db"),
        ("./with space.db", "sqlite:///./with%20space.db"),
        (Path("/data/agent.db"), "sqlite:////data/agent.db"),
        ("~/agent.db", "sqlite:////home/ann/agent.db"),
        (Path("~/agent.db"), "sqlite:////home/ann/agent.db"),
        ("./memory:", "sqlite:///./memory%3A"),
        ("sqlite:///agent.db", "sqlite:///agent.db"),
        ("memory://", "memory://"),
        ("postgresql://host/name", "postgresql://host/name"),
        (Settings(store={"url": "memory://"}), "memory://"),
        (None, "sqlite:///reactor-memory.db"),
    ],
)
async def test_what_opens_a_memory(folder: Path, monkeypatch: pytest.MonkeyPatch, given: Any, url: str) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert settings_of(given).store.url == url


@each_row("given", [5, "", b"agent.db", {"store": "agent.db"}])
async def test_what_opens_none(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"store: must be a path, such as agent\.db, a URL or Settings"):
        async with open_memory(given):
            pass


@each_row(
    ("given", "remedy"),
    [
        ("memory:", "write memory://"),
        (":memory:", "write memory://"),
        ("sqlite:agent.db", "write sqlite:///agent.db, or ./ before"),
        (Path("sqlite:///agent.db"), "write sqlite:///agent.db"),
        ("postgresql:name", "write postgresql://host/name"),
        ("memory://x", "takes nothing: write memory://"),
    ],
)
async def test_what_is_nearly_a_url_makes_no_file(folder: Path, given: Any, remedy: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        async with open_memory(given):
            pass
    assert remedy in str(raised.value)
    assert not os.listdir(folder)  # noqa: PTH208


@each_row(
    ("call", "problem"),
    [
        (lambda memory: memory.pins.add("s", sequence=1), "Pins.add() got an unexpected keyword argument 'sequence'"),
        (lambda memory: memory.recall("s"), "Memory.recall() missing 1 required positional argument: 'query'"),
        (lambda memory: memory.fork("s"), "Memory.fork() missing 1 required keyword-only argument: 'at_seq'"),
        (lambda memory: memory.turn("s", "hello", user="u").__aenter__(), "Unexpected keyword argument 'user'"),
        (lambda memory: memory.load_history("s", user="u"), "Unexpected keyword argument 'user'"),
        (lambda memory: memory.erasure.erase_user("u", "v"), "Erasure.erase_user() takes 2 positional arguments"),
        (
            lambda memory: memory.get_session(session="s"),
            "Memory.get_session() got an unexpected keyword",
        ),
    ],
)
async def test_wrong_arguments_are_refused_under_the_public_name(call: Callable[[Memory], Any], problem: str) -> None:
    async with open_memory("memory://") as memory:
        with pytest.raises(TypeError) as raised:
            await call(memory)
        assert str(raised.value).startswith(problem)


async def test_arguments_may_be_named() -> None:
    async with open_memory("memory://") as memory:
        await memory.save_history(session_id="s", messages="hello")
        assert texts(await memory.read_messages(session_id="s")) == ["hello"]


async def test_parts_are_replaced_before_anything_is_made() -> None:
    summarizer = ScriptedSummarizer(default=extract)

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(summarizer))

    async with open_memory(settings(), configure=configure) as memory:
        assert memory.container.summarizer() is summarizer
        assert memory.container.conversation_manager() is memory.manager


async def test_messages_of_every_provider_stand_in_one_session() -> None:
    async with open_memory("memory://") as memory:
        await memory.save_history("s", "hello")
        await memory.save_history("s", {"role": "assistant", "content": None, "refusal": "no"})
        await memory.save_history(
            "s",
            [
                {"role": "user", "content": [{"type": "text", "text": "again"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "it"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "seen"}}}]},
            ],
            idempotency_key="k1",
        )
        stored = await memory.read_messages("s")
        assert [(each.role, each.content) for each in stored] == [
            ("user", "hello"),
            ("assistant", ""),
            ("user", "again"),
            ("assistant", ""),
            ("tool", "seen"),
        ]
        context = await memory.load_history("s", message={"role": "user", "parts": [{"text": "and?"}]})
        assert [each["role"] for each in context.to_openai()][-3:] == ["assistant", "tool", "user"]
        given = await memory.load_history("other", history=context.to_anthropic(), message="and?")
        assert given.report.freshness == "history"
        assert texts(given.messages)[-2:] == ["and?", "and?"]


async def test_a_turn_takes_what_a_model_of_a_provider_gives() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    async with open_memory("memory://") as memory:
        async with memory.turn("s", {"role": "user", "content": "Where is it?"}) as turn:
            turn.add({"role": "assistant", "content": None, "tool_calls": [call]})
            turn.add([{"role": "tool", "tool_call_id": "1", "content": "here"}])
            assert [each["role"] for each in turn.current_context().to_openai()] == ["user", "assistant", "tool"]
            turn.answer({"role": "assistant", "content": [{"type": "text", "text": "Here."}]})
        assert texts(await memory.read_messages("s")) == ["Where is it?", "", "here", "Here."]


@each_row(
    ("call", "problem"),
    [
        (lambda memory: memory.save_history("s", 5), "messages: is a int, must be a Message, a text, or a dict"),
        (lambda memory: memory.save_history("s", [{"role": "user"}]), "messages[0].content: is missing"),
        (lambda memory: memory.load_history("s", message=5), "message: is a int, must be a Message"),
        (lambda memory: memory.load_history("s", message=["a", "b"]), "message: holds 2 messages, must be one"),
        (lambda memory: memory.load_history("s", history=[5]), "history[0]: is a int, must be a Message"),
        (lambda memory: memory.load_history("s", message="a", traffic=[{}]), "traffic[0].role: is missing"),
        (lambda memory: memory.explain("s", message={}), "message.role: is missing"),
    ],
)
async def test_what_is_no_message_is_refused(call: Callable[[Memory], Any], problem: str) -> None:
    async with open_memory("memory://") as memory:
        with pytest.raises(InvalidMessageError) as raised:
            await call(memory)
        assert str(raised.value).startswith(problem)


@each_row(
    ("call", "problem"),
    [
        (lambda memory: memory.load_history(5), "session_id: is a int, must be a str"),
        (lambda memory: memory.load_history("s", user_id=5), "user_id: is a int, must be a str"),
        (lambda memory: memory.load_history("s", budget="4000"), "budget: must be a whole number, is a str"),
        (lambda memory: memory.load_history("s", system=5), "system: must be a text, is a int"),
        (lambda memory: memory.load_history("s", query=5), "query: must be a text, is a int"),
        (lambda memory: memory.load_history("s", tools=5), "tools: must be a list of declarations, is a int"),
        (lambda memory: memory.load_history("s", tools={"name": "f"}), "tools: must be a list of declarations"),
        (lambda memory: memory.load_history("s", tools=[{1, 2}, object()]), "tools[1]: must be a JSON object"),
        (lambda memory: memory.load_history("s", on_overflow="cut"), "on_overflow: must be raise or drop_memory"),
        (lambda memory: memory.list_sessions(cursor=5), "cursor: must be a text, is a int"),
        (lambda memory: memory.facts.list("s", as_of_seq="3"), "as_of_seq: must be a whole number, is a str"),
        (lambda memory: memory.fork("s", at_seq=None), "at_seq: must be a whole number, is a NoneType"),
    ],
)
async def test_what_is_no_argument_is_refused(call: Callable[[Memory], Any], problem: str) -> None:
    async with open_memory("memory://") as memory:
        await memory.save_history("s", "hello")
        with pytest.raises(InvalidInputError) as raised:
            await call(memory)
        assert str(raised.value).startswith(problem)


async def test_each_feature_is_a_property() -> None:
    async with open_memory(settings(search={"enabled": True}, notes={"enabled": True})) as memory:
        await memory.save_history("s", ["I eat no peanuts.", Message.assistant("Noted.")], user_id="u")

        assert (await memory.pins.add("s", seq=1, user_id="u")).text == "I eat no peanuts."
        assert [pin.seq for pin in await memory.pins.list("s", user_id="u")] == [1]
        assert await memory.pins.remove("s", seq=1, user_id="u") is True

        assert await memory.facts.list("s", user_id="u") == ()
        assert await memory.facts.segments("s", user_id="u") == ()
        assert (await memory.notes.apply("u", "agent", "append", content="vegan")).status == "ok"
        assert (await memory.sessions.resolve("u", "agent")).session_id
        assert texts(await memory.chat_memory.get_messages("s", user_id="u")) == ["I eat no peanuts.", "Noted."]
        assert [hit.seq for hit in await memory.recall("s", "peanuts", user_id="u")] == [1]
        await memory.drain()
        await memory.container.background_work().drain()
        assert (await memory.search.search(MessageSearch(text="peanuts", user_id="u"))).hits

        fork = await memory.fork("s", at_seq=2, user_id="u")
        assert (await memory.erasure.erase("s", seq=1, user_id="u")).message_count == 1
        assert (await memory.delete(fork.session_id, user_id="u")).session_ids == (fork.session_id,)
        assert isinstance(await memory.withdraw("s", user_id="u"), StoredMessage)
        with pytest.raises(SessionOwnershipError):
            await memory.pins.list("s", user_id="other")


async def test_tiers_are_a_feature_of_their_strategy() -> None:
    async with open_memory(settings(history={"strategy": "progressive"}, summary={"enabled": False})) as memory:
        await memory.save_history("s", "hello")
        assert (await memory.tiers.stats("s")).disabled == ""


@each_row(
    ("sections", "feature", "key"),
    [
        ({}, "search", "search.enabled"),
        ({}, "tiers", "history.strategy"),
        ({"history": {"strategy": "progressive"}, "tiers": {"enabled": False}}, "tiers", "tiers.enabled"),
    ],
)
async def test_a_feature_that_is_off_names_its_setting(sections: dict[str, Any], feature: str, key: str) -> None:
    async with open_memory(settings(**sections)) as memory:
        with pytest.raises(ConfigurationError) as raised:
            getattr(memory, feature)
        assert raised.value.key == key


def test_the_package_names_its_door() -> None:
    assert {"open_memory", "Memory", "open_container", "Container"} <= {*reactor_memory.__all__}
    assert all(getattr(reactor_memory, name) for name in reactor_memory.__all__)


async def test_what_people_print_can_be_read() -> None:
    async with open_memory("memory://") as memory:
        assert repr(memory) == "<Memory of memory://>"
        async with memory.turn("s", "Where is it?", budget=500) as turn:
            assert repr(turn).startswith("<Turn: no answer yet, 0 messages of tools, <Context of 's': 1 messages, ")
            turn.answer("In Lyon.")
        assert "answered" in repr(turn)
        shown = repr(await memory.load_history("s", budget=500))
        assert re.fullmatch(r"<Context of 's': 2 messages, \d+ of 500 tokens \(window \d+\)>", shown)
    assert repr(Message.user("Where is it?")) == "Message(role='user', content='Where is it?')"


def test_a_memory_shows_no_password() -> None:
    settings = Settings(store={"url": "postgresql://app:geheim@localhost/memory"})
    container: Any = SimpleNamespace(settings=lambda: settings)
    memory = object.__new__(Memory)
    memory.container = container
    assert repr(memory) == "<Memory of postgresql://app:********@localhost/memory>"
