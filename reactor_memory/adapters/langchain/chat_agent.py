"""An agent of LangChain with tools, for the chat server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage

from reactor_memory.adapters.langchain.middleware import ReactorMemoryMiddleware
from reactor_memory.adapters.langchain.tool import LongTermMemoryTool
from reactor_memory.errors import ChatModelError, ReactorMemoryError
from reactor_memory.memory import Memory

if TYPE_CHECKING:
    from reactor_memory.server.chat_agents import Asked


class LangChainAgent:
    """`create_agent` with the notes as a tool (``manage_long_term_memory``), and `tools` beside it; made anew for every
    turn. `model` is one of LangChain, or a name that `init_chat_model` knows.
    """

    def __init__(self, model: BaseChatModel | str, tools: Sequence[Callable[..., Any] | Any] = ()) -> None:
        self._model = model
        self._tools = tools

    async def answer(self, memory: Memory, asked: Asked) -> AsyncGenerator[str]:
        """The answer piece by piece. Raises `ChatModelError` for what the agent raises that is none of the memory's."""
        middleware = ReactorMemoryMiddleware(
            memory, session_id=asked.session_id, user_id=asked.user_id, agent_name=asked.agent_id
        )
        tools = [LongTermMemoryTool(memory, asked.user_id, asked.agent_id), *self._tools]
        agent: Any = create_agent(self._model, tools, system_prompt=asked.system, middleware=[middleware])
        said = {"messages": [HumanMessage(asked.message)]}
        try:
            async for piece, _ in agent.astream(said, stream_mode="messages"):
                if isinstance(piece, AIMessage) and piece.text:
                    yield piece.text
        except ReactorMemoryError:
            raise
        except Exception as error:
            raise ChatModelError("failed", f"the agent failed with {type(error).__name__}") from error
