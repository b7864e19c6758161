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


@pytest.mark.postgres
def test_the_command_passes_strictness_and_the_time_zone_on(
    empty_postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import psycopg

    kept, other = (json.dumps({"type": type_, "data": {"content": "x", "id": "1"}}) for type_ in ("human", "remove"))
    with closing(psycopg.connect(empty_postgres_dsn, autocommit=True)) as connection:
        connection.execute(
            "CREATE TABLE naive (id serial, session_id text, message jsonb,"
            " created_at timestamp DEFAULT '2025-07-01 12:00')"
        )
        for session_id, message in (("a", kept), ("b", kept), ("b", other)):
            connection.execute("INSERT INTO naive (session_id, message) VALUES (%s, %s)", (session_id, message))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--store", "chat.db"])
        return ended.value.code, capsys.readouterr()

    table = ("import", empty_postgres_dsn, "--table", "naive", "--json")
    code, told = run(*table, "--strict")
    assert (code == 0, told.err.count("\n"), "row 3" in told.err) == (False, 1, True)
    code, told = run(*table, "--timezone", "Europe/Berlin")
    done = json.loads(told.out)[0]
    assert (done["sessions"], done["stored"], done["left_out"]) == (2, 2, ["naive b row 3: remove"])
    code, told = run("export", "a")
    assert json.loads(told.out)["messages"][0]["at"].startswith("2025-07-01T10:00:00")


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "langchain.db")
