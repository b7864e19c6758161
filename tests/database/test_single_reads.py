"""Reads of one statement, which SQLite runs without a transaction."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Settings, open_container
from reactor_memory.core.log import hot_heads
from reactor_memory.database.sqlite_transactions import SqliteSession
from reactor_memory.features.sharing import operations as sharing
from reactor_memory.models import Message

pytestmark = pytest.mark.anyio

SINGLE: dict[Any, tuple[Any, ...]] = {
    hot_heads._prove: ("session-1",),
    sharing.undescribed_conversation: ("session-1", "ann"),
}
"""With arguments that find something."""


def marked() -> set[Callable[..., object]]:
    own = [module for name, module in sys.modules.items() if name.startswith("reactor_memory.")]
    return {each for module in own for each in vars(module).values() if getattr(each, "is_single", False)}


async def test_one_statement_is_run_and_no_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert marked() == set(SINGLE)
    ran: list[str] = []
    opened = SqliteSession.__init__

    def traced(session: SqliteSession, connection: sqlite3.Connection, *parts: Any) -> None:
        opened(session, connection, *parts)
        connection.set_trace_callback(ran.append)

    monkeypatch.setattr(SqliteSession, "__init__", traced)
    settings = Settings(store={"url": f"sqlite:///{tmp_path}/log.db"}, background={"enabled": False})
    async with open_container(settings) as container:
        await container.conversation_manager().save_history("session-1", [Message.user("hello")], user_id="ann")
        for operation, arguments in SINGLE.items():
            ran.clear()
            assert await container.database().read(operation, *arguments) is not None
            assert [each.split()[0] for each in ran if "SELECT" not in each or "FROM" in each] == ["SELECT"]
