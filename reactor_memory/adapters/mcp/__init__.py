"""The memory as a server of the Model Context Protocol: `reactor-memory mcp`, or `memory_server` in a program."""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("mcp", adapter=__name__, package="mcp", extra="mcp")

from reactor_memory.adapters.mcp.server import DEFAULT_AGENT, memory_server  # noqa: E402 - after the check

__all__ = ["DEFAULT_AGENT", "memory_server"]
