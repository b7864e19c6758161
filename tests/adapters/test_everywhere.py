"""Every adapter answers on any thread and any event loop, on every store: eight threads at once, each twice in a row.

Each environment has one framework, and what it has is tried. A call that hangs ends the run of the tests.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Memory, Settings, open_memory, sync
from tests.adapters.conftest import FreeMemory
from tests.scenes import hurting_texts

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30, method="thread")]

THREADS = 8
TURNS = 2

Seen = list[str]
Turn = Callable[[Memory, str, str], None]


def openai_agents(memory: Memory, session_id: str, text: str) -> None:
    from agents import Agent, Runner, set_tracing_disabled

    from reactor_memory.adapters.openai_agents import ReactorMemorySession
    from tests.adapters.openai_agents.scripted import ScriptedModel, says

    set_tracing_disabled(True)
    agent = Agent(name="desk", model=ScriptedModel([says(f"heard {text}")]))
    Runner.run_sync(agent, text, session=ReactorMemorySession(memory, session_id))


def openai_agents_awaited(memory: Memory, session_id: str, text: str) -> None:
    from reactor_memory.adapters.openai_agents import ReactorMemorySession

    async def turn() -> None:
        session = ReactorMemorySession(memory, session_id)
        await session.add_items(
            [{"role": "user", "content": text}, {"role": "assistant", "content": "to be taken back"}]
        )
        assert await session.pop_item() == {"role": "assistant", "content": "to be taken back"}
        await session.add_items([{"role": "assistant", "content": f"heard {text}"}])
        assert (await session.get_items())[-1] == {"role": "assistant", "content": f"heard {text}"}
        emptied = ReactorMemorySession(memory, f"{session_id} emptied")
        await emptied.add_items([{"role": "user", "content": text}])
        await emptied.clear_session()
        assert await emptied.get_items() == []

    asyncio.run(turn())


def langchain_agent(memory: Memory, session_id: str, text: str) -> None:
    from langchain.agents import create_agent

    from reactor_memory.adapters.langchain import LongTermMemoryTool, ReactorMemoryMiddleware
    from tests.adapters.langchain.scripted import ScriptedModel

    middleware = ReactorMemoryMiddleware(memory, session_id=session_id)
    agent = create_agent(ScriptedModel(answers=[f"heard {text}"]), middleware=[middleware])
    said: Any = {"messages": [("user", text)]}
    agent.invoke(said)
    tool = LongTermMemoryTool(memory, session_id, "desk")
    tool.invoke({"operation": "append", "content": text})
    assert text in tool.invoke({"operation": "read"})


def langchain_agent_awaited(memory: Memory, session_id: str, text: str) -> None:
    from langchain.agents import create_agent

    from reactor_memory.adapters.langchain import LongTermMemoryTool, ReactorMemoryMiddleware
    from tests.adapters.langchain.scripted import ScriptedModel

    async def turn() -> None:
        middleware = ReactorMemoryMiddleware(memory, session_id=session_id)
        agent = create_agent(ScriptedModel(answers=[f"heard {text}"]), middleware=[middleware])
        said: Any = {"messages": [("user", text)]}
        await agent.ainvoke(said)
        tool = LongTermMemoryTool(memory, session_id, "desk")
        await tool.ainvoke({"operation": "append", "content": text})

    asyncio.run(turn())


def langchain_history(memory: Memory, session_id: str, text: str) -> None:
    from reactor_memory.adapters.langchain import ReactorMemoryChatHistory
    from reactor_memory.adapters.langchain_postgres import read_turns

    history = ReactorMemoryChatHistory(memory, session_id)
    history.add_user_message(text)
    history.add_ai_message(f"heard {text}")
    assert history.messages[-1].text == f"heard {text}"
    assert [message.text for message in asyncio.run(read_turns(memory, session_id, k=1))] == [text, f"heard {text}"]


def langgraph_store(memory: Memory, session_id: str, text: str) -> None:
    from reactor_memory.adapters.langgraph import ReactorMemoryStore, notes_namespace

    async def awaited() -> None:
        store = ReactorMemoryStore(memory)
        answers = await asyncio.gather(*(store.aget(("texts", session_id), text) for _ in range(3)))
        assert [answer.value for answer in answers if answer] == [{"text": text}] * 3
        await store.aput(notes_namespace(session_id, "desk"), "notes", {"text": text})

    store = ReactorMemoryStore(memory)
    store.put(("texts", session_id), text, {"text": text})
    assert text in [item.value["text"] for item in store.search(("texts", session_id), query=text)]
    asyncio.run(awaited())
    saved(memory, session_id, text)


def mcp_client(memory: Memory, session_id: str, text: str) -> None:
    from mcp import Client

    from reactor_memory.adapters.mcp import memory_server

    async def turn() -> None:
        said = [{"role": "user", "content": text}, {"role": "assistant", "content": f"heard {text}"}]
        async with Client(memory_server(memory)) as client:
            for name, arguments in (("memory_add_messages", {"messages": said}), ("memory_get_context", {})):
                result = await client.call_tool(name, {"session_id": session_id, **arguments})
                assert not result.is_error, result.content

    asyncio.run(turn())


def saved(memory: Memory, session_id: str, text: str) -> None:
    """What the other adapters leave, for one that has no messages."""
    from reactor_memory.adapters.loop_bridge import Crossing

    said = [{"role": "user", "content": text}, {"role": "assistant", "content": f"heard {text}"}]
    Crossing(memory.loop).call(lambda: memory.save_history(session_id, said))


ADAPTERS: dict[Turn, str] = {
    saved: "reactor_memory",
    openai_agents: "agents",
    openai_agents_awaited: "agents",
    langchain_agent: "langchain",
    langchain_agent_awaited: "langchain",
    langchain_history: "langchain",
    langgraph_store: "langgraph",
    mcp_client: "mcp",
}

MOST_OF: dict[Turn, int] = {langchain_agent: 1000, langgraph_store: 100}
"""What fits into notes, and into a key."""


@pytest.fixture(params=[turn for turn, framework in ADAPTERS.items() if find_spec(framework)], ids=lambda t: t.__name__)
def turn(request: pytest.FixtureRequest) -> Turn:
    """A turn in an installed framework, in this thread and on a loop of its own."""
    return request.param


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/memory.db"}
    return Settings(store={"url": urls.get(request.param) or request.getfixturevalue("postgres_dsn")})  # pyright: ignore


def turns(memory: Memory, turn: Turn, number: int) -> None:
    on_this_thread(memory, turn, f"s{number}", *(f"turn {each} of {number}" for each in range(TURNS)))


def on_this_thread(memory: Memory, turn: Turn, session_id: str, *texts: str) -> None:
    with asyncio.Runner() as own:
        asyncio.set_event_loop(own.get_loop())  # which `run_sync` goes back to, and would leave open
        for text in texts:
            turn(memory, session_id, text)
    asyncio.set_event_loop(None)


def expected(number: int) -> Seen:
    return [said for each in range(TURNS) for said in (f"turn {each} of {number}", f"heard turn {each} of {number}")]


async def kept(memory: Memory) -> list[Seen]:
    return [
        [message.content for message in await memory.read_messages(f"s{n}") if message.content] for n in range(THREADS)
    ]


def test_on_threads_beside_a_memory_without_await(settings: Settings, turn: Turn) -> None:
    with sync.open_memory(settings) as opened:
        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(turns, opened.memory, turn, number) for number in range(THREADS)]:
                done.result()
        assert opened.call(lambda: kept(opened.memory)) == [expected(number) for number in range(THREADS)]


async def test_on_threads_beside_the_loop_of_the_memory(settings: Settings, turn: Turn) -> None:
    async with open_memory(settings) as memory:
        await asyncio.gather(*(asyncio.to_thread(turns, memory, turn, number) for number in range(THREADS)))
        assert await kept(memory) == [expected(number) for number in range(THREADS)]


@pytest.mark.timeout(300, method="thread")
async def test_no_text_holds_the_loop_of_the_memory(free_memory: FreeMemory, turn: Turn) -> None:
    most = MOST_OF.get(turn)
    await asyncio.to_thread(on_this_thread, free_memory.memory, turn, "first", "turn")  # the framework loads
    for number, text in enumerate(hurting_texts.FEW[:2]):
        async with free_memory.watched():
            await asyncio.to_thread(on_this_thread, free_memory.memory, turn, f"hurting-{number}", text[:most])
