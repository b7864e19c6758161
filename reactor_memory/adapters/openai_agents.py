"""Sessions of the OpenAI Agents SDK over this library."""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("agents", adapter=__name__, package="openai-agents", extra="openai-agents")
