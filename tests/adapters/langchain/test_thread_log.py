"""The session of a thread is what its state is: step by step, and after deletions, edits and runs from checkpoints."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from reactor_memory import Memory, Message, open_memory
from reactor_memory.adapters.langchain import ReactorMemoryMiddleware, from_messages
from tests.adapters.langchain.scripted import ScriptedModel, calling
from tests.adapters.langchain.test_middleware import THREAD, TWO_CALLS, WHOLE_TURN, agent_of, said, stored, texts
from tests.proofs.provider_rules import provider_problems

pytestmark = pytest.mark.anyio


class Looking(AgentMiddleware[Any, Any, Any]):
    """Looks at the session before each call of the model, as another process would."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory
        self.seen: list[list[str]] = []

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.seen.append(texts(await stored(self._memory)))
        return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.seen.append(texts(await stored(self._memory)))
        return await handler(request)


async def test_each_step_is_kept_before_the_next_one(memory: Memory) -> None:
    looking = Looking(memory)
    model = ScriptedModel(answers=[TWO_CALLS, RuntimeError("down")])
    agent = create_agent(
        model,
        [look],
        middleware=[ReactorMemoryMiddleware(memory), looking],
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(RuntimeError, match="down"):
        await agent.ainvoke(said("hello"), THREAD)
    assert looking.seen == [WHOLE_TURN[:1], WHOLE_TURN[:2], WHOLE_TURN[:2], WHOLE_TURN[:4]]
    assert texts(await stored(memory)) == WHOLE_TURN[:4]


@tool
def look(n: int) -> str:
    """Look something up."""
    return f"found {n}"


async def three_turns(memory: Memory, *more: Any) -> tuple[Any, ScriptedModel, list[Any]]:
    """An agent that was asked three things, and the messages of its state."""
    model = ScriptedModel(answers=["one", calling(("c1", "look", {"n": 1})), "two", "three", *more])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    result: Any = {}
    for text in ("first", "second", "third"):
        result = await agent.ainvoke(said(text), THREAD)
    return agent, model, result["messages"]


EVERYTHING = [
    "human: first",
    "ai: one",
    "human: second",
    "ai: ",
    "tool: found 1",
    "ai: two",
    "human: third",
    "ai: three",
]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ([0, 1], EVERYTHING[2:]),
        ([2, 3, 4, 5], EVERYTHING[:2] + EVERYTHING[6:]),
        ([3, 4], EVERYTHING[:3] + EVERYTHING[5:]),
        ([7], EVERYTHING[:7]),
        ([1, 6, 7], [EVERYTHING[0], *EVERYTHING[2:6]]),
    ],
)
@pytest.mark.parametrize("by_update", [True, False])
async def test_what_was_removed_from_the_state_is_in_no_context(
    memory: Memory, gone: list[int], left: list[str], by_update: bool
) -> None:
    agent, model, messages = await three_turns(memory, "four", "five")
    removed: Any = [RemoveMessage(id=messages[at].id) for at in gone]
    if by_update:
        await agent.aupdate_state(THREAD, {"messages": removed})
        removed = []
    result = await agent.ainvoke({"messages": [*removed, HumanMessage("fourth")]}, THREAD)
    assert texts(model.seen[-1])[1:] == [*left, "human: fourth"]
    assert texts(await stored(memory)) == texts(result["messages"]) == [*left, "human: fourth", "ai: four"]
    await agent.ainvoke(said("fifth"), THREAD)
    assert texts(model.seen[-1])[1:] == [*left, "human: fourth", "ai: four", "human: fifth"]


async def test_a_state_that_was_emptied_begins_anew(memory: Memory) -> None:
    agent, model, _ = await three_turns(memory, "four")
    emptied = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("fourth")]
    await agent.ainvoke({"messages": emptied}, THREAD)
    assert texts(model.seen[-1])[1:] == ["human: fourth"]
    assert texts(await stored(memory)) == ["human: fourth", "ai: four"]


