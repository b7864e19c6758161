"""The tool for notes passes LangChain's own suites, and its answers are those of the library."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from reactor_memory.adapters.langchain import LongTermMemoryTool
from reactor_memory.models import JsonObject
from tests.adapters.langchain.conftest import MemoryThread
from tests.adapters.langchain.scripted import ScriptedModel, calling


class NotesTool:
    """`ManageLongTermMemoryTool` in small: it keeps what it was told, and never raises."""

    name = "manage_long_term_memory"
    description = "Keep notes about this user."
    input_schema: JsonObject = {
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": ["read", "append"], "default": "read"},
            "content": {"type": "string"},
            "section_header": {"type": "string"},
        },
        "additionalProperties": False,
    }

    def __init__(self) -> None:
        self.text = ""
        self.asked = list[dict[str, Any]]()

    async def __call__(self, **arguments: Any) -> str:
        self.asked.append(arguments)
        await asyncio.sleep(0)
        if arguments.get("operation", "read") not in ("read", "append"):
            return "Error: unknown operation"
        self.text += arguments.get("content", "")
        return self.text or "no notes yet"


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    import threading

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


class Suite:
    """What LangChain's suites ask about the tool."""

    @pytest.fixture(autouse=True)
    def bound(self, loop: asyncio.AbstractEventLoop) -> None:
        Suite.loop = loop

    loop: asyncio.AbstractEventLoop

    @property
    def tool_constructor(self) -> Any:
        return LongTermMemoryTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"tool": NotesTool(), "loop": Suite.loop}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"operation": "append", "content": "likes tea"}


class TestUnit(Suite, ToolsUnitTests):
    @pytest.fixture
    def tool(self, loop: asyncio.AbstractEventLoop) -> BaseTool:
        return LongTermMemoryTool(NotesTool(), loop=loop)


@pytest.mark.anyio
class TestIntegration(Suite, ToolsIntegrationTests):
    @pytest.fixture
    def tool(self, loop: asyncio.AbstractEventLoop) -> BaseTool:
        return LongTermMemoryTool(NotesTool(), loop=loop)


def test_the_schema_is_the_one_of_the_library_and_names_no_user(loop: asyncio.AbstractEventLoop) -> None:
    declared = convert_to_openai_tool(LongTermMemoryTool(NotesTool(), loop=loop))["function"]
    assert declared["parameters"]["properties"] == NotesTool.input_schema["properties"]
    assert (declared["name"], declared["description"]) == (NotesTool.name, NotesTool.description)
    assert declared["parameters"].get("required", []) == []


def test_what_the_model_gave_wrongly_is_answered_and_not_raised(loop: asyncio.AbstractEventLoop) -> None:
    notes = NotesTool()
    tool = LongTermMemoryTool(notes, loop=loop)
    assert tool.invoke({"operation": "burn"}) == "Error: unknown operation"
    assert tool.invoke({"operation": ["read"]}) == "Error: unknown operation"
    assert tool.invoke({}) == "no notes yet"
    assert tool.invoke({"operation": "append", "content": None, "section_header": None}) == "no notes yet"
    assert notes.asked[-2:] == [{}, {"operation": "append"}]


@pytest.mark.anyio
async def test_an_agent_uses_it() -> None:
    notes = NotesTool()
    model = ScriptedModel(
        answers=[
            calling(("c1", notes.name, {"operation": "append", "content": "tea"}), ("c2", notes.name, {})),
            "noted",
        ]
    )
    result = await create_agent(model, [LongTermMemoryTool(notes)]).ainvoke({"messages": [("user", "I like tea")]})
    assert next(message.text for message in result["messages"] if message.type == "tool") == "tea"
    assert notes.text == "tea"


def test_a_synchronous_agent_uses_it(memory_thread: MemoryThread) -> None:
    notes = NotesTool()
    model = ScriptedModel(answers=[calling(("c1", notes.name, {"operation": "append", "content": "tea"})), "noted"])
    create_agent(model, [LongTermMemoryTool(notes, loop=memory_thread.loop)]).invoke({"messages": [("user", "tea!")]})
    assert notes.text == "tea"
