"""The tool for long-term notes as a tool of LangChain."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from reactor_memory.adapters.crossing import Crossing
from reactor_memory.models import JsonObject


class BoundTool(Protocol):
    """`LongTermMemory.tool(user, agent)`: who is meant is not among the arguments that the model gives."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> JsonObject: ...

    async def __call__(self, **arguments: Any) -> str: ...


class LongTermMemoryTool(BaseTool):
    """A tool of the library, such as ``memory.notes.tool(user_id, agent_name)``, for LangChain.

    Arguments that make no sense and a database that fails are an answer to the model, never an exception. `loop` is
    the event loop on which the memory was opened, by default the one that runs now.
    """

    _tool: BoundTool = PrivateAttr()
    _crossing: Crossing = PrivateAttr()

    def __init__(self, tool: BoundTool, *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._tool = tool
        self._crossing = Crossing(loop)

    def _run(self, **arguments: Any) -> str:
        return self._crossing.call(lambda: self._answer(arguments))

    async def _arun(self, **arguments: Any) -> str:
        return await self._crossing.acall(lambda: self._answer(arguments))

    async def _answer(self, arguments: dict[str, Any]) -> str:
        return await self._tool(**{name: value for name, value in arguments.items() if value is not None})
