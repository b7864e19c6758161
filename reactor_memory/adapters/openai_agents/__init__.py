"""Sessions of the OpenAI Agents SDK over this library.

`ReactorMemorySession` is given to a `Runner` like any other session::

    await Runner.run(agent, "What was my order number?", session=ReactorMemorySession(memory, "session-1"))
"""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("agents", adapter=__name__, package="openai-agents", extra="openai-agents")

from reactor_memory.adapters.openai_agents.session import ReactorMemorySession  # noqa: E402 - after the check

__all__ = ["ReactorMemorySession"]
