"""A client of `reactor-memory mcp`: keeps what was said, then asks for the context of the next turn.

python examples/mcp_client.py
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import Any

from mcp import Client, StdioServerParameters


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        raise SystemExit(f"{tool}: {result.content}")
    return result.structured_content


async def main(store: str) -> None:
    command = ["-m", "reactor_memory", "mcp", "--store", store, "--user", "anna", "--agent", "desk"]
    # Without `env` the server would get few variables of this process: no settings, no keys, no PYTHONPATH.
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:
        session = (await ask(client, "session_resolve"))["session_id"]
        talk = ["My order number is A-1042.", *[f"And tell me about river {number}." for number in range(30)]]
        messages = [{"role": "user", "content": text} for text in talk]
        await ask(client, "memory_add_messages", session_id=session, messages=messages)
        await ask(client, "memory_summarize", session_id=session)
        context = await ask(client, "memory_get_context", session_id=session, message="My order?", budget=150)
        for message in context["messages"]:
            print(f"{message['part']:>10}  {message['role']}: {message['content']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(f"sqlite:///{folder}/memory.db"))
