"""Files of LangChain's own chat history become sessions here.

``python -m tests.adapters.langchain.test_imported_files tests/imports/files`` writes the file of the fast tests.
"""

from __future__ import annotations

import json
import sys
import uuid
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from reactor_memory.cli import main
from reactor_memory.imports.importer import AS_THEY_ARE, read_sessions

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it is no longer developed, and its files are there
    from langchain_community.chat_message_histories import SQLChatMessageHistory

CALL: Any = {"name": "find", "args": {"id": "A-1042"}, "id": "c1", "type": "tool_call"}


def write(path: Path) -> None:
    for name in ("order", "other"):
        history = SQLChatMessageHistory(name, connection=f"sqlite:///{path}")
        history.add_messages(
            [
                SystemMessage("You help."),
                HumanMessage("Where is order A-1042?"),
                AIMessage("", tool_calls=[CALL]),
                ToolMessage("Lyon", tool_call_id="c1", name="find"),
                AIMessage("In Lyon."),
            ]
        )


def test_chat_histories_are_sessions(tmp_path: Path) -> None:
    write(tmp_path / "chat.db")
    order, other = read_sessions(tmp_path / "chat.db", AS_THEY_ARE, -1)
    assert [each.role for each in order.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert order.messages[2].tool_calls[0].id == order.messages[3].tool_call_id == "c1"
    assert (order.session_id, other.session_id) == ("order", "other")


@pytest.mark.postgres
@pytest.mark.filterwarnings("ignore")
def test_a_table_of_postgres_is_imported_by_its_url(
    empty_postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import psycopg
    from langchain_postgres import PostgresChatMessageHistory

    session, table = str(uuid.UUID(int=7)), "chat_message_history"
    with closing(psycopg.connect(empty_postgres_dsn)) as connection:
        PostgresChatMessageHistory.create_tables(connection, table)
        history = PostgresChatMessageHistory(table, session, sync_connection=connection)
        history.add_messages([HumanMessage("Where is order A-1042?"), AIMessage("In Lyon.")])
    monkeypatch.chdir(tmp_path)

    def imported(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as ended:
            main(["import", empty_postgres_dsn, "--store", "chat.db", "--json", *arguments])
        told = capsys.readouterr()
        return json.loads(told.out)[0] if ended.value.code == 0 else told.err

    first = imported()
    assert (first["sessions"], first["messages"], first["stored"]) == (1, 2, 2)
    assert imported("--table", table)["stored"] == 0
    assert imported("--table", "nothing").count("\n") == 1


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "langchain.db")
