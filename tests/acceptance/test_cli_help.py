"""Help, exit codes and what a command prints when it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import reactor_memory
from reactor_memory.cli import commands
from tests.acceptance.conftest import CHECKOUT, Run, Start, small_talk, write_sessions
from tests.scenes.tables import each_row

COMMANDS = (
    "demo",
    "chat",
    "import",
    "export",
    "copy",
    "sessions",
    "show",
    "context",
    "search",
    "facts",
    "correct",
    "retract",
    "mute",
    "pin",
    "unpin",
    "pins",
    "summarize",
    "fork",
    "archive",
    "restore",
    "delete",
    "erase",
    "prune",
    "eval",
    "bench",
    "migrate",
    "worker",
    "keys",
    "mcp",
    "serve",
    "chat-server",
    "studio",
    "plugin",
    "doctor",
)


def test_what_is_missing_is_told_with_the_usage(run: Run) -> None:
    for command in ("show", "context", "facts", "delete"):
        told = f"error: Missing argument 'SESSION'. Usage: reactor-memory {command} [OPTIONS] SESSION\n"
        assert run(command) == (2, "", told)
    assert "Usage: reactor-memory fork [OPTIONS] SESSION" in run("fork", "s").err


def test_errors_on_a_terminal_break_between_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    lines = run("show", "s", "--store", "none/x.db").err.splitlines()
    assert " ".join(lines) == "error: store: the folder none does not exist; make it, or name another file"
    assert len(lines) > 1
    assert all(len(line) <= 40 for line in lines)


UNCOMMON = {
    "bench": ("--store", "--json"),
    "copy": ("FROM_URL TO_URL", "--user ID", "--json"),
    "chat": ("--store URL", "--user ID"),
    "chat-server": ("--store URL", "--user ID", "--dev"),
    "keys": ("create", "list", "revoke"),
    "mcp": ("--store URL", "--user ID"),
    "plugin": ("COMMAND",),
    "serve": ("--store URL", "--user ID", "--dev"),
    "studio": ("--store URL", "--port", "--write", "--background"),
}
"""The commands that do not have all of the common options."""

HELP_IN_A_FRESH_PROCESS = """
import contextlib, io, json, sys
from reactor_memory.cli import main

with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
heavy = ("reactor_memory.wiring.container", "reactor_memory.wiring.opening",
         "reactor_memory.settings.settings", "rich", "pydantic", "sqlalchemy",
         "alembic", "asyncpg", "litestar", "uvicorn", "uvloop", "prometheus_client")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


@each_row(
    "arguments",
    [
        ["--help"],
        ["demo", "--help"],
        ["chat", "--help"],
        ["context", "--help"],
        ["doctor", "--help"],
        ["eval", "--help"],
        ["bench", "--help"],
        ["serve", "--help"],
    ],
)
@pytest.mark.slow
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP_IN_A_FRESH_PROCESS, *arguments], cwd=CHECKOUT, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_the_help_lists_every_command_with_a_line(run: Run) -> None:
    shown = run("--help")
    assert shown.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in shown.out
    assert set(COMMANDS) == set(commands.list_commands(None))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run: Run, name: str) -> None:
    shown = run(name, "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: reactor-memory {name} [OPTIONS]")
    common = UNCOMMON.get(name, ("--store URL", "--user ID", "--json"))
    for option in common:
        assert option in shown.out


def test_no_command_shows_the_help(run: Run) -> None:
    shown = run()
    assert shown.code == 2
    assert "Commands:" in shown.err


def test_the_version(run: Run) -> None:
    assert run("--version").out == f"reactor-memory, version {reactor_memory.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["walk"], "No such command 'walk'."),
        (["sesions"], "No such command 'sesions'; did you mean sessions?"),
        (["show"], "Missing argument 'SESSION'."),
        (["context", "s", "--budget", "none"], "Invalid value for '--budget': 'none' is not a valid integer range."),
        (["context", "s", "--budget", "0"], "Invalid value for '--budget': 0 is not in the range x>=1."),
        (["context", "s"], "store: there is no database reactor-memory.db; name another with --store"),
        (["sessions", "--store", "mysql://x"], "store.url: no database is called 'mysql'; there are: "),
        (["sessions", "--store", "sqlite://"], "store.url: names no file: write sqlite:///file.db"),
        (["import", "nothing.jsonl"], "nothing.jsonl: cannot be read: No such file or directory"),
        (["demo", "nothing.jsonl"], "nothing.jsonl: cannot be read: No such file or directory"),
        (["show", "a\nb", "--store", "memory://"], "session_id: contains a control character"),
    ],
)
def test_what_is_refused_gets_one_line_and_leaves_nothing(
    run: Run, folder: Path, arguments: list[str], problem: str
) -> None:
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith(f"error: {problem}")
    assert refused.err.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_a_broken_setting_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABELD", "true")
    refused = run("sessions")
    assert refused.code == 2
    assert refused.err.startswith("error: summary.enabeld: is no setting")


def test_a_file_that_is_no_database_is_refused(run: Run, folder: Path) -> None:
    (folder / "notes.txt").write_text("not a database " * 100)
    refused = run("sessions", "--store", "notes.txt")
    assert refused.code == 2
    assert refused.err.startswith("error: store: ")
    assert (folder / "notes.txt").read_text() == "not a database " * 100


@pytest.mark.slow
def test_command_runs_as_a_module_and_refuses_without_a_traceback(start: Start) -> None:
    process = start("show", "s1", "--store", "sqlite:///nothing.db")
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out) == (2, "")
    assert err == "error: store: there is no database nothing.db; name another with --store\n"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(run: Run, start: Start, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(2000)})
    run("import", file, "--no-memory", "--store", "log.db")
    process = start("show", "s1", "--all", "--store", "log.db")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("s1")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=200) == 0
