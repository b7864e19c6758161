"""Memory for agents and chains of LangChain 1.x: a middleware, a chat history, tools.

The usual way is the middleware::

    agent = create_agent(model, tools, middleware=[ReactorMemoryMiddleware(memory)])
"""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("langchain", adapter=__name__, package="langchain", extra="langchain")

from reactor_memory.adapters.langchain.chat_agent import LangChainAgent  # noqa: E402 - after the check
from reactor_memory.adapters.langchain.history import ReactorMemoryChatHistory  # noqa: E402 - after the check
from reactor_memory.adapters.langchain.message_conversion import from_message, from_messages, to_message  # noqa: E402
from reactor_memory.adapters.langchain.middleware import ReactorMemoryMiddleware  # noqa: E402
from reactor_memory.adapters.langchain.tool import LongTermMemoryTool, MemoryTool, memory_tools  # noqa: E402

__all__ = [
    "LangChainAgent",
    "LongTermMemoryTool",
    "MemoryTool",
    "ReactorMemoryChatHistory",
    "ReactorMemoryMiddleware",
    "from_message",
    "from_messages",
    "memory_tools",
    "to_message",
]
