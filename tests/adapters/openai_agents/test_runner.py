"""Runs of real agents: what they add is kept as the SDK's own session keeps it, and comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, Session, SessionSettings, SQLiteSession, function_tool
from agents.run_context import RunContextWrapper
from agents.run_internal.session_persistence import rewind_session_items
from openai.types.responses import ResponseOutputItem

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.adapters.openai_agents.scripted import ScriptedModel, calls, says, texts, thinks

pytestmark = pytest.mark.anyio

ANSWERS: list[list[ResponseOutputItem]] = [
    [
        thinks("two orders"),
        says("I look both up."),
        calls("find_order", '{"number": "A-1042"}', "c1"),
        calls("find_order", '{ "number" : "A-0"}', "c2"),
    ],
    [says("One is on its way, of the other I know nothing.")],
    [calls("transfer_to_returns", "{}", "c3")],
    [says("I take returns.", id="msg_2")],
]


@function_tool
def find_order(number: str) -> str:
    """The state of an order."""
    return "" if number == "A-0" else f"order {number} is on its way"


async def two_runs(session: Session) -> ScriptedModel:
    """A run with reasoning, text and two calls at once, one with an empty result, and a run with a handoff."""
    model = ScriptedModel(*ANSWERS)
    returns = Agent(name="returns", model=model)
    desk = Agent(name="desk", model=model, tools=[find_order], handoffs=[returns])
    await Runner.run(desk, "Where are A-1042 and A-0?", session=session)
    await Runner.run(
        desk, [{"role": "user", "content": [{"type": "input_text", "text": "Return it."}]}], session=session
    )
    return model


@pytest.mark.parametrize("with_memory", [True, False])
async def test_runs_see_and_keep_the_same_as_the_sdks_session(memory: Memory, with_memory: bool) -> None:
    ours, theirs = ReactorMemorySession(memory, "s", with_memory=with_memory), SQLiteSession("s")
    seen, expected = (await two_runs(ours)).seen, (await two_runs(theirs)).seen
    assert json.dumps(seen) == json.dumps(expected)
    assert json.dumps(await ours.get_items()) == json.dumps(await theirs.get_items())
    theirs.close()


async def test_others_read_the_tool_traffic_of_a_run(memory: Memory) -> None:
    await two_runs(ReactorMemorySession(memory, "s", user_id="u1"))
    messages = await memory.read_messages("s", user_id="u1")
    assert [(message.role, message.content, [call.id for call in message.tool_calls]) for message in messages[:7]] == [
        ("user", "Where are A-1042 and A-0?", []),
        ("assistant", "", []),
        ("assistant", "I look both up.", []),
        ("assistant", "", ["c1"]),
        ("assistant", "", ["c2"]),
        ("tool", "order A-1042 is on its way", []),
        ("tool", "", []),
    ]
    context = await memory.load_history("s", user_id="u1")
    shown = [message for message in context.to_openai() if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in shown] == ["c1", "c2", "c3"]


async def test_memory_comes_before_the_newest_items_and_does_not_count(memory: Memory) -> None:
    await talk(memory, "s", turns=30)
    model = ScriptedModel([says("It is A-1042.")])
    session = ReactorMemorySession(memory, "s", session_settings=SessionSettings(limit=4))
    await Runner.run(Agent(name="desk", model=model), "What was my order number?", session=session)
    (seen,) = model.seen
    newest = [item for item in seen if item.get("role") != "system"]
    assert [item["content"] for item in newest] == [
        "Tell me about item 28.",
        "Item 28 is blue.",
        "Tell me about item 29.",
        "Item 29 is blue.",
        "What was my order number?",
    ]
    assert "A-1042" in texts(seen[:-5])
    assert seen[-5:] == newest


async def test_limit_of_a_run_counts_like_that_of_the_session(memory: Memory) -> None:
    await talk(memory, "s", turns=30)
    model = ScriptedModel([says("It is A-1042.")], [says("Still A-1042.")])
    session = ReactorMemorySession(memory, "s")
    config = RunConfig(session_settings=SessionSettings(limit=2))
    for _ in range(2):
        await Runner.run(Agent(name="desk", model=model), "And my order?", session=session, run_config=config)
    for seen in model.seen:
        assert "A-1042" in texts(seen[:1])
        assert len([item for item in seen if item.get("role") != "system"]) == 3


async def test_the_notes_of_the_agent_come_first() -> None:
    settings = Settings(store={"url": "memory://"}, notes={"enabled": True})
    async with open_memory(settings) as memory:
        await memory.notes.apply("u1", "desk", "overwrite", content="She likes tea.")
        model = ScriptedModel()
        for agent_name in ("desk", "other"):
            session = ReactorMemorySession(memory, f"s-{agent_name}", user_id="u1", agent_name=agent_name)
            model.answers = [[says("Hello.")]]
            await Runner.run(Agent(name="desk", model=model), "Hello!", session=session)
    assert "She likes tea." in texts(model.seen[0][:1])
    assert model.seen[1] == [{"role": "user", "content": "Hello!"}]


async def test_memory_is_not_stored_again(memory: Memory) -> None:
    await talk(memory, "s", turns=30)
    model = ScriptedModel([says("Yes.")])
    await Runner.run(Agent(name="desk", model=model), "Are you there?", session=ReactorMemorySession(memory, "s"))
    newest = await memory.read_messages("s", after=62)
    assert [message.content for message in newest] == ["Are you there?", "Yes."]


async def test_without_memory_a_run_sees_every_item(memory: Memory) -> None:
    await talk(memory, "s", turns=30)
    model = ScriptedModel([says("Yes.")])
    session = ReactorMemorySession(memory, "s", with_memory=False)
    await Runner.run(Agent(name="desk", model=model), "Are you there?", session=session)
    assert len(model.seen[0]) == 63


async def test_a_run_takes_back_exactly_what_it_added(memory: Memory) -> None:
    """As the SDK does it before it repeats a request, with a limit of the session that is what it looks for."""
    await talk(memory, "s", turns=30)
    added: list[Any] = [{"role": "user", "content": "again"}, {"type": "reasoning", "id": "rs_1", "summary": []}]
    session = ReactorMemorySession(memory, "s", session_settings=SessionSettings(limit=len(added)))
    run: RunContextWrapper[None] = RunContextWrapper(context=None)
    before = await session.get_items(limit=2, wrapper=run)
    await session.add_items(added, wrapper=run)
    await rewind_session_items(session, added, wrapper=run)
    assert [message.content for message in await memory.read_messages("s", last=1)] == ["Item 29 is blue."]
    assert await session.get_items(limit=2, wrapper=RunContextWrapper(context=None)) == before


async def test_a_run_that_fails_keeps_what_the_user_said(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    agent = Agent(name="desk", model=ScriptedModel(RuntimeError("down"), [says("Yes.")]))
    with pytest.raises(RuntimeError, match="down"):
        await Runner.run(agent, "Hello?", session=session)
    await Runner.run(agent, "Are you there?", session=session)
    contents = [message.content for message in await memory.read_messages("s")]
    assert contents == ["Hello?", "Are you there?", "Yes."]


async def talk(memory: Memory, session_id: str, *, turns: int) -> None:
    """A long conversation that begins with an order number, with its memory made."""
    await memory.save_history(
        session_id, [Message.user("My order number is A-1042."), Message.assistant("Noted, order A-1042.")]
    )
    for number in range(turns):
        question, answer = f"Tell me about item {number}.", f"Item {number} is blue."
        await memory.save_history(session_id, [Message.user(question), Message.assistant(answer)])
    await memory.drain()


async def test_an_interrupted_run_keeps_its_steps_for_the_next(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    model = ScriptedModel([calls("find_order", '{"number": "A-1042"}', "c1")], RuntimeError("down"), [says("It is.")])
    desk = Agent(name="desk", model=model, tools=[find_order])
    with pytest.raises(RuntimeError, match="down"):
        await Runner.run(desk, "Where is A-1042?", session=session)
    messages = await memory.read_messages("s")
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    await Runner.run(desk, "And now?", session=session)
    assert [item.get("type", item.get("role")) for item in model.seen[-1]] == [
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]


async def test_a_call_whose_run_was_killed_has_a_result(memory: Memory) -> None:
    session = ReactorMemorySession(memory, "s")
    call: Any = {"type": "function_call", "call_id": "c1", "name": "find_order", "arguments": "{}"}
    await session.add_items([{"role": "user", "content": "Where is A-1042?"}])
    await session.add_items([call])
    model = ScriptedModel([says("It is on its way.")])
    await Runner.run(Agent(name="desk", model=model, tools=[find_order]), "And now?", session=session)
    seen = model.seen[-1]
    assert [item.get("type", item.get("role")) for item in seen] == [
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert seen[2]["call_id"] == "c1"
    assert "interrupted" in str(seen[2]["output"])
