"""Sessions of the OpenAI Agents SDK over this library, and tools that read, search and note.

`ReactorMemorySession` is given to a `Runner` like any other session::

    await Runner.run(agent, "What was my order number?", session=ReactorMemorySession(memory, "session-1"))
"""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("agents", adapter=__name__, package="openai-agents", extra="openai-agents")

from reactor_memory.adapters.openai_agents.function_tools import memory_tools  # noqa: E402 - after the check
from reactor_memory.adapters.openai_agents.session import ReactorMemorySession  # noqa: E402

__all__ = ["ReactorMemorySession", "memory_tools"]
