"""A session is named by its id, by the beginning of it, or as the last one: everywhere on the command line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from reactor_memory.cli import commands
from reactor_memory.cli.session_names import SessionCommand
from reactor_memory.models import Message
from tests.acceptance.conftest import Run, write_sessions

FOX = "3f2a9c1e-0000-4000-8000-000000000001"
BEAR = "3f2b9c1e-0000-4000-8000-000000000002"
OWN_NAMES = "trip-2024", "trip-2025", "s10"

REST = {
    "search": ["number"],
    "correct": ["7", "--fact", "a", "b"],
    "retract": ["--fact", "a", "b"],
    "pin": ["--seq", "1"],
    "unpin": ["--seq", "1"],
    "fork": ["--at", "2"],
    "delete": ["--yes"],
    "erase": ["--seq", "1", "--yes"],
}
"""What these need beside a session."""


def named() -> list[str]:
    """The commands that are given a session; `chat` has tests of its own."""
    found = {name: commands.get_command(None, name) for name in commands.list_commands(None)}  # type: ignore[arg-type]
    return [name for name, command in found.items() if isinstance(command, SessionCommand) and name != "chat"]


@pytest.fixture
def some(run: Run, folder: Path) -> None:
    """Two sessions with generated ids and three with names, the fox used last."""
    ids = (BEAR, *OWN_NAMES, FOX)
    for session_id in ids:
        messages = [Message.user(f"number {number} of {session_id}") for number in range(2)]
        run("import", write_sessions(folder / "some.jsonl", {session_id: messages}))


def test_every_command_with_a_session_takes_them(folder: Path) -> None:
    assert {"show", "context", "facts", "export", "delete", "erase", "archive", "summarize", "pins"} <= set(named())
    for name in commands.list_commands(None):  # type: ignore[arg-type]
        command = commands.get_command(None, name)  # type: ignore[arg-type]
        takes_session = any(each.name == "session" for each in command.params if each.param_type_name == "argument")  # type: ignore[union-attr]
        assert takes_session == isinstance(command, SessionCommand), name


def test_all_do_the_same_by_id_prefix_and_last(run: Run, some: None) -> None:
    for name in named():
        if name in ("delete", "fork", "erase", "unpin", "archive", "restore"):  # do something else the second time
            continue
        whole = run(name, FOX, *REST.get(name, []))
        assert run(name, "3f2a", *REST.get(name, [])) == whole, name
        assert run(name, "--last", *REST.get(name, [])) == whole, name


def test_an_exact_id_comes_before_a_longer_one(run: Run, folder: Path) -> None:
    sessions = {each: [Message.user(f"I am {each}.")] for each in ("trip", "trip-1", "trip-2")}
    run("import", write_sessions(folder / "f.jsonl", sessions))
    assert run("show", "trip", "--json").json["session"]["session_id"] == "trip"
    assert run("show", "trip-", "--json").code == 2


def test_an_ambiguous_prefix_lists_some_matches(run: Run, some: None, folder: Path) -> None:
    for name in named():
        refused = run(name, "3f2", *REST.get(name, []))
        assert refused == (2, "", f"error: several sessions begin with '3f2': {FOX}, {BEAR}; give more of the id\n"), (
            name
        )
    many = {f"many-{number}": [Message.user("hello")] for number in range(9)}
    run("import", write_sessions(folder / "many.jsonl", many))
    assert "many-0, many-1, many-2, many-3, many-4, ...; give more" in run("show", "many").err


def test_forks_are_named_by_the_beginnings_of_both_parts(run: Run, some: None) -> None:
    fork = run("fork", "3f2a", "--at", "2").out.strip()
    assert fork.startswith(f"{FOX}~")
    for given in (fork, fork[:-4], f"3f2a~{fork.partition('~')[2][:5]}", "3f2a~"):
        assert run("show", given, "--json").json["session"]["session_id"] == fork
    assert run("show", "3f2a", "--json").json["session"]["session_id"] == FOX


def test_destroying_asks_with_the_full_id(run: Run, some: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for arguments, question in (
        (["delete", "3f2b"], f"Delete {BEAR} (2 messages) and its forks?"),
        (["erase", "--last", "--seq", "1"], f"Destroy messages 1 of {FOX} and of its forks for good?"),
    ):
        monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
        refused = run(*arguments)
        assert (refused.code, refused.out) == (1, "")
        assert question in refused.err
    assert run("delete", "3f2b", "--yes").out == f"deleted {BEAR}\n"


def test_destroying_wants_more_than_a_few_characters(run: Run, some: None) -> None:
    for arguments in (["delete", "s1", "--yes"], ["erase", "s1", "--seq", "1", "--yes"]):
        refused = run(*arguments)
        assert (refused.code, refused.err) == (
            2,
            "error: 's1' begins 's10': give at least 4 characters of an id here\n",
        )
    assert run("delete", "s10", "--yes").code == 0
    assert "s10" in run("delete", "s10", "--yes").err


def test_a_deleted_id_never_stands_for_another(run: Run, some: None, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"trip": [Message.user("Hello.")]}))
    run("delete", "trip-2025", "--yes")
    run("delete", "trip", "--yes")
    assert run("delete", "trip", "--yes").code == 2
    assert run("show", "trip").code == 2
    assert run("show", "trip-2024").code == 0


def test_users_name_only_what_they_may_open(run: Run, folder: Path) -> None:
    run("import", "--user", "ann", write_sessions(folder / "a.jsonl", {"trip-a": [Message.user("Ann's.")]}))
    run("import", "--user", "ben", write_sessions(folder / "b.jsonl", {"trip-b": [Message.user("Ben's.")]}))
    assert "Ann's." in run("show", "trip", "--user", "ann").out
    assert "Ann's." in run("show", "--last", "--user", "ann").out
    assert "Ben's." in run("show", "--last").out
    assert run("show", "--last", "--user", "eve") == (2, "", "error: --last: eve has none\n")


def test_the_last_one_is_no_beginning(run: Run, some: None) -> None:
    both = run("show", "--last", "s10")
    assert (both.code, both.out) == (2, "")
    assert "give SESSION or --last, not both" in both.err


def test_an_empty_store_has_no_last_session(run: Run, folder: Path) -> None:
    run("migrate")
    assert run("show", "--last") == (2, "", "error: --last: there is no session yet\n")


def test_a_chat_goes_on_where_an_id_was_generated(run: Run, some: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("3f2b", "--last", "trip", "s1"):
        monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
        assert run("chat", given).code == 0
    listed = {each["session_id"]: each["last_seq"] for each in run("sessions", "--json").json["sessions"]}
    assert listed == {FOX: 2, BEAR: 6, "trip-2024": 2, "trip-2025": 2, "s10": 2, "trip": 2, "s1": 2}


def test_copies_take_the_beginning_too(run: Run, some: None) -> None:
    assert run("copy", "reactor-memory.db", "copy.db", "--session", "3f2a").code == 0
    assert [each["session_id"] for each in run("sessions", "--store", "copy.db", "--json").json["sessions"]] == [FOX]


def test_copies_take_the_last_one_too(run: Run, some: None) -> None:
    assert run("copy", "reactor-memory.db", "copy.db", "--last").code == 0
    newest = run("sessions", "--json").json["sessions"][0]["session_id"]
    assert [each["session_id"] for each in run("sessions", "--store", "copy.db", "--json").json["sessions"]] == [newest]
    assert "--last without" in run("copy", "reactor-memory.db", "copy.db", "--last", "--session", "3f2a").err


def test_ids_stay_whole_in_tables(run: Run, some: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fork", "3f2a", "--at", "2")
    for columns in ("80", "100", "72"):
        monkeypatch.setenv("COLUMNS", columns)
        for command in (["sessions"], ["prune", "--older-than", "1h"]):
            lines = run(*command).out.splitlines()
            assert all(len(line) <= int(columns) and line == line.rstrip() for line in lines), (columns, lines)
        listed = run("sessions").out
        assert all(f"\n{each} " in listed for each in (FOX, BEAR)), listed
        assert f"\n{FOX}~" in listed
