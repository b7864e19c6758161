"""The server of the MCP library: `MCPServer`, which was `FastMCP` before 2.0. Both take the same tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from starlette.types import ASGIApp

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import ToolAnnotations
else:
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.server.mcpserver.tools import Tool
    except ImportError:
        from mcp.server.fastmcp import FastMCP as MCPServer
        from mcp.server.fastmcp.exceptions import ToolError
        from mcp.server.fastmcp.tools import Tool
    try:
        from mcp_types import ToolAnnotations
    except ImportError:
        from mcp.types import ToolAnnotations

__all__ = ["MCPServer", "Tool", "ToolAnnotations", "ToolError", "made_server", "web_application"]

_HAS_VERSION = MCPServer.__name__ == "MCPServer"


def made_server(*, version: str, tools: Sequence[Tool], **options: Any) -> MCPServer[Any]:
    """A server of these tools. Before 2.0 it gives the version of the MCP library as its own unless told so."""
    if _HAS_VERSION:
        return MCPServer(version=version, tools=list(tools), **options)
    server = cast(Any, MCPServer)(tools=list(tools), **options)
    server._mcp_server.version = version
    return server


def web_application(server: MCPServer[Any], *, path: str, host: str) -> ASGIApp:
    """Streamable HTTP in which every request stands for itself."""
    options = {"streamable_http_path": path, "json_response": True, "stateless_http": True}
    if _HAS_VERSION:
        return server.streamable_http_app(host=host, **cast(Any, options))
    old = cast(Any, server)
    old.settings = old.settings.model_copy(update=options)
    if host not in ("127.0.0.1", "localhost", "::1"):
        old.settings.transport_security = None
    return old.streamable_http_app()
