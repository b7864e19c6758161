"""The middleware in real agents: what the model sees, what is kept, and that it is kept once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from reactor_memory import (
    InvalidInputError,
    Memory,
    Message,
    SessionOwnershipError,
    Settings,
    open_memory,
)
from reactor_memory.adapters.langchain import ReactorMemoryMiddleware, from_messages
from tests.adapters.langchain.conftest import MemoryThread
from tests.adapters.langchain.scripted import ScriptedModel, calling

pytestmark = pytest.mark.anyio

THREAD: Any = {"configurable": {"thread_id": "t1"}}
TWO_CALLS = calling(("c1", "look", {"n": 1}), ("c2", "look", {"n": 2}), text="looking")


@tool
def look(n: int) -> str:
    """Look something up."""
    return f"found {n}"


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def texts(messages: list[BaseMessage] | list[AnyMessage]) -> list[str]:
    return [f"{message.type}: {message.text}" for message in messages]


async def stored(memory: Memory, session_id: str = "t1", user_id: str | None = None) -> list[BaseMessage]:
    return from_messages(await memory.read_messages(session_id, user_id=user_id, last=1000))


def agent_of(model: ScriptedModel, memory: ReactorMemoryMiddleware, *others: Any, saver: Any = None) -> Any:
    return create_agent(
        model, [look], system_prompt="Be brief.", middleware=[*others, memory], checkpointer=saver or InMemorySaver()
    )


WHOLE_TURN = ["human: hello", "ai: looking", "tool: found 1", "tool: found 2", "ai: both found"]


async def test_run_with_parallel_calls_is_kept_as_state_has_it(memory: Memory) -> None:
    model = ScriptedModel(answers=[TWO_CALLS, "both found", "you are welcome"])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    await agent.ainvoke(said("hello"), THREAD)
    assert [texts(messages) for messages in model.seen] == [
        ["system: Be brief.", *WHOLE_TURN[:1]],
        ["system: Be brief.", *WHOLE_TURN[:4]],
    ]
    result = await agent.ainvoke(said("thanks"), THREAD)
    assert texts(model.seen[-1]) == ["system: Be brief.", *WHOLE_TURN, "human: thanks"]
    assert await stored(memory) == result["messages"]
    assert texts(result["messages"]) == [*WHOLE_TURN, "human: thanks", "ai: you are welcome"]


async def test_hints_of_mcp_stand_with_the_calls_that_are_kept(memory: Memory) -> None:
    """As `langchain-mcp-adapters` gives them: in the metadata of a tool."""
    hinted = look.model_copy(update={"metadata": {"readOnlyHint": True, "destructiveHint": None, "title": "Look"}})
    model = ScriptedModel(answers=[TWO_CALLS, "both found", "you are welcome"])
    agent = create_agent(
        model,
        [hinted],
        system_prompt="Be brief.",
        middleware=[ReactorMemoryMiddleware(memory)],
        checkpointer=InMemorySaver(),
    )
    await agent.ainvoke(said("hello"), THREAD)
    result = await agent.ainvoke(said("thanks"), THREAD)
    kept = await memory.read_messages("t1", last=100)
    roles = [message.metadata.get("tool_roles") for message in kept]
    assert roles == [None, {"look": "read"}, *[None] * 5]
    assert (
        texts(await stored(memory))
        == texts(result["messages"])
        == [
            *WHOLE_TURN,
            "human: thanks",
            "ai: you are welcome",
        ]
    )


async def test_an_empty_user_of_the_configuration_is_nobody(memory: Memory) -> None:
    """As LangGraph's server configures it where nobody signed in."""
    agent = agent_of(ScriptedModel(answers=["hi"]), ReactorMemoryMiddleware(memory))
    await agent.ainvoke(said("hello"), {"configurable": {"thread_id": "t1", "user_id": ""}})
    assert texts(await stored(memory)) == ["human: hello", "ai: hi"]


async def test_without_a_checkpointer_the_session_is_the_memory(memory: Memory) -> None:
    model = ScriptedModel(answers=["hi", "again"])
    agent = create_agent(model, middleware=[ReactorMemoryMiddleware(memory, session_id="s")])
    await agent.ainvoke(said("one"))
    await agent.ainvoke(said("two"))
    assert texts(model.seen[-1]) == ["human: one", "ai: hi", "human: two"]
    assert texts(await stored(memory, "s")) == ["human: one", "ai: hi", "human: two", "ai: again"]


