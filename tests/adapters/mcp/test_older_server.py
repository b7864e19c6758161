"""The tools under a library of the protocol before 2.0, through its own client: over pipes and over HTTP."""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.fastmcp", reason="make test-lowest tries older versions")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from reactor_memory.version import __version__

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Use `streamable_http_client`:DeprecationWarning")]

ENVIRONMENT = {"REACTOR_MEMORY_SUMMARY__ENABLED": "true", "REACTOR_MEMORY_NOTES__ENABLED": "true"}


@asynccontextmanager
async def client(transport: str, folder: Path) -> AsyncGenerator[Any]:
    command = ["-m", "reactor_memory", "mcp", "--store", f"sqlite:///{folder}/memory.db", "--user", "u1"]
    if transport == "stdio":
        server = StdioServerParameters(command=sys.executable, args=command, env=ENVIRONMENT)
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            yield session
    else:
        with web_server(command) as address:
            async with (
                streamablehttp_client(address) as (reading, writing, _),
                ClientSession(reading, writing) as session,
            ):
                yield session


@contextmanager
def web_server(command: list[str]) -> Generator[str]:
    command = [sys.executable, *command, "--transport", "http", "--port", "0"]
    process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found is not None
        yield found.group()
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def answered(session: Any, name: str, **arguments: Any) -> Any:
    result = await session.call_tool(name, arguments)
    assert not result.isError, result.content
    return result.structuredContent


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_conversation_is_kept_and_told(transport: str, tmp_path: Path) -> None:
    async with client(transport, tmp_path) as session:
        said = await session.initialize()
        assert (said.serverInfo.name, said.serverInfo.version) == ("reactor-memory", __version__)
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert tools["memory_get_context"].annotations.readOnlyHint
        assert "session_id" in tools["memory_search"].inputSchema["required"]
        messages = [{"role": "user", "content": "My order is A-1042."}, {"role": "assistant", "content": "Noted."}]
        added = await answered(session, "memory_add_messages", session_id="s", messages=messages)
        assert added == {"first_seq": 1, "last_seq": 2, "replayed": False}
        context = await answered(session, "memory_get_context", session_id="s")
        assert [shown["content"] for shown in context["messages"]][-2:] == ["My order is A-1042.", "Noted."]
        note = await answered(session, "manage_long_term_memory", operation="append", content="Likes tea.")
        assert note["result"]
        refused = await session.call_tool("memory_get_context", {"session_id": "s" * 256})
        assert refused.isError
        assert "session_id" in refused.content[0].text
