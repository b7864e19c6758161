"""The memory as tools of an MCP server."""

from __future__ import annotations

from reactor_memory.adapters.extras import require

require("mcp", adapter=__name__, package="mcp", extra="mcp")