@pytest.mark.parametrize("at", [0, 2, 4, 5, 6])
async def test_other_words_under_the_same_id_take_their_place(memory: Memory, at: int) -> None:
    agent, model, messages = await three_turns(memory, "four")
    changed = messages[at].model_copy(update={"content": "[redacted]"})
    await agent.aupdate_state(THREAD, {"messages": [changed]})
    result = await agent.ainvoke(said("fourth"), THREAD)
    expected = [*EVERYTHING, "human: fourth"]
    expected[at] = expected[at].partition(" ")[0] + " [redacted]"
    assert texts(model.seen[-1])[1:] == expected
    assert texts(await stored(memory)) == texts(result["messages"]) == [*expected, "ai: four"]
    assert provider_problems(await memory.load_history("t1")) == []
    originals = await memory.read_messages("t1", archived=True)
    assert messages[at].text not in [message.content for message in originals]


async def test_edited_message_sent_again_under_its_id_runs(memory: Memory) -> None:
    agent, model, messages = await three_turns(memory, "better")
    last = next(message for message in reversed(messages) if isinstance(message, HumanMessage))
    result = await agent.ainvoke({"messages": [HumanMessage("third, edited", id=last.id)]}, THREAD)
    assert "human: third" not in texts(model.seen[-1])
    assert "human: third, edited" in texts(model.seen[-1])
    assert texts(await stored(memory)) == texts(result["messages"])


async def checkpoint_with(agent: Any, messages: int) -> Any:
    """The newest checkpoint of the first timeline with so many messages that waits for an input."""
    history = [each async for each in agent.aget_state_history(THREAD)]
    return next(each.config for each in history if len(each.values.get("messages", [])) == messages)


@pytest.mark.parametrize("messages", [0, 2, 6])
async def test_a_run_from_an_earlier_checkpoint_knows_nothing_later(memory: Memory, messages: int) -> None:
    agent, model, _ = await three_turns(memory, "four", "five", "six")
    earlier, latest = await checkpoint_with(agent, messages), await checkpoint_with(agent, 8)
    result = await agent.ainvoke(said("other"), earlier)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING[:messages], "human: other"]
    assert texts(await stored(memory)) == texts(result["messages"])
    await agent.ainvoke(said("goes on"), THREAD)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING[:messages], "human: other", "ai: four", "human: goes on"]
    result = await agent.ainvoke(said("back"), latest)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING, "human: back"]
    assert texts(await stored(memory)) == texts(result["messages"])


async def test_a_run_repeated_from_a_checkpoint_is_kept_once(memory: Memory) -> None:
    """The model is asked again with the same messages."""
    agent, model, _ = await three_turns(memory, "three again")
    result = await agent.ainvoke(None, await checkpoint_with(agent, 7))
    assert texts(model.seen[-1])[1:] == EVERYTHING[:7]
    assert texts(await stored(memory)) == texts(result["messages"]) == [*EVERYTHING[:7], "ai: three again"]


async def test_a_given_up_approval_is_in_no_context(memory: Memory) -> None:
    model = ScriptedModel(answers=["one", calling(("c1", "look", {"n": 1})), "other"])
    approval = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    agent = agent_of(model, ReactorMemoryMiddleware(memory), approval)
    await agent.ainvoke(said("first"), THREAD)
    earlier = await checkpoint_with(agent, 2)
    await agent.ainvoke(said("may you?"), THREAD)
    await agent.ainvoke(said("something else"), earlier)
    assert texts(model.seen[-1])[1:] == ["human: first", "ai: one", "human: something else"]


