"""An agent of LangChain reads, searches and notes by tools."""

from __future__ import annotations

from reactor_memory.adapters.langchain import memory_tools
from tests.adapters.langchain.conftest import memory_on_a_thread


def test_agents_read_search_and_note_by_tools() -> None:
    with memory_on_a_thread() as memory:
        tools = {tool.name: tool for tool in memory_tools(memory.memory, "s", user_id="ann")}
        memory.run(memory.memory.save_history("s", "the port is 8123", user_id="ann"))
        assert tools["memory_read"].invoke({"seq": 1}).endswith("the port is 8123")
        assert "8123" in tools["memory_search"].invoke({"words": "port"})
        assert tools["memory_note"].invoke({"key": "plan", "text": "look"}) == "Kept."
        assert tools["memory_note"].invoke({"key": "plan", "text": None}) == "Removed."
        assert tools["memory_read"].invoke({"seq": 9}).startswith("Error: seq")
