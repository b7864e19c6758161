"""The session does what the SDK's own session does, on every store, and more where the log promises more."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from agents import Session, SessionSettings, SQLiteSession
from agents.extensions.memory import EncryptedSession
from agents.memory.session import is_openai_responses_compaction_aware_session
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory import (
    InvalidInputError,
    Memory,
    Message,
    SessionDeletedError,
    SessionOwnershipError,
    Settings,
    ToolCall,
    open_memory,
)
from reactor_memory.adapters.openai_agents import ReactorMemorySession

pytestmark = pytest.mark.anyio

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
ITEMS = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), TEXT),
    st.builds(
        lambda text: {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}, TEXT
    ),
    st.builds(lambda name: {"type": "function_call", "call_id": "c1", "name": name, "arguments": "{"}, TEXT),
    st.builds(lambda text: {"type": "function_call_output", "call_id": "c1", "output": text}, TEXT),
    st.just({"type": "reasoning", "summary": [], "encrypted_content": "x", "unknown": {"key": [1.5, None]}}),
)
STEPS = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("get_items"), st.none() | st.integers(-2, 6)),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)


@pytest.fixture
async def any_memory(url: str) -> AsyncIterator[Memory]:
    async with open_memory(Settings(store={"url": url}, summary={"enabled": True})) as memory:
        yield memory


@given(st.lists(STEPS, max_size=12), st.none() | st.integers(0, 5))
def test_any_calls_give_what_the_sdks_own_session_gives(steps: list[tuple[Any, ...]], limit: int | None) -> None:
    async def both() -> None:
        settings = SessionSettings(limit=limit)
        theirs = SQLiteSession("s", session_settings=settings)
        async with open_memory(Settings(store={"url": "memory://"})) as memory:
            ours = ReactorMemorySession(memory, "s", with_memory=False, session_settings=settings)
            for name, *arguments in steps:
                answer = json.dumps(await getattr(ours, name)(*arguments))
                assert answer == json.dumps(await getattr(theirs, name)(*arguments)), name
            assert json.dumps(await ours.get_items(99)) == json.dumps(await theirs.get_items(99))
        theirs.close()

    anyio.run(both)


async def test_items_come_back_byte_for_byte_from_every_store(any_memory: Memory) -> None:
    items: list[Any] = [
        {"role": "developer", "content": "be kind", "id": "m0"},
        {
            "content": [{"type": "input_text", "text": "nul \0"}, {"type": "input_image", "image_url": "u"}],
            "role": "user",
        },
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [],
            "encrypted_content": "gA==",
            "new": {"z": 1, "a": [1.0, -0.0]},
        },
        {"type": "function_call", "arguments": '{"x":', "call_id": "c1", "name": "f", "id": "fc_1"},
        {"type": "function_call", "arguments": "", "call_id": "c2", "name": "f", "id": "fc_2"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}]},
        {"type": "shell_call", "call_id": "c3", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c3", "output": [{"stdout": "", "stderr": "x"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ]
    session = ReactorMemorySession(any_memory, "s")
    await session.add_items(items)
    assert json.dumps(await session.get_items()) == json.dumps(items)
    assert json.dumps(await session.get_items(4)) == json.dumps(items[-4:])
    popped = [await session.pop_item() for _ in items]
    assert json.dumps(popped) == json.dumps(items[::-1])
    assert await session.pop_item() is None
    assert await session.get_items() == []


async def test_it_is_a_session_and_does_not_compact(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    assert isinstance(session, Session)
    assert not is_openai_responses_compaction_aware_session(session)
    assert session.session_settings == SessionSettings()


async def test_settings_may_be_a_dict(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s", session_settings={"limit": 2})
    assert session.session_settings == SessionSettings(limit=2)
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(5)]
    await session.add_items(items)
    assert await session.get_items() == items[-2:]
    session.session_settings = {"limit": 3}  # type: ignore[assignment]
    assert await session.get_items() == items[-3:]
    session.session_settings = None
    assert await session.get_items() == items


@pytest.mark.parametrize("given", [{"limits": 2}, {"limit": "two"}, {"limit": [2]}, {1: 2}, [("limit", 2)], 2, "limit"])
async def test_what_is_no_setting_is_refused_at_once(memory: Memory, given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"session_settings.*limit"):
        ReactorMemorySession(memory, "s", session_settings=given)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"with_memory": False}, range(60, 61)),
        ({}, range(60, 61)),
        ({"session_settings": {"limit": 20}}, range(20, 21)),
        ({"budget": 2_000}, range(1, 60)),
    ],
)
async def test_an_encrypted_session_shows_the_newest_that_fit(
    memory: Memory, options: dict[str, Any], numbers: range
) -> None:
    session = EncryptedSession("s", ReactorMemorySession(memory, "s", **options), "a key" * 8)
    items: list[Any] = [{"role": "user", "content": f"My order number is A-{number}."} for number in range(60)]
    await session.add_items(items)
    await memory.drain()
    shown = await session.get_items()
    assert shown == items[-len(shown) :]
    assert len(shown) in numbers
    assert await memory.facts.list("s") == ()


async def test_what_is_popped_is_forgotten(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    await session.add_items([{"role": "user", "content": f"My order number is A-{n}."} for n in range(30)])
    await memory.drain()
    for _ in range(29):
        await session.pop_item()
    await memory.drain()
    assert {fact.source_seq for fact in await memory.facts.list("s")} <= {1}
    assert "A-29" not in json.dumps(await session.get_items())


async def test_several_sessions_pop_each_item_once(memory: Memory) -> None:
    sessions = [ReactorMemorySession(memory, "s") for _ in range(5)]
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(5)]
    await sessions[0].add_items(items)
    popped: list[str] = []

    async def pop(session: ReactorMemorySession) -> None:
        popped.append(json.dumps(await session.pop_item()))

    async with anyio.create_task_group() as tasks:
        for session in sessions:
            tasks.start_soon(pop, session)
    assert sorted(popped) == sorted(map(json.dumps, items))


async def test_what_is_cleared_is_out_of_memory_until_restored(any_memory: Memory) -> None:
    session = ReactorMemorySession(any_memory, "s", user_id="u1")
    items: list[Any] = [{"role": "user", "content": f"My order number is A-{number}."} for number in range(30)]
    await session.add_items(items)
    await any_memory.drain()
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []
    assert await any_memory.facts.list("s", user_id="u1") == ()
    await session.add_items([{"role": "user", "content": "a new beginning"}])
    assert await session.get_items() == [{"role": "user", "content": "a new beginning"}]
    await any_memory.drain()
    log = await any_memory.read_messages("s", user_id="u1", archived=True)
    assert [message.content for message in log[:30]] == [item["content"] for item in items]
    assert await any_memory.restore("s", user_id="u1") == 30
    assert (await session.get_items(31))[:30] == items
    assert "A-29" in str(await any_memory.facts.list("s", user_id="u1"))


async def test_a_fork_is_not_cleared(memory: Memory) -> None:
    await ReactorMemorySession(memory, "s").add_items([{"role": "user", "content": "shared"}])
    fork = await memory.fork("s", at_seq=2)
    session = ReactorMemorySession(memory, fork.session_id)
    for call in (session.clear_session, session.pop_item):
        with pytest.raises(InvalidInputError):
            await call()
    assert await session.get_items() == [{"role": "user", "content": "shared"}]


async def test_a_session_answers_its_owner_only(memory: Memory) -> None:
    await ReactorMemorySession(memory, "s", user_id="u1").add_items([{"role": "user", "content": "mine"}])
    session = ReactorMemorySession(memory, "s", user_id="u2")
    for call in (session.get_items, session.pop_item, session.clear_session):
        with pytest.raises(SessionOwnershipError) as raised:
            await call()
        assert "mine" not in str(raised.value)
    with pytest.raises(SessionOwnershipError):
        await session.add_items([{"role": "user", "content": "theirs"}])


async def test_a_deleted_session_is_no_empty_history(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    await session.add_items([{"role": "user", "content": "mine"}])
    await memory.delete("s")
    with pytest.raises(SessionDeletedError):
        await session.get_items()


async def test_a_batch_is_added_whole_or_not_at_all(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    with pytest.raises(InvalidInputError, match=r"items\[1\]"):
        await session.add_items([{"role": "user", "content": "good"}, {"role": "user", "content": b"bad"}])  # type: ignore[list-item]
    assert await session.get_items() == []


async def test_what_others_wrote_is_read_and_taken_back_as_message(memory: Memory) -> None:
    calls = [ToolCall(id="c1", name="f", arguments={}), ToolCall(id="c2", name="g", arguments={})]
    results = [Message.tool("1", tool_call_id="c1"), Message.tool("2", tool_call_id="c2")]
    await memory.save_history("s", [Message.user("go"), Message.assistant("going", tool_calls=calls), *results])
    session = ReactorMemorySession(memory, "s")
    types = [item.get("type", item.get("role")) for item in await session.get_items()]
    assert types == ["user", "assistant", *["function_call"] * 2, *["function_call_output"] * 2]
    assert len(await session.get_items(3)) == 3
    await session.pop_item()
    await session.pop_item()
    assert await session.pop_item() == {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"}
    assert await session.get_items() == [{"role": "user", "content": "go"}]
