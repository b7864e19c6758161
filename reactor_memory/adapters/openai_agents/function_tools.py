"""The tools of the memory as tools of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any

import msgspec
from agents import FunctionTool

from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.adapters.session_tools import SessionTool, session_tools
from reactor_memory.memory import Memory


def memory_tools(
    memory: Memory, session_id: str, *, user_id: str | None = None, agent_name: str | None = None
) -> list[FunctionTool]:
    """``memory_read``, ``memory_search`` and ``memory_note`` for one session (`adapters.session_tools`)."""
    crossing = Crossing(memory.loop)
    tools = session_tools(memory, session_id, user_id=user_id, agent_name=agent_name)
    return [_function_tool(crossing, tool) for tool in tools]


def _function_tool(crossing: Crossing, tool: SessionTool) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        try:
            given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.DecodeError:
            return "Error: the arguments are no JSON object"
        return await crossing.acall(lambda: tool(**given))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
