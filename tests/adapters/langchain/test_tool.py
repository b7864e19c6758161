"""The tool for notes passes LangChain's own suites, and agents keep notes with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from reactor_memory import Memory, open_memory
from reactor_memory.adapters.langchain import LongTermMemoryTool
from tests.adapters.langchain.conftest import MemoryThread, memory_on_a_thread
from tests.adapters.langchain.scripted import ScriptedModel, calling

NAME = "manage_long_term_memory"


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryThread]:
    with memory_on_a_thread() as memory:
        yield memory


def tool_of(memory: MemoryThread) -> LongTermMemoryTool:
    return LongTermMemoryTool(memory.memory, "ann", "desk")


class Suite:
    """What LangChain's suites ask about the tool."""

    memory: MemoryThread

    @pytest.fixture(autouse=True)
    def opened(self, memory: MemoryThread) -> None:
        Suite.memory = memory

    @pytest.fixture
    def tool(self, memory: MemoryThread) -> BaseTool:
        return tool_of(memory)

    @property
    def tool_constructor(self) -> Any:
        return LongTermMemoryTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": Suite.memory.memory, "user_id": "ann", "agent_name": "desk"}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"operation": "append", "content": "likes tea"}


class TestUnit(Suite, ToolsUnitTests):
    pass


@pytest.mark.anyio
class TestIntegration(Suite, ToolsIntegrationTests):
    pass


def test_model_is_told_what_the_library_says_and_no_user(memory: MemoryThread) -> None:
    bound = memory.memory.notes.tool("ann", "desk")
    declared = convert_to_openai_tool(tool_of(memory))["function"]
    assert (declared["name"], declared["description"]) == (NAME, bound.description)
    assert declared["parameters"]["properties"] == bound.input_schema["properties"]
    assert declared["parameters"].get("required", []) == []
    assert "ann" not in str(declared)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"operation": "burn"}, "Error: unknown operation"),
        ({"operation": ["read"]}, "Error: operation"),
        ({"operation": "append"}, "Error: content"),
        ({"operation": "append", "content": None, "section_header": None}, "Error: content"),
        ({"operation": "delete_section_by_header", "section_header": "Nope"}, "Error: no section"),
        ({}, "(There are no notes yet.)"),
    ],
)
def test_what_the_model_gave_wrongly_is_answered_and_not_raised(
    memory_thread: MemoryThread, arguments: dict[str, Any], answer: str
) -> None:
    assert tool_of(memory_thread).invoke(arguments).startswith(answer)


TURN: Any = {"messages": [("user", "I like tea")]}


def answers() -> list[Any]:
    add, read = {"operation": "append", "content": "likes tea"}, {"operation": "read"}
    return [calling(("c1", NAME, add)), calling(("c2", NAME, read), ("c3", NAME, {})), "noted"]


def results(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if message.type == "tool"]


@pytest.mark.anyio
async def test_an_agent_uses_it() -> None:
    async with open_memory("memory://") as memory:
        agent = create_agent(ScriptedModel(answers=answers()), [LongTermMemoryTool(memory, "ann", "desk")])
        result = await agent.ainvoke(TURN)
        assert results(result["messages"])[1:] == ["likes tea", "likes tea"]
        assert (await memory.notes.read("ann", "desk")).text == "likes tea"


def test_a_synchronous_agent_uses_it(memory_thread: MemoryThread) -> None:
    agent = create_agent(ScriptedModel(answers=answers()), [tool_of(memory_thread)])
    assert results(agent.invoke(TURN)["messages"])[1:] == ["likes tea", "likes tea"]


@pytest.mark.anyio
async def test_each_user_has_notes_of_their_own() -> None:
    async with open_memory("memory://") as opened:
        for user_id in ("ann", "bob"):
            tool = LongTermMemoryTool(opened, user_id, "desk")
            await tool.ainvoke({"operation": "append", "content": f"of {user_id}"})
        assert [await note(opened, user_id) for user_id in ("ann", "bob")] == ["of ann", "of bob"]


async def note(opened: Memory, user_id: str) -> str:
    return (await opened.notes.read(user_id, "desk")).text
