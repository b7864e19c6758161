"""Checkpoints of a graph become sessions here.

``python -m tests.adapters.langgraph.test_imported_files tests/imports/files`` writes the file of the fast tests.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from reactor_memory.imports.importer import AS_THEY_ARE, read_sessions

CALL: Any = {"name": "find", "args": {"id": "A-1042"}, "id": "c1", "type": "tool_call"}


def answer(state: Any) -> Any:
    """What a model and its tool would add."""
    return {
        "messages": [
            AIMessage("", tool_calls=[CALL]),
            ToolMessage("Lyon", tool_call_id="c1", name="find"),
            AIMessage([{"type": "text", "text": "In Lyon."}]),
        ]
    }


def write(path: Path) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        compiled: Any = graph.compile(checkpointer=saver)
        for thread in ("order", "other"):
            told: Any = {"configurable": {"thread_id": thread}}
            compiled.invoke({"messages": [HumanMessage("Where is order A-1042?")]}, told)
        newest = compiled.invoke({"messages": [HumanMessage("Thanks", id="thanks")]}, told)
        compiled.update_state(told, {"messages": [RemoveMessage(newest["messages"][0].id)]})


def test_newest_checkpoint_of_each_thread_is_a_session(tmp_path: Path) -> None:
    write(tmp_path / "graph.db")
    order, other = read_sessions(tmp_path / "graph.db", AS_THEY_ARE, -1)
    assert [(each.role, each.content) for each in order.messages] == [
        ("user", "Where is order A-1042?"),
        ("assistant", ""),
        ("tool", "Lyon"),
        ("assistant", "In Lyon."),
    ]
    assert order.messages[1].tool_calls[0].id == order.messages[2].tool_call_id == "c1"
    assert [each.content for each in other.messages][2:4] == ["In Lyon.", "Thanks"]
    assert all(each.created_at is None for each in order.messages)


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "langgraph.db")
