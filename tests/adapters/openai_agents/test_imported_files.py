"""Files of the SDK's own sessions become sessions here, as they are.

``python -m tests.adapters.openai_agents.test_imported_files tests/imports/files`` writes the files of the fast tests.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import AdvancedSQLiteSession
from agents.memory import SQLiteSession

from reactor_memory.forms.response_items import to_items
from reactor_memory.imports.importer import AS_THEY_ARE, read_sessions

pytestmark = pytest.mark.anyio

ITEMS: list[Any] = [
    {"role": "user", "content": "Where is order A-1042?"},
    {"id": "rs_1", "type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": "A-1042"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "Lyon"},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "In Lyon.", "annotations": []}],
    },
    {"role": "user", "content": "Thanks"},
]


async def write_plain(path: Path) -> None:
    for name in ("order", "other"):
        session = SQLiteSession(name, path)
        await session.add_items(ITEMS if name == "order" else ITEMS[-1:])
        session.close()


async def write_advanced(path: Path) -> None:
    session = AdvancedSQLiteSession(session_id="order", db_path=path, create_tables=True)
    await session.add_items(ITEMS)
    await session.create_branch_from_turn(2, "again")
    await session.add_items([{"role": "user", "content": "When does it arrive?"}])
    session.close()


async def test_sessions_are_read_as_they_are(tmp_path: Path) -> None:
    await write_plain(tmp_path / "agents.db")
    order, other = read_sessions(tmp_path / "agents.db", AS_THEY_ARE, -1)
    assert [item for message in order.messages for item in to_items(message)] == ITEMS
    assert (order.session_id, other.session_id, len(other.messages)) == ("order", "other", 1)
    assert all(message.created_at for message in order.messages)


async def test_each_branch_is_a_session(tmp_path: Path) -> None:
    await write_advanced(tmp_path / "agents.db")
    lines = {line.session_id: line for line in read_sessions(tmp_path / "agents.db", AS_THEY_ARE, -1)}
    assert [item for message in lines["order"].messages for item in to_items(message)] == ITEMS
    assert [message.content for message in lines["order-again"].messages][-1] == "When does it arrive?"
    assert len(lines["order-again"].messages) == 6


if __name__ == "__main__":
    for name, write in {"agents.db": write_plain, "agents_advanced.db": write_advanced}.items():
        asyncio.run(write(Path(sys.argv[1]) / name))
