"""Conversations of others, imported as people have them: no file is converted by hand."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run
from tests.imports.samples import FOLDER as FILES
from tests.imports.samples import zipped

OPENAI = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": [{"type": "text", "text": "Where is order A-1042?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": "A-1042"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"city": "Lyon"}'},
    {"role": "assistant", "content": "In Lyon."},
]
ANTHROPIC = {
    "system": "You help.",
    "messages": [
        {"role": "user", "content": "Where is order A-1042?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"id": "A-1042"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"city": "Lyon"}'}]},
        {"role": "assistant", "content": [{"type": "text", "text": "In Lyon."}]},
    ],
}
LANGCHAIN = [
    {"type": "system", "data": {"content": "You help."}},
    {"type": "human", "data": {"content": "Where is order A-1042?", "additional_kwargs": {}}},
    {
        "type": "ai",
        "data": {
            "content": "",
            "tool_calls": [{"name": "find", "args": {"id": "A-1042"}, "id": "c1", "type": "tool_call"}],
        },
    },
    {"type": "tool", "data": {"content": '{"city": "Lyon"}', "tool_call_id": "c1", "name": "find"}},
    {"type": "ai", "data": {"content": "In Lyon."}},
]
CONSTRUCTED = [
    {
        "lc": 1,
        "type": "constructor",
        "id": [
            "langchain",
            "schema",
            "messages",
            {"human": "HumanMessage", "ai": "AIMessage"}.get(each["type"], "SystemMessage"),
        ],
        "kwargs": each["data"],
    }
    for each in LANGCHAIN
    if each["type"] != "tool" and not each["data"].get("tool_calls")
]
ROLES = ["system", "user", "assistant", "tool", "assistant"]


def chatgpt(title: str, *said: tuple[str, str]) -> dict[str, Any]:
    """A conversation of an export, with an answer that was regenerated: the first one is on another branch."""
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["hidden"]}}
    hidden = {"author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]}, "create_time": None}
    nodes["hidden"] = {"id": "hidden", "message": hidden, "parent": "root", "children": ["n0", "gone"]}
    nodes["gone"] = {
        "message": _node("assistant", "An answer that was regenerated.", 9),
        "parent": "hidden",
        "children": [],
    }
    for number, (role, text) in enumerate(said):
        parent = "hidden" if not number else f"n{number - 1}"
        nodes[f"n{number}"] = {"message": _node(role, text, number), "parent": parent, "children": [f"n{number + 1}"]}
    nodes[f"n{len(said) - 1}"]["children"] = []
    return {"title": title, "mapping": nodes, "current_node": f"n{len(said) - 1}", "conversation_id": f"id-{title}"}


def _node(role: str, text: str, number: int) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    return {"author": {"role": role}, "content": content, "create_time": 1_700_000_000.5 + number, "metadata": {}}


def claude(name: str) -> dict[str, Any]:
    return {
        "uuid": f"id-{name}",
        "name": name,
        "chat_messages": [
            {"sender": "human", "text": "Where is order A-1042?", "created_at": "2026-01-02T03:04:05.000000Z"},
            {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "In Lyon."}]},
        ],
    }


def shown(run: Run, session: str) -> list[dict[str, Any]]:
    return run("show", session, "--all", "--json").json["messages"]


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        (OPENAI, ROLES),
        (ANTHROPIC, ROLES),
        (
            {
                "contents": [
                    {"role": "user", "parts": [{"text": "Hello"}]},
                    {"role": "model", "parts": [{"text": "Hi"}]},
                ]
            },
            ["user", "assistant"],
        ),
        (LANGCHAIN, ROLES),
        (CONSTRUCTED, ["system", "user", "assistant"]),
        ({"messages": LANGCHAIN}, ROLES),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_messages_of_others_are_a_session_named_after_the_file(
    run: Run, folder: Path, given: Any, roles: list[str], indent: int | None
) -> None:
    (folder / "support.json").write_text(json.dumps(given, indent=indent))
    done = run("import", "support.json")
    assert done.code == 0, done.err
    messages = shown(run, "support")
    assert [each["role"] for each in messages] == roles
    assert run("import", "support.json", "--json").json[0]["stored"] == 0


def test_calls_and_results_stay_together(run: Run, folder: Path) -> None:
    for name, given in {"openai": OPENAI, "anthropic": ANTHROPIC, "langchain": LANGCHAIN}.items():
        (folder / f"{name}.json").write_text(json.dumps(given))
        assert run("import", f"{name}.json").code == 0
        messages = shown(run, name)
        assert messages[2]["tool_calls"][0]["name"] == "find"
        assert messages[3]["tool_call_id"] == "c1"


def test_lines_of_requests_are_numbered(run: Run, folder: Path) -> None:
    lines = [{"messages": OPENAI}, {"custom_id": "r", "body": {"model": "m", "messages": OPENAI}}]
    (folder / "tuning.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run("import", "tuning.jsonl", "--json").json[0]["sessions"] == 2
    assert len(shown(run, "tuning-2")) == 5


def test_export_of_chatgpt_is_the_branch_that_was_seen_last(run: Run, folder: Path) -> None:
    first = chatgpt("trip", ("user", "Where is order A-1042?"), ("assistant", "In Lyon."), ("user", "Thanks"))
    (folder / "conversations.json").write_text(json.dumps([first, chatgpt("other", ("user", "Hello"))]))
    done = run("import", "conversations.json", "--user", "me")
    assert done.code == 0, done.err
    messages = shown(run, "id-trip")
    assert [each["content"] for each in messages] == ["Where is order A-1042?", "In Lyon.", "Thanks"]
    assert messages[0]["at"].startswith("2023-11-14T22:13:20.5")
    assert len(shown(run, "id-other")) == 1


def test_an_export_of_claude_is_imported(run: Run, folder: Path) -> None:
    (folder / "conversations.json").write_text(json.dumps([claude("a"), claude("b")]))
    assert run("import", "conversations.json").code == 0
    assert [each["content"] for each in shown(run, "id-b")] == ["Where is order A-1042?", "In Lyon."]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("own", [True, False])
def test_marks_of_editors_are_no_part_of_a_file(run: Run, folder: Path, encoding: str, own: bool) -> None:
    line = {"id": "support", "messages": [{"role": "user", "content": "Grüße"}]}
    (folder / "support.json").write_text(
        json.dumps(line if own else line["messages"], ensure_ascii=False), encoding=encoding
    )
    assert run("import", "support.json").code == 0
    assert shown(run, "support")[0]["content"] == "Grüße"


def test_packed_files_of_others_are_imported(run: Run, folder: Path) -> None:
    (folder / "support.json.gz").write_bytes(gzip.compress(json.dumps(OPENAI).encode()))
    assert run("import", "support.json.gz").code == 0
    assert len(shown(run, "support")) == 5


@pytest.mark.parametrize(
    "given",
    [
        b'{"id": "piped", "messages": [{"role": "user", "content": "Hello"}]}\n',
        b'[{"role": "user", "content": "Hello"}]',
    ],
)
def test_stdin_is_a_file_like_others(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    done = run("import", "-")
    assert done.code == 0, done.err
    assert shown(run, "piped" if b"piped" in given else "stdin")[0]["content"] == "Hello"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "holds no session"),
        ('[{"role": "nobody", "content": "x"}]', "role"),
        ('[{"mapping": {"a": {"message": {"author": {"role": "king"}}}}}]', "mapping"),
        ('[{"chat_messages": [{"sender": "dog"}]}]', "sender"),
        ('[{"mapping": 7}]', "mapping"),
        ('[{"chat_messages": null}]', "chat_messages"),
        ('[{"type": "ai", "data": {"content": "", "tool_calls": [{"name": "x"}]}}]', "a list of messages"),
        ("[1, 2]", "wrong.json[0]"),
        ("[[[", "not valid JSON"),
        ('[{"role": "user", "content": "x"}', "not valid JSON"),
    ],
)
def test_an_unknown_form_is_refused_in_one_line(run: Run, folder: Path, text: str, told: str) -> None:
    (folder / "wrong.json").write_text(text)
    done = run("import", "wrong.json")
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1
    assert "wrong.json" in done.err


def test_a_request_is_read_however_it_is_printed(run: Run, folder: Path) -> None:
    requests = {
        "chat": {"model": "m", "temperature": 1, "messages": OPENAI},
        "responses": {"model": "m", "instructions": "You help.", "input": [{"role": "user", "content": "Hello"}]},
    }
    for name, request in requests.items():
        for indent in (None, 2):
            (folder / f"{name}-{indent}.json").write_text(json.dumps(request, indent=indent))
            done = run("import", f"{name}-{indent}.json")
            assert done.code == 0, done.err
            assert [each["role"] for each in shown(run, f"{name}-{indent}")][:2] == ["system", "user"]


def test_calls_of_older_models_are_read(run: Run, folder: Path) -> None:
    old: list[dict[str, Any]] = [
        {"role": "user", "content": "Where is order A-1042?"},
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}},
        {"role": "function", "name": "find", "content": "Lyon"},
    ]
    (folder / "old.json").write_text(json.dumps(old))
    assert run("import", "old.json").code == 0
    _, call, result = shown(run, "old")
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]


def test_what_came_from_stdin_is_called_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    given(json.dumps(OPENAI))
    assert run("import", "-", "--json").json[0]["file"] == "stdin"
    given('{"a"')
    assert run("import", "-").err == "error: stdin:1: is not valid JSON\n"


def exported(name: str, length: int, *, dated: bool = True) -> bytes:
    """The archive of an export of ChatGPT with a conversation of so many messages."""
    said = [("user" if n % 2 == 0 else "assistant", f"Yesterday I paid {1000 + n} euros.") for n in range(length)]
    conversation = chatgpt(name, *said)
    for node in conversation["mapping"].values() if not dated else ():
        if node["message"]:
            node["message"]["create_time"] = None
    return zipped({"user.json": {}, "export/conversations.json": [conversation]})


def test_the_archive_of_an_export_keeps_titles_and_times(run: Run, folder: Path) -> None:
    (folder / "export.zip").write_bytes(exported("Lamps", 30))
    assert run("import", "export.zip").code == 0
    (listed,) = run("sessions", "--json").json["sessions"]
    assert listed["title"] == "Lamps"
    assert listed["created_at"] == 1_700_000_000_500_000
    assert listed["updated_at"] == 1_700_000_029_500_000
    assert run("import", "export.zip", "--json").json[0]["stored"] == 0


def test_the_first_context_after_an_import_has_memory(run: Run, folder: Path) -> None:
    (folder / "export.zip").write_bytes(exported("Lamps", 60))
    assert run("import", "export.zip").code == 0
    assert "14 November:" in run("context", "id-Lamps", "--budget", "400").out
    assert run("import", "export.zip", "--no-memory", "--session-prefix", "x-").out.count("worker --once") == 1
    assert run("facts", "x-id-Lamps", "--json").json == []


def test_a_model_that_may_cost_is_asked_only_on_request(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "openai")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__MODEL", "small")
    (folder / "export.zip").write_bytes(exported("Lamps", 30))
    assert "--memory makes it now" in run("import", "export.zip").out


def test_a_message_without_a_time_gets_none(run: Run, folder: Path) -> None:
    (folder / "export.zip").write_bytes(exported("Lamps", 60, dated=False))
    assert run("import", "export.zip").code == 0
    assert "at" not in shown(run, "id-Lamps")[0]
    context = run("context", "id-Lamps", "--budget", "400").out
    assert "euros" in context
    assert "20" not in re.sub(r"\b1\d\d\d\b|of 400|\b\d+ tokens", "", context.partition("window")[0])
    exported_again = run("export", "id-Lamps", "-o", "again.jsonl")
    assert exported_again.code == 0
    assert run("copy", "reactor-memory.db", "other.db").code == 0
    assert run("import", "again.jsonl", "--session-prefix", "y-").code == 0
    assert "at" not in shown(run, "y-id-Lamps")[0]
    assert "at" not in run("show", "id-Lamps", "--all", "--json", "--store", "other.db").json["messages"][0]


@pytest.mark.parametrize(
    ("name", "session", "roles"),
    [
        ("agents", "order", ["user", "assistant", "assistant", "tool", "assistant", "user"]),
        ("agents_advanced", "order-again", ["user", "assistant", "assistant", "tool", "assistant", "user"]),
        ("langchain", "order", ROLES),
        ("langgraph", "order", ["user", "assistant", "tool", "assistant"]),
    ],
)
def test_databases_of_others_are_imported(run: Run, name: str, session: str, roles: list[str]) -> None:
    file = FILES / f"{name}.db"
    done = run("import", file)
    assert done.code == 0, done.err
    messages = shown(run, session)
    assert [each["role"] for each in messages] == roles
    call = next(each for each in messages if each.get("tool_calls"))
    result = next(each for each in messages if each["role"] == "tool")
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "c1"
    assert ("at" in messages[0]) == name.startswith("agents")
    assert run("import", file, "--json").json[0]["stored"] == 0


@pytest.mark.parametrize(
    "row", ["{", "[]", '{"type": "remove", "data": {"content": ""}}', '{"type": "alien", "data": {}}', "null"]
)
def test_rows_that_cannot_be_read_are_left_out_and_named(run: Run, folder: Path, row: str) -> None:
    shutil.copy(FILES / "langchain.db", folder / "chat.db")
    with closing(sqlite3.connect(folder / "chat.db")) as database:
        database.execute("UPDATE message_store SET message = ? WHERE id = 2", (row,))
        database.commit()
    refused = run("import", "chat.db", "--strict")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "row 2" in refused.err
    done = run("import", "chat.db")
    assert done.code == 0
    assert "cannot be read: 1 row" in done.out
    assert "row 2" in done.out
    assert len(shown(run, "order")) == 4


def test_a_bare_list_may_be_given_an_id(run: Run, folder: Path) -> None:
    (folder / "items.json").write_text(json.dumps(OPENAI))
    assert run("import", "items.json", "--session", "support-7").code == 0
    assert len(shown(run, "support-7")) == 5
    (folder / "two.jsonl").write_text(f"{json.dumps({'messages': OPENAI})}\n{json.dumps({'messages': OPENAI})}")
    assert "holds 2" in run("import", "two.jsonl", "--session", "support-8").err


@pytest.mark.parametrize("content", [b"Dear diary", b"\x89PNG", b"a,b\n1,2", b"SQLite format 3\0broken"])
def test_an_unknown_file_is_told_what_is_taken(run: Run, folder: Path, content: bytes) -> None:
    (folder / "file").write_bytes(content)
    done = run("import", "file")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "ChatGPT" in done.err or "SQLite" in done.err


def test_databases_without_conversations_are_told_apart(run: Run, folder: Path) -> None:
    (folder / "own.jsonl").write_text('{"id": "a", "messages": [{"role": "user", "content": "x"}]}')
    assert run("import", "own.jsonl").code == 0
    assert "reactor-memory copy" in run("import", "reactor-memory.db", "--store", "other.db").err
    with closing(sqlite3.connect(folder / "notes.db")) as database:
        database.execute("CREATE TABLE notes (id INTEGER, text TEXT)")
    assert "SQLiteSession" in run("import", "notes.db").err
    assert "without conversations.json" in run("import", archive(folder), "--store", "other.db").err


def archive(folder: Path) -> Path:
    (folder / "photos.zip").write_bytes(zipped({"photos.json": []}))
    return folder / "photos.zip"


@pytest.mark.parametrize("more", [["x.json"], ["--session", "a"], ["--session-prefix", "p"]])
def test_a_table_of_postgres_is_imported_alone(run: Run, more: list[str]) -> None:
    done = run("import", "postgresql://localhost/chats", *more)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "alone" in done.err


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "/etc", "../x", "a\0"])
def test_a_time_zone_that_no_map_has_is_refused(run: Run, name: str) -> None:
    done = run("import", "postgresql://localhost/chats", "--timezone", name)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "'--timezone': must be the name of a time zone" in done.err


@pytest.mark.parametrize("option", ["--table", "--timezone"])
def test_options_of_tables_go_with_no_file(run: Run, option: str) -> None:
    done = run("import", "x.json", option, "UTC")
    assert (done.code, f"{option} goes with a postgresql:// URL" in done.err) == (2, True)


BROKEN = {
    "a number": 7,
    "no messages": {"uuid": "b", "name": "b", "chat_messages": "none"},
    "a wrong map": {"id": "b", "mapping": {"x": {"message": {"author": 3}}}},
    "a wrong role": {"id": "b", "messages": [{"role": "parrot", "content": "x"}]},
    "nothing known": {"some": "thing"},
}


@pytest.mark.parametrize(("case", "place"), [*zip(BROKEN, (0, 1, 2, 0, 1), strict=True)])
def test_a_conversation_that_cannot_be_read_is_left_out(run: Run, folder: Path, case: str, place: int) -> None:
    whole = [{"id": name, "messages": [{"role": "user", "content": f"I am {name}."}]} for name in ("ann", "ben")]
    (folder / "list.json").write_text(json.dumps([*whole[:place], BROKEN[case], *whole[place:]]))
    refused = run("import", "list.json", "--strict")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"list.json[{place}]" in refused.err
    done = run("import", "list.json", "--no-memory", "--json").json[0]
    assert (done["sessions"], done["stored"], len(done["left_out"])) == (2, 2, 1)
    assert f"list.json[{place}]" in done["left_out"][0]
    assert [each["content"] for each in shown(run, "ben")] == ["I am ben."]


def test_a_list_of_which_nothing_can_be_read_is_refused(run: Run, folder: Path) -> None:
    (folder / "list.json").write_text(json.dumps([BROKEN["a number"], BROKEN["nothing known"]]))
    assert "list.json[0]" in run("import", "list.json").err


def test_a_database_without_a_readable_row_names_one(run: Run, folder: Path) -> None:
    shutil.copy(FILES / "langchain.db", folder / "chat.db")
    with closing(sqlite3.connect(folder / "chat.db")) as database:
        database.execute("UPDATE message_store SET message = '{'")
        database.commit()
    refused = run("import", "chat.db")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "row 1: is not valid JSON" in refused.err


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_broken_line_is_named_by_its_place(run: Run, folder: Path, place: int) -> None:
    lines = [json.dumps({"messages": OPENAI})] * 3
    (folder / "requests.jsonl").write_text("\n".join([*lines[:place], "{broken", *lines[place:]]))
    assert f"requests.jsonl[{place}]: is not valid JSON" in run("import", "requests.jsonl").err


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg"])
def test_a_table_that_cannot_be_reached_is_placed(run: Run, scheme: str) -> None:
    refused = run("import", f"{scheme}://me:s3cret@127.0.0.1:1/shop")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert 'cannot be reached: 127.0.0.1:1, database "shop": the connection was refused' in refused.err
    assert "its address" in refused.err
    assert "s3cret" not in refused.err
    assert "is not an address" in run("import", f"{scheme}://me:s3cret@127.0.0.1:port/shop").err
