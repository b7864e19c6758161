"""An agent of the SDK reads, searches and notes by tools."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from agents.tool_context import ToolContext

from reactor_memory import open_memory
from reactor_memory.adapters.openai_agents import memory_tools

pytestmark = pytest.mark.anyio


async def test_agents_read_search_and_note_by_tools() -> None:
    async with open_memory("memory://") as memory:
        await memory.save_history("s", "the port is 8123")
        tools = {tool.name: tool for tool in memory_tools(memory, "s")}
        context = cast("ToolContext[Any]", None)

        async def called(name: str, **arguments: object) -> str:
            return cast("str", await tools[name].on_invoke_tool(context, json.dumps(arguments)))

        assert (await called("memory_read", seq=1)).endswith("the port is 8123")
        assert "8123" in await called("memory_search", words="port")
        assert await called("memory_note", key="plan", text="look") == "Kept."
        assert (await called("memory_read", seq=9)).startswith("Error: seq")
        assert (await tools["memory_read"].on_invoke_tool(context, "[")).startswith("Error: ")
