"""Agents with memory as nodes of a graph, and below it: one conversation where they share the state, else their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from reactor_memory import Memory
from reactor_memory.adapters.langchain import ReactorMemoryMiddleware
from reactor_memory.adapters.langchain.thread_log import logs_of
from tests.adapters.langchain.scripted import ScriptedModel, calling
from tests.adapters.langchain.test_middleware import THREAD, look, said, stored, texts

pytestmark = pytest.mark.anyio


def agent_with(
    memory: Memory, *answers: Any, tools: Sequence[Any] = (look,), **options: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(answers=list(answers))
    return create_agent(model, tools, middleware=[ReactorMemoryMiddleware(memory, **options)]), model


def in_order(**nodes: Any) -> Any:
    """A graph that does one node after the other, and keeps its state."""
    graph: Any = StateGraph(MessagesState)
    names = list(nodes)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=InMemorySaver())


async def two_runs(graph: Any) -> list[str]:
    """What is in the state after both."""
    await graph.ainvoke(said("first"), THREAD)
    return texts((await graph.ainvoke(said("second"), THREAD))["messages"])


async def others(memory: Memory) -> dict[str, list[str]]:
    sessions = [each.session_id for each in (await memory.list_sessions()).sessions]
    return {each: texts(await stored(memory, each)) for each in sessions if each != "t1"}


async def test_an_agent_that_is_a_node_keeps_the_conversation(memory: Memory) -> None:
    agent, model = agent_with(memory, "one", "two")
    state = await two_runs(in_order(agent=agent))
    assert texts(await stored(memory)) == state == ["human: first", "ai: one", "human: second", "ai: two"]
    assert texts(model.seen[-1]) == state[:3]
    assert await others(memory) == {}


async def test_agents_that_share_a_state_share_the_conversation(memory: Memory) -> None:
    research, _ = agent_with(memory, calling(("c1", "look", {"n": 1})), "found", "more")
    write, writer = agent_with(memory, "written", "again")
    state = await two_runs(in_order(research=research, write=write))
    assert texts(await stored(memory)) == state
    assert len(state) == 8
    assert texts(writer.seen[-1]) == state[:-1]
    assert await others(memory) == {}


async def test_an_agent_that_a_node_asks_has_the_named_session(memory: Memory) -> None:
    inner, asked = agent_with(memory, "deep 1", "deep 2", session_id="t1 research")

    async def research(state: Any) -> Any:
        told = await inner.ainvoke(said(f"secret {state['messages'][-1].text}"))
        return {"messages": [AIMessage(told["messages"][-1].text)]}

    desk, model = agent_with(memory, "one", "two")
    state = await two_runs(in_order(research=research, desk=desk))
    assert texts(await stored(memory)) == state
    assert await others(memory) == {
        "t1 research": ["human: secret first", "ai: deep 1", "human: secret second", "ai: deep 2"]
    }
    assert texts(asked.seen[-1]) == ["human: secret first", "ai: deep 1", "human: secret second"]
    assert "secret" not in str(texts(model.seen[-1]))


async def test_an_agent_below_a_node_has_its_own_session(memory: Memory) -> None:
    inner, _ = agent_with(memory, "deep 1", "deep 2")

    @tool
    async def ask(question: str) -> str:
        """Ask another agent."""
        return (await inner.ainvoke(said(question)))["messages"][-1].text

    made = [calling((f"c{n}", "ask", {"question": f"secret {n}"})) for n in (1, 2)]
    desk, model = agent_with(memory, made[0], "one", made[1], "two", tools=[ask])
    state = await two_runs(in_order(desk=desk))
    assert texts(await stored(memory)) == state
    assert sorted((await others(memory)).values()) == [
        ["human: secret 1", "ai: deep 1"],
        ["human: secret 2", "ai: deep 2"],
    ]
    assert "human: secret" not in str(texts(model.seen[-1]))


@pytest.mark.parametrize("places", [[0], [0, 1], [0, 1, 2], [1], [2], []])
@pytest.mark.parametrize("is_edit", [True, False])
@pytest.mark.parametrize("is_new_process", [True, False])
async def test_what_a_node_changes_of_the_state_is_followed(
    memory: Memory, places: list[int], is_edit: bool, is_new_process: bool
) -> None:
    """Also where the first message goes, which named the thread."""

    async def changing(state: Any) -> Any:
        if is_new_process:
            logs_of(memory)._logs.clear()
        if len(state["messages"]) < 4:
            return {}
        chosen = [state["messages"][place] for place in places]
        masked = [each.model_copy(update={"content": "masked"}) for each in chosen]
        return {"messages": masked if is_edit else [RemoveMessage(str(each.id)) for each in chosen]}

    research, _ = agent_with(memory, "one", "two", "three")
    write, writer = agent_with(memory, "written", "again", "and again")
    graph = in_order(research=research, changing=changing, write=write)
    await two_runs(graph)
    state = texts((await graph.ainvoke(said("third"), THREAD))["messages"])
    assert texts(await stored(memory)) == state
    seen = texts(writer.seen[-1])
    assert set(seen) <= set(state)
    assert seen[-2:] == state[-3:-1]
