"""The session of a thread is what its state is: step by step, and after deletions, edits and runs from checkpoints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
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


class Waiting(AgentMiddleware[Any, Any, Any]):
    """Waits before and after each call of the model for those whose turn it is."""

    def __init__(self, order: list[str], name: str, turns: asyncio.Condition) -> None:
        super().__init__()
        self._order = order
        self._name = name
        self._turns = turns

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        async with self._turns:
            await self._turns.wait_for(lambda: self._order[0] == self._name)
            answer = await handler(request)
            self._order.pop(0)
            self._turns.notify_all()
        return answer


class Late(ReactorMemoryMiddleware):
    """Comes to the memory after others have gone on, with the state that it was given."""

    def __init__(self, memory: Memory, waits_for: asyncio.Event, begun: asyncio.Event) -> None:
        super().__init__(memory)
        self._waits_for = waits_for
        self._begun = begun

    async def _follow(self, state: Any, scope: Any, *, begins: bool = False, loaded_at: int | None = None) -> None:
        if begins:
            self._begun.set()
            await self._waits_for.wait()
        await super()._follow(state, scope, begins=begins, loaded_at=loaded_at)


@pytest.mark.parametrize("calls", [0, 1])
async def test_an_answer_stored_before_a_run_first_asks_stays(memory: Memory, calls: int) -> None:
    """The run was given its state before that, so that it cannot have removed the answer."""
    saver, asked, go_on, late, ended = InMemorySaver(), *(asyncio.Event() for _ in range(4))
    await agent_in(memory, saver, "hi").ainvoke(said("hello"), THREAD)

    class Holding(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            asked.set()
            await go_on.wait()
            return await handler(request)

    answers = [*(calling((f"c{n}", "look", {"n": n})) for n in range(calls)), "answer a"]
    first = agent_in(memory, saver, *answers, more=[Holding()])
    second = create_agent(
        ScriptedModel(answers=["answer b", "so"]), [look], middleware=[Late(memory, ended, late)], checkpointer=saver
    )
    with anyio.fail_after(60):
        one = asyncio.ensure_future(first.ainvoke(said("question a"), THREAD))
        await asked.wait()
        two = asyncio.ensure_future(second.ainvoke(said("question b"), THREAD))
        await late.wait()
        go_on.set()
        await one
        ended.set()
        await two
    between = ["ai: ", "tool: found 0"] * calls
    expected = ["human: question a", *between, "ai: answer a", "human: question b", "ai: answer b"]
    assert texts(from_messages((await memory.load_history("t1")).messages))[2:] == expected
    await second.ainvoke(said("and now?"), THREAD)
    assert texts(from_messages((await memory.load_history("t1")).messages))[2:-2] == expected


class Seeing(AgentMiddleware[Any, Any, Any]):
    """Notes what the model is asked."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self._seen = seen

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self._seen.append(request.messages)
        return await handler(request)


def agent_in(memory: Memory, saver: InMemorySaver, *answers: Any, more: Any = ()) -> Any:
    parts: list[Any] = [ReactorMemoryMiddleware(memory, budget=8000), *more]
    return create_agent(ScriptedModel(answers=list(answers)), [look], middleware=parts, checkpointer=saver)


ORDERS = ["abab", "abba", "aabb", "baab", "bbaa", "baba"]


@pytest.mark.parametrize("order", ORDERS)
async def test_runs_of_two_processes_keep_questions_beside_answers(tmp_path: Path, order: str) -> None:
    """Both begin before a model is asked; then models are asked in this order."""
    url, saver, turns = f"sqlite:///{tmp_path / 'memory.db'}", InMemorySaver(), asyncio.Condition()
    left = list(order)

    async def run(memory: Memory, name: str, n: int) -> None:
        answers = calling((f"c{name}", "look", {"n": n})), f"answer {name}"
        agent = agent_in(memory, saver, *answers, more=[Waiting(left, name, turns)])
        await agent.ainvoke(said(f"question {name}"), THREAD)

    async with open_memory(url) as one, open_memory(url) as two:
        await agent_in(one, saver, "hi").ainvoke(said("hello"), THREAD)
        with anyio.fail_after(30):
            await asyncio.gather(run(one, "a", 0), run(two, "b", 1))
        seen: list[Any] = []
        after = agent_in(two, saver, "so", "well", more=[Seeing(seen)])
        for text in ("and now?", "then?"):
            await after.ainvoke(said(text), THREAD)
        for shown in map(texts, seen):
            for n, name in enumerate("ab"):
                at = shown.index(f"human: question {name}")
                assert shown[at : at + 4] == [
                    f"human: question {name}", "ai: ", f"tool: found {n}", f"ai: answer {name}"
                ]  # fmt: skip
            assert sum("question" in text for text in shown) == 2
        assert provider_problems(await one.load_history("t1")) == []