class Mask(AgentMiddleware[Any, Any, Any]):
    """Masks what the model said, under the id that it has."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"content": last.text.replace("555-0100", "[masked]")})]}


async def test_an_answer_masked_after_it_was_kept_is_kept_masked(memory: Memory) -> None:
    model = ScriptedModel(answers=[calling(("c1", "look", {"n": 1}), text="call 555-0100"), "it is 555-0100"])
    result = await agent_of(model, Mask(), ReactorMemoryMiddleware(memory)).ainvoke(said("who?"), THREAD)
    assert texts(await stored(memory)) == texts(result["messages"])
    assert "555-0100" not in str(await memory.read_messages("t1", archived=True))


async def test_a_new_checkpointer_takes_nothing_back(memory: Memory) -> None:
    """As after a restart with a checkpointer in memory: the session is what is left."""
    await three_turns(memory)
    model = ScriptedModel(answers=["four", "five"])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    for text in ("fourth", "fifth"):
        await agent.ainvoke(said(text), THREAD)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING, "human: fourth", "ai: four", "human: fifth"]


async def test_what_others_say_in_the_session_stays(memory: Memory) -> None:
    agent, model, messages = await three_turns(memory, "four")
    await memory.save_history("t1", [Message.user("from elsewhere"), Message.assistant("noted")])
    await agent.aupdate_state(THREAD, {"messages": [RemoveMessage(id=each.id) for each in messages[:2]]})
    await agent.ainvoke(said("fourth"), THREAD)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING[2:], "human: from elsewhere", "ai: noted", "human: fourth"]


async def test_what_was_withdrawn_by_hand_does_not_come_back(memory: Memory) -> None:
    agent, model, _ = await three_turns(memory, "four")
    await memory.withdraw("t1")
    await memory.erasure.erase("t1", seq=2)
    await agent.ainvoke(said("fourth"), THREAD)
    assert texts(model.seen[-1])[1:] == [EVERYTHING[0], *EVERYTHING[2:7], "human: fourth"]


async def test_a_sub_agent_has_a_session_of_its_own(memory: Memory) -> None:
    inner = ScriptedModel(answers=["the depth is 7", "the depth is 8"])
    sub = create_agent(inner, middleware=[ReactorMemoryMiddleware(memory)], checkpointer=True)

    @tool
    async def ask(question: str) -> str:
        """Ask another agent."""
        return (await sub.ainvoke(said(question)))["messages"][-1].text

    calls = [calling((f"c{n}", "ask", {"question": f"how deep is {n}?"})) for n in (1, 2)]
    model = ScriptedModel(answers=[calls[0], "seven", calls[1], "eight"])
    agent = create_agent(model, [ask], middleware=[ReactorMemoryMiddleware(memory)], checkpointer=InMemorySaver())
    for text in ("ask once", "ask twice"):
        result = await agent.ainvoke(said(text), THREAD)
    assert texts(await stored(memory)) == texts(result["messages"])
    assert "how deep is 1?" not in "".join(texts(model.seen[-1]))
    others = [each.session_id for each in (await memory.list_sessions()).sessions if each.session_id != "t1"]
    kept = {tuple(texts(await stored(memory, session))) for session in others}
    assert kept <= {
        ("human: how deep is 1?", "ai: the depth is 7"),
        ("human: how deep is 2?", "ai: the depth is 8"),
        ("human: how deep is 1?", "ai: the depth is 7", "human: how deep is 2?", "ai: the depth is 8"),
    }
    assert kept


@pytest.mark.parametrize("started", [True, False])
async def test_runs_at_once_keep_each_question_beside_its_answer(started: bool) -> None:
    async with open_memory("memory://") as memory:
        answers: list[Any] = [lambda: AIMessage("so")] * 30
        agent = agent_of(ScriptedModel(answers=["hi", *answers]), ReactorMemoryMiddleware(memory))
        if started:
            await agent.ainvoke(said("hello"), THREAD)
        await asyncio.gather(*(agent.ainvoke(said(f"question {n}"), THREAD) for n in range(6)))
        shown = texts(from_messages((await memory.load_history("t1")).messages))
        assert len(shown) == (14 if started else 12)
        assert {text.partition(":")[0] for text in shown[::2]} == {"human"}
        assert {text.partition(":")[0] for text in shown[1::2]} == {"ai"}