async def test_of_a_history_sent_along_only_new_messages_are_kept(memory: Memory) -> None:
    model = ScriptedModel(answers=["hi", "again"])
    agent = create_agent(model, middleware=[ReactorMemoryMiddleware(memory, session_id="s")])
    first = await agent.ainvoke(said("one"))
    sent = [message.model_copy(update={"id": None}) for message in first["messages"]]
    await agent.ainvoke({"messages": [*sent, HumanMessage("two"), HumanMessage("and three")]})
    assert texts(model.seen[-1]) == ["human: one", "ai: hi", "human: two", "human: and three"]
    assert texts(await stored(memory, "s")) == ["human: one", "ai: hi", "human: two", "human: and three", "ai: again"]


@pytest.mark.blocking
async def test_beyond_window_model_sees_memory_and_the_state_keeps_everything() -> None:
    settings = Settings(
        store={"url": "memory://"},  # pyright: ignore
        summary={"enabled": True, "trigger_message_count": 10, "recent_message_count": 4, "segment_message_count": 4},  # pyright: ignore
    )
    async with open_memory(settings) as memory:
        model = ScriptedModel(answers=[f"noted {n}" for n in range(30)])
        agent = agent_of(model, ReactorMemoryMiddleware(memory))
        await agent.ainvoke(said("My order number is 4711."), THREAD)
        for n in range(14):
            result = await agent.ainvoke(said(f"question {n}"), THREAD)
            await memory.drain()
        assert len(result["messages"]) == 30
        shown = model.seen[-1]
        assert len(shown) < 14
        assert isinstance(shown[1], SystemMessage)
        assert "4711" in shown[1].text
        assert texts(shown)[-1] == "human: question 13"


@pytest.mark.blocking
async def test_the_system_prompt_and_the_tools_are_counted() -> None:
    settings = Settings(store={"url": "memory://"}, context={"max_tokens": 400, "reserved_output_tokens": 100})  # pyright: ignore
    async with open_memory(settings) as memory:
        await memory.save_history("t1", [Message.user("word " * 20), Message.assistant("word " * 20)] * 4)

        async def seen(system: str) -> int:
            model = ScriptedModel(answers=["ok"])
            middleware = ReactorMemoryMiddleware(memory, session_id="t1")
            await create_agent(model, [look], system_prompt=system, middleware=[middleware]).ainvoke(said("now"))
            return len(model.seen[-1])

        assert await seen("rule " * 150) < await seen("rule")


async def test_an_explicit_budget_is_kept_and_the_turn_stays(memory: Memory) -> None:
    await memory.save_history("t1", [Message.user("word " * 90), Message.assistant("word " * 90)] * 4)
    model = ScriptedModel(answers=[TWO_CALLS, "done"])
    await agent_of(model, ReactorMemoryMiddleware(memory, budget=100)).ainvoke(said("hello"), THREAD)
    instructions, *older = texts(model.seen[-1])
    assert instructions == "system: Be brief."
    assert older[-4:] == WHOLE_TURN[:4]


