"""Servers that are killed (``SIGKILL``) between and within saves: what was acknowledged stays, and work goes on."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from reactor_memory import open_memory
from reactor_memory.adapters.session_tools import session_tools
from tests.adapters.mcp.servers import ROOT, arguments, environment
from tests.adapters.mcp.servers import called as call_of

pytestmark = pytest.mark.anyio

STEPS = 12
"""So many steps a server is asked to save, unless it is killed before."""


@contextmanager
def server(url: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", *arguments(url, "u1", "desk", "--transport", "http", "--port", "0")]
    process = subprocess.Popen(command, env=environment(), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found is not None
        yield process, found.group()
    finally:
        process.kill()
        process.communicate()


def step(number: int) -> list[dict[str, Any]]:
    """A call and its result, in one save."""
    call = {"id": f"c{number}", "name": "read_page", "arguments": {"page": number}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": f"page {number} names valve {number * 7919 % 1000}", "tool_call_id": f"c{number}"},
    ]


async def save(client: Client, number: int) -> None:
    key = f"k{number}"
    await call_of(client, "memory_add_messages", session_id="s", messages=step(number), idempotency_key=key)


async def save_until_killed(url: str, first: int, chance: random.Random) -> int:
    """Save steps from `first` on, one of unknown fate again under its key. Returns how many are acknowledged."""
    done = first
    with server(url) as (process, address):
        try:
            async with Client(address) as client:
                for number in range(first, first + STEPS):
                    if number == first + 3:
                        threading.Timer(chance.random() * 0.1, process.kill).start()
                    await call_of(
                        client,
                        "memory_add_messages",
                        session_id="s",
                        messages=step(number),
                        idempotency_key=f"k{number}",
                    )
                    done = number + 1
        except Exception:
            assert process.wait(timeout=30) == -9
    return done


async def check_servers_killed(url: str, kills: int) -> None:
    chance = random.Random(kills)
    async with open_memory(url) as memory:
        await memory.save_history("s", "Which pages name the valve?", user_id="u1")
    done = 0
    for _ in range(kills):
        acknowledged = await save_until_killed(url, done, chance)
        assert acknowledged >= done + 3
        done = acknowledged
        async with open_memory(url) as memory:
            stored = [message.content for message in await memory.read_messages("s", user_id="u1") if message.content]
        pages = [f"page {number} names valve {number * 7919 % 1000}" for number in range(done + 1)]
        assert stored[1:] in (pages[:done], pages), (
            "what was acknowledged, once and in order, and at most one step more"
        )
    with server(url) as (_, address):
        async with Client(address) as client:
            await call_of(
                client, "memory_add_messages", session_id="s", messages=step(done), idempotency_key=f"k{done}"
            )
            hits = await call_of(client, "memory_search", session_id="s", query=f"valve {done * 7919 % 1000}", limit=3)
            assert any(f"page {done} " in hit["text"] for hit in hits["hits"])
    async with open_memory(url) as memory:
        assert len(await memory.read_messages("s", user_id="u1")) == 1 + 2 * (done + 1)


async def test_a_killed_server_keeps_acknowledged_steps(tmp_path: Path) -> None:
    await check_servers_killed(f"sqlite:///{tmp_path / 'memory.db'}", 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_many_killed_servers_keep_acknowledged_steps(tmp_path: Path) -> None:
    await check_servers_killed(f"sqlite:///{tmp_path / 'memory.db'}", 20)


async def test_clients_read_search_and_note_by_tools(tmp_path: Path) -> None:
    """The tools of a server answer as those that other adapters hand to a model."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with server(url) as (_, address):
        async with Client(address) as client:
            await call_of(client, "memory_add_messages", session_id="s", messages=step(7))
            read = await call_of(client, "memory_read", session_id="s", seq=1)
            lines = await call_of(client, "memory_read", session_id="s", seq=2, lines="1")
            hits = await call_of(client, "memory_search", session_id="s", query="valve", tool="read_page")
            kept = await call_of(client, "memory_note", session_id="s", key="plan", text="close the valve")
            context = await call_of(client, "memory_get_context", session_id="s")
            removed = await call_of(client, "memory_note", session_id="s", key="plan")
            after = await call_of(client, "memory_get_context", session_id="s")
    async with open_memory(url) as memory:
        tools = {tool.name: tool for tool in session_tools(memory, "s", user_id="u1", agent_name="desk")}
        assert read == {"result": await tools["memory_read"](seq=1)}
        assert lines == {"result": await tools["memory_read"](seq=2, lines="1")}
    assert "valve 433" in lines["result"]
    assert [hit["seq"] for hit in hits["hits"]] == [2]
    assert (kept, removed) == ({"result": "Kept."}, {"result": "Removed."})
    assert "close the valve" in str(context["messages"])
    assert "close the valve" not in str(after["messages"])
