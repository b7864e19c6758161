"""Agents that others call have a session of their own; those that others hand over to share the conversation."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, handoff
from agents.extensions import handoff_filters

from reactor_memory import Memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.adapters.openai_agents.scripted import ScriptedModel, calls, says, texts, thinks
from tests.proofs.provider_rules import provider_problems

pytestmark = pytest.mark.anyio


def asking(number: int, tool: str = "ask") -> Any:
    return calls(tool, f'{{"input": "secret question {number}?"}}', f"c{number}")


async def said_in(memory: Memory, session_id: str) -> list[tuple[str, str]]:
    return [(each.role, each.content) for each in await memory.read_messages(session_id)]


async def sessions_of(memory: Memory) -> set[str]:
    return {each.session_id for each in (await memory.list_sessions()).sessions}


async def check(memory: Memory, session_id: str = "s") -> None:
    for budget in (None, 200):
        context = await memory.load_history(session_id, budget=budget)
        assert provider_problems(context) == []


async def test_an_agent_as_a_tool_leaves_its_answer_alone_behind(memory: Memory) -> None:
    inner = ScriptedModel([says("the depth is 1")], [says("the depth is 2")])
    ask = Agent(name="inner", model=inner).as_tool("ask", "Ask another agent.")
    model = ScriptedModel([asking(1)], [says("one")], [asking(2)], [says("two")])
    desk, session = Agent(name="desk", model=model, tools=[ask]), ReactorMemorySession(memory, "s")
    for question in ("ask once", "ask twice"):
        await Runner.run(desk, question, session=session)
    assert await said_in(memory, "s") == [
        *(("user", "ask once"), ("assistant", ""), ("tool", "the depth is 1"), ("assistant", "one")),
        *(("user", "ask twice"), ("assistant", ""), ("tool", "the depth is 2"), ("assistant", "two")),
    ]
    assert await sessions_of(memory) == {"s"}
    assert "ask once" not in texts([*inner.seen[0], *inner.seen[1]])
    await check(memory)


async def test_an_agent_as_a_tool_remembers_in_its_own_session(memory: Memory) -> None:
    inner = ScriptedModel([thinks("deep"), says("the depth is 1")], [says("the depth is 2")])
    own = ReactorMemorySession(memory, "s inner")
    ask = Agent(name="inner", model=inner).as_tool("ask", "Ask another agent.", session=own)
    model = ScriptedModel([asking(1)], [says("one")], [asking(2)], [says("two")])
    desk, session = Agent(name="desk", model=model, tools=[ask]), ReactorMemorySession(memory, "s")
    for question in ("ask once", "ask twice"):
        await Runner.run(desk, question, session=session)
    assert [text for role, text in await said_in(memory, "s inner") if role == "user"] == [
        "secret question 1?",
        "secret question 2?",
    ]
    assert "the depth is 1" in texts(inner.seen[1])
    assert "secret" not in str(await said_in(memory, "s"))
    assert "ask once" not in str(await said_in(memory, "s inner"))
    await check(memory)
    await check(memory, "s inner")


async def test_agents_called_at_once_do_not_cross(memory: Memory) -> None:
    tools = [
        Agent(name=f"inner {n}", model=ScriptedModel([says(f"the depth is {n}")])).as_tool(
            f"ask_{n}", "Ask.", session=ReactorMemorySession(memory, f"inner {n}")
        )
        for n in range(3)
    ]
    model = ScriptedModel([asking(n, f"ask_{n}") for n in range(3)], [says("done")], [says("again")])
    desk, session = Agent(name="desk", model=model, tools=tools), ReactorMemorySession(memory, "s")
    await Runner.run(desk, "ask three", session=session)
    await Runner.run(desk, "and now?", session=session)
    for n in range(3):
        assert await said_in(memory, f"inner {n}") == [
            ("user", f"secret question {n}?"),
            ("assistant", f"the depth is {n}"),
        ]
    roles = [role for role, _ in await said_in(memory, "s")]
    assert roles == ["user", *["assistant"] * 3, *["tool"] * 3, "assistant", "user", "assistant"]
    assert "secret question" not in texts([each for each in model.seen[-1] if each.get("role") == "user"])
    await check(memory)


async def test_an_agent_below_an_agent_below_an_agent(memory: Memory) -> None:
    lowest = Agent(name="lowest", model=ScriptedModel([says("7")])).as_tool(
        "measure", "Measure.", session=ReactorMemorySession(memory, "lowest")
    )
    middle = Agent(name="middle", model=ScriptedModel([asking(2, "measure")], [says("seven")]), tools=[lowest]).as_tool(
        "ask", "Ask.", session=ReactorMemorySession(memory, "middle")
    )
    desk = Agent(name="desk", model=ScriptedModel([asking(1)], [says("It is seven.")]), tools=[middle])
    await Runner.run(desk, "how deep?", session=ReactorMemorySession(memory, "s"))
    assert [len(await said_in(memory, each)) for each in ("s", "middle", "lowest")] == [4, 4, 2]
    for each in ("s", "middle", "lowest"):
        await check(memory, each)


async def test_an_agent_that_fails_below_leaves_both_sessions_usable(memory: Memory) -> None:
    inner = ScriptedModel(RuntimeError("down"), [says("the depth is 2")])
    ask = Agent(name="inner", model=inner).as_tool("ask", "Ask.", session=ReactorMemorySession(memory, "inner"))
    model = ScriptedModel([asking(1)], [says("It failed.")], [asking(2)], [says("two")])
    desk, session = Agent(name="desk", model=model, tools=[ask]), ReactorMemorySession(memory, "s")
    for question in ("ask once", "ask twice"):
        await Runner.run(desk, question, session=session)
    assert [role for role, _ in await said_in(memory, "inner")] == ["user", "user", "assistant"]
    assert [role for role, _ in await said_in(memory, "s")] == ["user", "assistant", "tool", "assistant"] * 2
    await check(memory)
    await check(memory, "inner")


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("nested", [False, True])
async def test_a_handoff_goes_on_in_the_same_conversation(memory: Memory, filtered: bool, nested: bool) -> None:
    """What the SDK's own session keeps is kept, whatever the next agent is shown of it."""
    kept: list[Any] = []
    for session in (ReactorMemorySession(memory, "s"), SQLiteSession("s")):
        first = ScriptedModel([calls("transfer_to_returns", "{}", "c1")])
        second = ScriptedModel([says("I take returns.")], [says("It was A-1042.")])
        returns = Agent(name="returns", model=second)
        given = handoff(returns, input_filter=handoff_filters.remove_all_tools if filtered else None)
        desk = Agent(name="desk", model=first, handoffs=[given])
        config = RunConfig(nest_handoff_history=nested)
        await Runner.run(desk, "Return A-1042.", session=session, run_config=config)
        await Runner.run(returns, "Which was it?", session=session)
        kept.append((await session.get_items(), second.seen[-1]))
    assert kept[0] == kept[1]
    assert await sessions_of(memory) == {"s"}
    await check(memory)


async def test_one_session_for_both_is_as_the_sdk_has_it(memory: Memory) -> None:
    """The caller wanted it: the two conversations are one, whole and in order."""
    seen: list[Any] = []
    for session in (ReactorMemorySession(memory, "s", with_memory=False), SQLiteSession("s")):
        inner = ScriptedModel([says("the depth is 1")], [says("the depth is 2")])
        ask = Agent(name="inner", model=inner).as_tool("ask", "Ask another agent.", session=session)
        model = ScriptedModel([asking(1)], [says("one")], [asking(2)], [says("two")])
        desk = Agent(name="desk", model=model, tools=[ask])
        for question in ("ask once", "ask twice"):
            await Runner.run(desk, question, session=session)
        seen.append((model.seen, inner.seen, await session.get_items()))
    assert seen[0] == seen[1]
    await check(memory)
