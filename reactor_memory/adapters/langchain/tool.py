"""The tool for long-term notes as a tool of LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.features.notes.tool import ManageLongTermMemoryTool
from reactor_memory.memory import Memory


class LongTermMemoryTool(BaseTool):
    """The tool with which an agent keeps notes about a user, ``memory.notes.tool(user_id, agent_name)``, for LangChain.

    Who is meant is not among the arguments that the model gives. Arguments that make no sense and a database that fails
    are an answer to the model, never an exception. Every thread and event loop may use it.
    """

    _tool: ManageLongTermMemoryTool = PrivateAttr()
    _crossing: Crossing = PrivateAttr()

    def __init__(self, memory: Memory, user_id: str, agent_name: str) -> None:
        tool = memory.notes.tool(user_id, agent_name)
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._tool = tool
        self._crossing = Crossing(memory.loop)

    def _run(self, **arguments: Any) -> str:
        return self._crossing.call(lambda: self._answer(arguments))

    async def _arun(self, **arguments: Any) -> str:
        return await self._crossing.acall(lambda: self._answer(arguments))

    async def _answer(self, arguments: dict[str, Any]) -> str:
        return await self._tool(**{name: value for name, value in arguments.items() if value is not None})
