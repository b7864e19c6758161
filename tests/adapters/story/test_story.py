"""One conversation, three frameworks, each in a process and, if there is one, an environment of its own: begun
through LangChain, continued through the OpenAI Agents SDK, read by an MCP client, and taken up by LangChain again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp.servers import Served, called, refused

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
SMALL_TALK = 30


def tell(framework: str, *arguments: str) -> Any:
    """What the script of a framework prints, run in the environment of the framework if there is one."""
    own = ROOT / "build" / "adapters" / framework / "bin" / "python"
    script = f"tests.adapters.story.with_{framework.replace('-', '_')}"
    done = subprocess.run(
        [str(own if own.exists() else sys.executable), "-m", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_a_conversation_goes_through_three_frameworks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/story.db"

    tell("langchain", url, "My order number is A-1042. Where is it, and where is A-0?", "A-1042", "A-0")
    first, last = tell("openai-agents", url, str(SMALL_TALK))

    assert [(item.get("type"), item.get("call_id"), item.get("content", item.get("output"))) for item in first] == [
        (None, None, "My order number is A-1042. Where is it, and where is A-0?"),
        ("function_call", "lc0", None),
        ("function_call", "lc1", None),
        ("function_call_output", "lc0", "order A-1042 is on its way"),
        ("function_call_output", "lc1", ""),
        (None, None, "I have looked it up."),
        (None, None, "Book for 4 and for 9."),
    ]
    assert "A-1042" in json.dumps(last)
    assert "Where is it, and where is A-0?" not in json.dumps(last[1:])

    async with Served("stdio", url).client("anna") as client:
        facts = (await called(client, "memory_list_facts", session_id="story", limit=200))["facts"]
        for detail, said_by in (("A-1042", "user"), ("Golden Lion", "assistant")):
            assert any(detail in fact["value"] and fact["said_by"] == said_by for fact in facts)
        hits = (await called(client, "memory_search", session_id="story", query="Blue Swan table"))["hits"]
        assert hits != []
        context = await called(client, "memory_get_context", session_id="story", budget=4000)
        await called(
            client, "memory_add_messages", session_id="story", messages=[{"role": "user", "content": "Hello?"}]
        )
    assert "A-1042" in json.dumps(context["messages"])
    async with Served("stdio", url).client("ben") as client:
        assert "belongs to another user" in await refused(client, "memory_get_context", session_id="story")

    seen = tell("langchain", url, "So what is my order number?")
    before, recalled = (message["text"] for message in seen[-3:-1])
    assert before == "Hello?"
    assert "user: My order number is A-1042." in recalled


async def test_simultaneous_calls_keep_their_results_in_the_next_framework(tmp_path: Path) -> None:
    """The SDK has the two calls of an answer as two items, both results after them; a model behind LangChain refuses a
    call that is not followed by its result.
    """
    url = f"sqlite:///{tmp_path}/story.db"
    tell("openai-agents", url, "0")
    seen = tell("langchain", url, "And now?")
    assert [(message["type"], message["calls"], message["answers"], message["text"]) for message in seen] == [
        ("human", [], None, "Book for 4 and for 9."),
        ("ai", [], None, ""),
        ("ai", ["oa1"], None, ""),
        ("tool", [], "oa1", "booked at Golden Lion"),
        ("ai", ["oa2"], None, ""),
        ("tool", [], "oa2", ""),
        ("ai", [], None, "The Golden Lion is booked, the Blue Swan is not."),
        ("human", [], None, "And now?"),
    ]
