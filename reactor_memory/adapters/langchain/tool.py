"""The tools of the memory as tools of LangChain."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.adapters.session_tools import session_tools
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject


class AnyTool(Protocol):
    """What the library brings as a tool for any framework."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> JsonObject: ...
    def __call__(self, **arguments: Any) -> Awaitable[str]: ...


class MemoryTool(BaseTool):
    """A tool of the library for LangChain. Who and which session is meant is not among the arguments that the model
    gives. Arguments that make no sense and a database that fails are an answer to the model, never an exception. Every
    thread and event loop may use it.
    """

    _tool: AnyTool = PrivateAttr()
    _crossing: Crossing = PrivateAttr()

    def __init__(self, memory: Memory, tool: AnyTool) -> None:
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._tool = tool
        self._crossing = Crossing(memory.loop)

    def _run(self, **arguments: Any) -> str:
        return self._crossing.call(lambda: self._answer(arguments))

    async def _arun(self, **arguments: Any) -> str:
        return await self._crossing.acall(lambda: self._answer(arguments))

    async def _answer(self, arguments: JsonObject) -> str:
        return await self._tool(**arguments)


class LongTermMemoryTool(MemoryTool):
    """The tool with which an agent keeps notes about a user, ``memory.notes.tool(user_id, agent_name)``."""

    def __init__(self, memory: Memory, user_id: str, agent_name: str) -> None:
        super().__init__(memory, memory.notes.tool(user_id, agent_name))


def memory_tools(
    memory: Memory, session_id: str, *, user_id: str | None = None, agent_name: str | None = None
) -> list[MemoryTool]:
    """``memory_read``, ``memory_search`` and ``memory_note`` for one session (`adapters.session_tools`)."""
    tools = session_tools(memory, session_id, user_id=user_id, agent_name=agent_name)
    return [MemoryTool(memory, tool) for tool in tools]