async def test_what_another_process_kept_is_taken_back_here(tmp_path: Path) -> None:
    url, saver = f"sqlite:///{tmp_path / 'memory.db'}", InMemorySaver()
    async with open_memory(url) as one, open_memory(url) as two:
        memories = [one, two]

        async def run(text: str, at: int, *removed: Any) -> tuple[list[str], Any]:
            asked: list[Any] = []
            agent = agent_in(memories[at], saver, f"re: {text}", more=[Seeing(asked)])
            result = await agent.ainvoke({"messages": [*removed, HumanMessage(text)]}, THREAD)
            return texts(asked[0]), result["messages"]

        await run("first", 0)
        _, messages = await run("second", 1)
        seen, messages = await run("third", 0, *(RemoveMessage(id=each.id) for each in messages[2:4]))
        assert seen[-3:] == ["human: first", "ai: re: first", "human: third"]
        assert "second" not in str(seen)
        seen, _ = await run("fourth", 1, RemoveMessage(id=messages[-1].id))
        assert texts(await stored(one)) == [
            "human: first", "ai: re: first", "human: third", "human: fourth", "ai: re: fourth"
        ]  # fmt: skip


async def test_a_state_that_was_set_back_is_followed(memory: Memory) -> None:
    agent, model, _ = await three_turns(memory, "four", "five")
    await agent.aupdate_state(await checkpoint_with(agent, 2), {"messages": [AIMessage("one more")]})
    await agent.ainvoke(said("fourth"), THREAD)
    assert texts(model.seen[-1])[1:] == [*EVERYTHING[:2], "ai: one more", "human: fourth"]
    await agent.ainvoke(said("fifth"), THREAD)
    assert texts(await stored(memory)) == [
        *EVERYTHING[:2], "ai: one more", "human: fourth", "ai: four", "human: fifth", "ai: five"
    ]  # fmt: skip


async def test_arguments_changed_under_an_id_take_their_place(memory: Memory) -> None:
    agent, model, messages = await three_turns(memory, "four")
    call = messages[3].tool_calls[0] | {"args": {"n": 777}}
    await agent.aupdate_state(THREAD, {"messages": [messages[3].model_copy(update={"tool_calls": [call]})]})
    await agent.ainvoke(said("fourth"), THREAD)
    called = [call["args"] for message in model.seen[-1] for call in getattr(message, "tool_calls", ())]
    assert called == [{"n": 777}]
    assert texts(model.seen[-1])[1:] == [*EVERYTHING, "human: fourth"]


async def test_of_calls_at_once_a_result_may_be_masked(memory: Memory) -> None:
    model = ScriptedModel(answers=[TWO_CALLS, "both", "next"])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    messages = (await agent.ainvoke(said("two"), THREAD))["messages"]
    masked = messages[2].model_copy(update={"content": "[masked]"})
    await agent.aupdate_state(THREAD, {"messages": [masked, RemoveMessage(id=messages[-1].id)]})
    await agent.ainvoke(said("and?"), THREAD)
    assert messages[2].text not in str(model.seen[-1])
    assert [text.partition(":")[0] for text in texts(model.seen[-1])][-5:] == ["human", "ai", "tool", "tool", "human"]


@pytest.mark.parametrize("keeps", [True, None])
async def test_sub_agents_at_once_leave_the_conversation_alone(memory: Memory, keeps: bool | None) -> None:
    sub = agent_in(memory, keeps, *(f"inner {n}" for n in range(4)))  # type: ignore[arg-type]

    @tool
    async def ask(question: str) -> str:
        """Ask another agent."""
        return (await sub.ainvoke(said(question)))["messages"][-1].text

    asked = calling(*((f"c{n}", "ask", {"question": f"secret {n}?"}) for n in range(3)))
    model = ScriptedModel(answers=[asked, "done", "again"])
    parts = [ReactorMemoryMiddleware(memory)]
    agent = create_agent(model, [ask], middleware=parts, checkpointer=InMemorySaver())
    await agent.ainvoke(said("ask three"), THREAD)
    await agent.ainvoke(said("and now?"), THREAD)
    roles = [text.partition(":")[0] for text in texts(await stored(memory))]
    assert roles == ["human", "ai", "tool", "tool", "tool", "ai", "human", "ai"]
    assert "human: secret" not in str(texts(model.seen[-1]))