class TestOnce:
    """However often something is tried again, a message is kept once."""

    async def test_a_retried_call_of_the_model(self, memory: Memory) -> None:
        model = ScriptedModel(answers=[TWO_CALLS, RuntimeError("down"), RuntimeError("down"), "both found"])
        retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)
        await agent_of(model, ReactorMemoryMiddleware(memory), retry).ainvoke(said("hello"), THREAD)
        inside = agent_of(ScriptedModel(answers=[RuntimeError("down"), "ok"]), ReactorMemoryMiddleware(memory))
        inside = create_agent(
            ScriptedModel(answers=[RuntimeError("down"), "ok"]),
            middleware=[ReactorMemoryMiddleware(memory, session_id="t2"), retry],
        )
        await inside.ainvoke(said("hello"))
        assert [texts(messages) for messages in model.seen[1:]] == [["system: Be brief.", *WHOLE_TURN[:4]]] * 3
        assert texts(await stored(memory)) == WHOLE_TURN
        assert texts(await stored(memory, "t2")) == ["human: hello", "ai: ok"]

    async def test_a_failed_run_that_is_resumed_from_its_checkpoint(self, memory: Memory) -> None:
        model = ScriptedModel(answers=[TWO_CALLS, RuntimeError("down"), "both found"])
        agent = agent_of(model, ReactorMemoryMiddleware(memory))
        with pytest.raises(RuntimeError, match="down"):
            await agent.ainvoke(said("hello"), THREAD)
        await agent.ainvoke(None, THREAD)
        assert texts(await stored(memory)) == WHOLE_TURN

    async def test_a_failed_run_that_the_next_input_follows(self, memory: Memory) -> None:
        model = ScriptedModel(answers=[RuntimeError("down"), "better", "fine"])
        agent = agent_of(model, ReactorMemoryMiddleware(memory))
        with pytest.raises(RuntimeError, match="down"):
            await agent.ainvoke(said("one"), THREAD)
        await agent.ainvoke(said("two"), THREAD)
        result = await agent.ainvoke(said("three"), THREAD)
        everything = ["human: one", "human: two", "ai: better", "human: three", "ai: fine"]
        assert texts(model.seen[-1]) == ["system: Be brief.", *everything[:4]]
        assert texts(await stored(memory)) == texts(result["messages"]) == everything

    @pytest.mark.parametrize("crash_at", [1, 2, 3, 4])
    async def test_a_crash_between_the_save_and_the_checkpoint(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch, crash_at: int
    ) -> None:
        model = ScriptedModel(answers=[TWO_CALLS, "both found"])
        middleware = ReactorMemoryMiddleware(memory)
        agent = agent_of(model, middleware)
        save, saved = memory.save_history, list[int]()

        async def save_and_crash(*arguments: Any, **fields: Any) -> Any:
            appended = await save(*arguments, **fields)
            saved.append(1)
            if len(saved) == crash_at:
                raise ConnectionAbortedError
            return appended

        monkeypatch.setattr(memory, "save_history", save_and_crash)
        with pytest.raises(ConnectionAbortedError):
            await agent.ainvoke(said("hello"), THREAD)
        monkeypatch.undo()
        assert texts(await stored(memory)) == WHOLE_TURN[: (0, 1, 2, 4, 5)[crash_at]]
        await agent.ainvoke(None, THREAD)
        assert texts(await stored(memory)) == WHOLE_TURN

    async def test_a_save_that_stopped_half_way(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        agent = agent_of(ScriptedModel(answers=[TWO_CALLS, "both found"]), ReactorMemoryMiddleware(memory))
        save, calls = memory.save_history, list[int]()

        async def stops(*arguments: Any, **fields: Any) -> Any:
            calls.append(1)
            if len(calls) == 3:
                raise ConnectionError
            return await save(*arguments, **fields)

        monkeypatch.setattr(memory, "save_history", stops)
        with pytest.raises(ConnectionError):
            await agent.ainvoke(said("hello"), THREAD)
        assert texts(await stored(memory)) == WHOLE_TURN[:2]
        await agent.ainvoke(None, THREAD)
        assert texts(await stored(memory)) == WHOLE_TURN

    async def test_a_run_that_waits_for_a_person(self, memory: Memory) -> None:
        model = ScriptedModel(answers=[calling(("c1", "look", {"n": 1}), text="may I"), "found it"])
        approval = HumanInTheLoopMiddleware(interrupt_on={"look": True})
        agent = agent_of(model, ReactorMemoryMiddleware(memory), approval)
        await agent.ainvoke(said("hello"), THREAD)
        assert texts(await stored(memory)) == ["human: hello", "ai: may I"]
        result = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
        assert texts(await stored(memory)) == texts(result["messages"])
        assert len(result["messages"]) == 4


class Reminder(AgentMiddleware[Any, Any, Any]):
    """Says something in the name of the user in the middle of a run."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [HumanMessage("remember the rules")]}
        return None


async def test_user_message_in_the_middle_of_a_run_hides_nothing(memory: Memory) -> None:
    model = ScriptedModel(answers=[TWO_CALLS, "both found"])
    result = await agent_of(model, ReactorMemoryMiddleware(memory), Reminder()).ainvoke(said("hello"), THREAD)
    assert texts(model.seen[-1]) == ["system: Be brief.", *WHOLE_TURN[:4], "human: remember the rules"]
    assert texts(await stored(memory)) == texts(result["messages"])


class Critic(AgentMiddleware[Any, Any, Any]):
    """Sends the model back to work when the run was about to end."""

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "model"} if state["messages"][-1].text == "draft" else None


async def test_run_that_is_sent_back_to_model_shows_nothing_twice(memory: Memory) -> None:
    model = ScriptedModel(answers=["draft", "final"])
    result = await agent_of(model, ReactorMemoryMiddleware(memory), Critic()).ainvoke(said("hello"), THREAD)
    assert texts(model.seen[-1]) == ["system: Be brief.", "human: hello", "ai: draft"]
    assert texts(await stored(memory)) == texts(result["messages"]) == ["human: hello", "ai: draft", "ai: final"]


class Weather(BaseModel):
    """An answer in a form."""

    degrees: int


async def test_an_answer_in_a_form_is_kept_with_its_call(memory: Memory) -> None:
    model = ScriptedModel(answers=[calling(("c1", "Weather", {"degrees": 7})), "bye"])
    agent = create_agent(
        model,
        middleware=[ReactorMemoryMiddleware(memory)],
        response_format=ToolStrategy(Weather),
        checkpointer=InMemorySaver(),
    )
    result = await agent.ainvoke(said("how warm is it?"), THREAD)
    assert result["structured_response"] == Weather(degrees=7)
    assert [message.type for message in await stored(memory)] == ["human", "ai", "tool"]
    assert texts(await stored(memory)) == texts(result["messages"])


async def test_answer_that_model_wrote_badly_is_kept_with_its_repair(memory: Memory) -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"id": "c1", "name": "look", "args": "{", "error": "?", "type": "invalid_tool_call"}]
    )
    model = ScriptedModel(answers=[broken, "sorry"])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    await agent.ainvoke(said("hello"), THREAD)
    result = await agent.ainvoke(said("what?"), THREAD)
    assert [message.type for message in result["messages"]] == [m.type for m in await stored(memory)]


async def test_calls_and_results_that_are_content_blocks_come_through(memory: Memory) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}
    asked = HumanMessage([{"type": "text", "text": "what is this?"}, image], name="ann", id="h1")
    answer = AIMessage(
        [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "a cat"}],
        additional_kwargs={"signature": "x"},
        response_metadata={"model": "m"},
        id="a1",
    )
    model = ScriptedModel(answers=[answer, "ok"])
    agent = agent_of(model, ReactorMemoryMiddleware(memory))
    await agent.ainvoke({"messages": [asked]}, THREAD)
    result = await agent.ainvoke(said("sure?"), THREAD)
    assert model.seen[-1][1:] == result["messages"][:-1]
    assert model.seen[-1][1] == asked


class TestWhoseSession:
    async def test_a_user_of_the_configuration_owns_the_session(self, memory: Memory) -> None:
        agent = agent_of(ScriptedModel(answers=["hi", "no"]), ReactorMemoryMiddleware(memory))
        await agent.ainvoke(said("hello"), {"configurable": {"thread_id": "t1", "user_id": "ann"}})
        assert texts(await stored(memory, user_id="ann")) == ["human: hello", "ai: hi"]
        with pytest.raises(SessionOwnershipError):
            await agent.ainvoke(said("hello"), {"configurable": {"thread_id": "t1", "user_id": "bob"}})

    async def test_the_context_of_the_run_comes_before_the_configuration(self, memory: Memory) -> None:
        @dataclass
        class Who:
            session_id: str
            user_id: str

        agent = create_agent(
            ScriptedModel(answers=["hi"]), middleware=[ReactorMemoryMiddleware(memory)], context_schema=Who
        )
        await agent.ainvoke(said("hello"), THREAD, context=Who("s9", "ann"))
        assert len(await stored(memory, "s9", "ann")) == 2

    async def test_a_bound_user_wins(self, memory: Memory) -> None:
        agent = agent_of(ScriptedModel(answers=["hi"]), ReactorMemoryMiddleware(memory, user_id="ann"))
        await agent.ainvoke(said("hello"), {"configurable": {"thread_id": "t1", "user_id": "bob"}})
        assert len(await stored(memory, user_id="ann")) == 2

    async def test_a_run_without_a_session_is_refused(self, memory: Memory) -> None:
        agent = create_agent(ScriptedModel(answers=["hi"]), middleware=[ReactorMemoryMiddleware(memory)])
        with pytest.raises(InvalidInputError, match="thread_id"):
            await agent.ainvoke(said("hello"))


class TestSynchronously:
    def test_an_agent_on_a_thread_of_its_own(self, memory_thread: MemoryThread) -> None:
        model = ScriptedModel(answers=[TWO_CALLS, "both found", "bye"])
        middleware = ReactorMemoryMiddleware(memory_thread.memory)
        agent = agent_of(model, middleware)
        agent.invoke(said("hello"), THREAD)
        result = agent.invoke(said("thanks"), THREAD)
        assert texts(model.seen[-1]) == ["system: Be brief.", *WHOLE_TURN, "human: thanks"]
        assert memory_thread.run(stored(memory_thread.memory)) == result["messages"]

    @pytest.mark.blocking
    async def test_inside_a_running_loop_with_the_memory_on_another(self, memory_thread: MemoryThread) -> None:
        middleware = ReactorMemoryMiddleware(memory_thread.memory)
        agent = agent_of(ScriptedModel(answers=["hi", "again"]), middleware)
        agent.invoke(said("hello"), THREAD)
        result = await agent.ainvoke(said("more"), THREAD)
        assert memory_thread.run(stored(memory_thread.memory)) == result["messages"]

    async def test_on_loop_of_memory_it_says_so_instead_of_hanging(self, memory: Memory) -> None:
        agent = agent_of(ScriptedModel(answers=["hi"]), ReactorMemoryMiddleware(memory))
        with pytest.raises(InvalidInputError, match="async methods"):
            agent.invoke(said("hello"), THREAD)


async def test_runs_of_many_threads_do_not_mix(memory: Memory) -> None:
    agent = agent_of(ScriptedModel(answers=["ok"] * 20), ReactorMemoryMiddleware(memory))

    async def run(n: int) -> None:
        for turn in range(2):
            await agent.ainvoke(said(f"{n}/{turn}"), {"configurable": {"thread_id": f"t{n}"}})

    await asyncio.gather(*(run(n) for n in range(10)))
    for n in range(10):
        assert texts(await stored(memory, f"t{n}")) == [f"human: {n}/0", "ai: ok", f"human: {n}/1", "ai: ok"]


HOSTILE_OUTPUTS = {
    "NUL": "a\0b" * 10,
    "half a character": "x\ud800y",
    "NUL in a long text": "x" * 20_000 + "\0" + "y" * 20_000,
    "five megabytes": "line of a log\n" * 400_000,
    "five megabytes with both": "a\0b\ud800 " * 900_000,
}


@pytest.mark.parametrize(
    "output", [pytest.param(each, marks=[pytest.mark.slow] if "mega" in each else []) for each in HOSTILE_OUTPUTS]
)
async def test_whatever_a_tool_says_the_run_goes_on(memory: Memory, output: str) -> None:
    given = HOSTILE_OUTPUTS[output]

    @tool
    def dump() -> str:
        """Dump it."""
        return given

    first, second = (calling((f"c{number}", "dump", {}), text="") for number in range(2))
    model = ScriptedModel(answers=[first, "seen", second, "again"])
    agent = create_agent(
        model, [dump], middleware=[ReactorMemoryMiddleware(memory, budget=4000)], checkpointer=InMemorySaver()
    )
    for words in ("dump it", "once more"):
        result = await agent.ainvoke(said(words), THREAD)
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"] * 2
    kept = await memory.read_messages("t1", last=1000)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "assistant"] * 2
    for message in kept[2::4]:
        assert message.content.startswith(given[:1])
        assert "\0" not in message.content
        assert ("limits.max_content_bytes" in message.content) == ("mega" in output)
    assert [message.type for message in model.seen[-1]][-3:] == ["human", "ai", "tool"]
