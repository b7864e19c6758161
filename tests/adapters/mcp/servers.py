"""Servers as clients find them: in the process, behind pipes, behind HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters

from reactor_memory import Settings, open_memory
from reactor_memory.adapters.mcp import memory_server

ROOT = Path(__file__).parents[3]


class Served(NamedTuple):
    """How to reach a memory: over which transport, in which database."""

    transport: str
    url: str

    @asynccontextmanager
    async def client(self, user: str | None = "u1", *, agent: str = "desk") -> AsyncGenerator[Client]:
        """A client of a server that serves this user."""
        if self.transport == "process":
            settings = Settings(store={"url": self.url}, summary={"enabled": True}, notes={"enabled": True})
            async with (
                open_memory(settings) as memory,
                Client(memory_server(memory, user_id=user, agent_name=agent)) as client,
            ):
                yield client
        elif self.transport == "stdio":
            command = StdioServerParameters(
                command=sys.executable, args=["-m", *arguments(self.url, user, agent)], env=environment()
            )
            async with Client(command) as client:
                yield client
        else:
            with http_server(self.url, user, agent) as address:
                async with Client(address) as client:
                    yield client


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that must succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """The text of the error of a tool that must fail."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.content
    return "".join(block.text for block in result.content if block.type == "text")


def arguments(url: str, user: str | None, agent: str, *more: str) -> list[str]:
    named = [] if user is None else ["--user", user]
    return ["reactor_memory", "mcp", "--store", url, *named, "--agent", agent, *more]


def environment() -> dict[str, str]:
    return {"REACTOR_MEMORY_SUMMARY__ENABLED": "true", "REACTOR_MEMORY_NOTES__ENABLED": "true", "PYTHONPATH": str(ROOT)}


@contextmanager
def http_server(url: str, user: str | None, agent: str) -> Generator[str]:
    """The address of a server in a process of its own, which ends by a signal and in good order."""
    command = [sys.executable, "-m", *arguments(url, user, agent, "--transport", "http", "--port", "0")]
    process = subprocess.Popen(command, env={**os.environ, **environment()}, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found is not None
        yield found.group()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()
