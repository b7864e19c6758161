"""The chat history: sync and async, in the runnables of LangChain, and its frozen view."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from reactor_memory import InvalidInputError, Memory, Message, SessionOwnershipError
from reactor_memory.adapters.langchain import ReactorMemoryChatHistory, from_messages
from tests.adapters.langchain.conftest import MemoryThread

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*(RunnableWithMessageHistory|ChatMessageHistory|WindowMemory).*"),
]


def texts(messages: list[BaseMessage]) -> list[str]:
    return [f"{message.type}: {message.text}" for message in messages]


async def stored(memory: Memory, session_id: str = "s") -> list[str]:
    return texts(from_messages(await memory.read_messages(session_id, last=100)))


async def test_what_is_added_comes_back_as_it_was(memory: Memory) -> None:
    history = ReactorMemoryChatHistory(memory, "s")
    assert await history.aget_messages() == []
    call: Any = {"name": "look", "args": {"n": 1}, "id": "c1", "type": "tool_call"}
    turn = [
        HumanMessage("hi", id="h1", additional_kwargs={"k": 1}),
        AIMessage("", tool_calls=[call]),
        ToolMessage("found", tool_call_id="c1"),
        AIMessage([{"type": "text", "text": "done"}], response_metadata={"model": "m"}),
    ]
    await history.aadd_messages(turn)
    assert await history.aget_messages() == turn


async def test_nothing_to_add_is_no_fault(memory: Memory) -> None:
    await ReactorMemoryChatHistory(memory, "s").aadd_messages([])
    assert await stored(memory) == []


async def test_the_view_is_the_callers_own_list(memory: Memory) -> None:
    history = ReactorMemoryChatHistory(memory, "s")
    (await history.aget_messages()).append(HumanMessage("x"))
    assert await history.aget_messages() == []


async def test_the_view_is_frozen_until_this_object_adds(memory: Memory) -> None:
    history = ReactorMemoryChatHistory(memory, "s")
    assert await history.aget_messages() == []
    await memory.save_history("s", [Message.user("from elsewhere")])
    assert await history.aget_messages() == []
    await history.aadd_messages([AIMessage("mine")])
    assert texts(await history.aget_messages()) == ["human: from elsewhere", "ai: mine"]


async def test_the_view_is_the_context_within_its_budget(memory: Memory) -> None:
    await memory.save_history("s", [Message.user("word " * 50), Message.assistant("short")] * 5)
    whole = await ReactorMemoryChatHistory(memory, "s").aget_messages()
    tight = await ReactorMemoryChatHistory(memory, "s", budget=150).aget_messages()
    assert len(whole) == 10
    assert 0 < len(tight) < 10


async def test_others_are_refused(memory: Memory) -> None:
    await ReactorMemoryChatHistory(memory, "s", user_id="ann").aadd_messages([HumanMessage("mine")])
    for user_id in ("bob", None):
        with pytest.raises(SessionOwnershipError):
            await ReactorMemoryChatHistory(memory, "s", user_id=user_id).aget_messages()


async def test_clear_archives_what_there_is_and_the_session_goes_on(memory: Memory) -> None:
    history = ReactorMemoryChatHistory(memory, "s")
    await history.aclear()
    await history.aadd_messages([HumanMessage("hi"), AIMessage("hello")])
    await history.aget_messages()
    await history.aclear()
    await history.aclear()
    assert await history.aget_messages() == []
    await history.aadd_messages([HumanMessage("again")])
    assert texts(await history.aget_messages()) == ["human: again"]
    assert [message.seq for message in await memory.read_messages("s")] == [3]
    log = await memory.read_messages("s", archived=True)
    assert [message.content for message in log] == ["hi", "hello", "again"]
    assert await memory.restore("s") == 2
    assert texts(await ReactorMemoryChatHistory(memory, "s").aget_messages())[0] == "human: hi"


async def test_a_fork_is_not_cleared(memory: Memory) -> None:
    await ReactorMemoryChatHistory(memory, "s").aadd_messages([HumanMessage("shared")])
    fork = await memory.fork("s", at_seq=2)
    with pytest.raises(InvalidInputError, match="fork"):
        await ReactorMemoryChatHistory(memory, fork.session_id).aclear()
    assert len(await memory.read_messages("s")) == 1


async def test_only_its_owner_clears_a_session(memory: Memory) -> None:
    await ReactorMemoryChatHistory(memory, "s", user_id="ann").aadd_messages([HumanMessage("mine")])
    with pytest.raises(SessionOwnershipError):
        await ReactorMemoryChatHistory(memory, "s", user_id="bob").aclear()


def test_synchronously(memory_thread: MemoryThread) -> None:
    history = ReactorMemoryChatHistory(memory_thread.memory, "s")
    history.add_user_message("hi")
    history.add_ai_message("hello")
    assert texts(history.messages) == ["human: hi", "ai: hello"]
    history.clear()
    assert history.messages == []


async def test_synchronous_calls_refuse_to_block_the_loop_of_the_memory(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="async methods"):
        _ = ReactorMemoryChatHistory(memory, "s").messages


class TestRunnableWithMessageHistory:
    """It takes the length of the view for what need not be stored again (the three cases that went wrong elsewhere)."""

    BEFORE = (Message.user("q1"), Message.assistant("a1"), Message.user("q2"), Message.assistant("a2"))
    KEPT = ("human: q1", "ai: a1", "human: q2", "ai: a2")

    @pytest.fixture(autouse=True)
    def quiet(self) -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def remembering(self, runnable: Any, memory: Memory, budget: int | None = None, **keys: str) -> Any:
        from langchain_core.runnables.history import RunnableWithMessageHistory

        return RunnableWithMessageHistory(
            runnable, lambda session_id: ReactorMemoryChatHistory(memory, session_id, budget=budget), **keys
        )

    CONFIG: Any = {"configurable": {"session_id": "s"}}

    async def test_the_session_shrinks_meanwhile(self, memory: Memory) -> None:
        await memory.save_history("s", self.BEFORE)

        async def model(messages: list[BaseMessage]) -> AIMessage:
            await memory.withdraw("s")
            await memory.withdraw("s")
            return AIMessage("answer")

        await self.remembering(RunnableLambda(model), memory).ainvoke([HumanMessage("NEW")], self.CONFIG)
        assert await stored(memory) == [*self.KEPT[:2], "human: NEW", "ai: answer"]

    async def test_the_session_grows_meanwhile(self, memory: Memory) -> None:
        await memory.save_history("s", self.BEFORE)

        async def model(messages: list[BaseMessage]) -> AIMessage:
            await memory.save_history("s", [Message.user("other"), Message.assistant("writer")])
            return AIMessage("answer")

        await self.remembering(RunnableLambda(model), memory).ainvoke([HumanMessage("NEW")], self.CONFIG)
        assert await stored(memory) == [*self.KEPT, "human: other", "ai: writer", "human: NEW", "ai: answer"]

    async def test_with_a_key_of_its_own_for_the_history(self, memory: Memory) -> None:
        await memory.save_history("s", self.BEFORE)
        seen = list[list[str]]()

        async def model(prompt: Any) -> AIMessage:
            seen.append(texts(prompt.to_messages()))
            await memory.save_history("s", [Message.user("other")])
            return AIMessage("answer")

        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
        chain = self.remembering(
            prompt | RunnableLambda(model), memory, input_messages_key="question", history_messages_key="history"
        )
        await chain.ainvoke({"question": "NEW"}, self.CONFIG)
        assert seen == [[*self.KEPT, "human: NEW"]]
        assert await stored(memory) == [*self.KEPT, "human: other", "human: NEW", "ai: answer"]

    async def test_a_view_that_is_shorter_than_the_session(self, memory: Memory) -> None:
        await memory.save_history("s", [Message.user("word " * 50), Message.assistant("short")] * 3)

        async def model(messages: list[BaseMessage]) -> AIMessage:
            return AIMessage("answer")

        chain = self.remembering(RunnableLambda(model), memory, budget=130)
        await chain.ainvoke([HumanMessage("NEW")], self.CONFIG)
        await chain.ainvoke([HumanMessage("NEXT")], self.CONFIG)
        assert (await stored(memory))[6:] == ["human: NEW", "ai: answer", "human: NEXT", "ai: answer"]

    def test_synchronously(self, memory_thread: MemoryThread) -> None:
        from langchain_core.runnables.history import RunnableWithMessageHistory

        memory = memory_thread.memory
        chain = RunnableWithMessageHistory(
            RunnableLambda(lambda messages: AIMessage(f"{len(messages)} seen")),  # pyright: ignore
            lambda session_id: ReactorMemoryChatHistory(memory, session_id),
        )
        chain.invoke([HumanMessage("one")], self.CONFIG)
        chain.invoke([HumanMessage("two")], self.CONFIG)
        assert memory_thread.run(stored(memory)) == ["human: one", "ai: 1 seen", "human: two", "ai: 3 seen"]


class TestWindowMemory:
    """As the memory of chains and executors of before: the newest `k` turns of what this history shows."""

    def window(self, history: ReactorMemoryChatHistory) -> Any:
        from langchain_classic.memory import ConversationBufferWindowMemory

        return ConversationBufferWindowMemory(
            chat_memory=history, k=1, return_messages=True, memory_key="chat_history", input_key="input"
        )

    SAVED = ("human: one", "ai: first", "human: two", "ai: second")

    async def test_asynchronously(self, memory: Memory) -> None:
        window = self.window(ReactorMemoryChatHistory(memory, "s"))
        await window.asave_context({"input": "one"}, {"output": "first"})
        await window.asave_context({"input": "two"}, {"output": "second"})
        shown = await window.aload_memory_variables({})
        assert texts(shown["chat_history"]) == [*self.SAVED[2:]]
        assert await stored(memory) == [*self.SAVED]

    def test_synchronously(self, memory_thread: MemoryThread) -> None:
        window = self.window(ReactorMemoryChatHistory(memory_thread.memory, "s"))
        window.save_context({"input": "one"}, {"output": "first"})
        window.save_context({"input": "two"}, {"output": "second"})
        assert texts(window.load_memory_variables({})["chat_history"]) == [*self.SAVED[2:]]
        assert memory_thread.run(stored(memory_thread.memory)) == [*self.SAVED]
        window.clear()
        assert window.load_memory_variables({})["chat_history"] == []
