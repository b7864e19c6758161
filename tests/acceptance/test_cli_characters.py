"""No command fails for what a terminal, a pipe or a file can hold: every command that prints, under each encoding."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from reactor_memory.cli import commands, main
from reactor_memory.cli.characters import json_for_stdout
from reactor_memory.models import Message
from tests.acceptance.conftest import CHECKOUT, Run, write_sessions

TEXTS = [
    "Grüße 🦊 你好: my order number is A-1042 — “quoted”, 5 € → done…",
    "Naïve café, 12 µs",
    "My sister’s name is Zoë \N{RIGHT-TO-LEFT MARK} and she lives in Łódź.",
]
SESSION = "größe-🦊"
ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-8")
PRINTED = {
    "sessions": [[], ["--json"]],
    "show": [[SESSION], [SESSION, "--json"]],
    "context": [[SESSION], [SESSION, "--json"], [SESSION, "--why"], [SESSION, "--turn", "1"]],
    "search": [[SESSION, "order"], [SESSION, "order", "--json"]],
    "summarize": [[SESSION], [SESSION, "--json"]],
    "facts": [[SESSION], [SESSION, "--json"]],
    "pin": [[SESSION, "--seq", "1"]],
    "pins": [[SESSION], [SESSION, "--json"]],
    "unpin": [[SESSION, "--seq", "1"]],
    "correct": [[SESSION, "ü", "--fact", "ß", "ß"]],
    "retract": [[SESSION, "--fact", "ß", "ß"]],
    "mute": [[SESSION, "--anchor", "ß"], [SESSION, "--category", "DECISION"]],
    "export": [[SESSION]],
    "archive": [[SESSION, "--until", "1"]],
    "restore": [[SESSION]],
    "fork": [[SESSION, "--at", "2"]],
    "doctor": [[], ["--settings"], ["--json"]],
    "migrate": [[]],
    "prune": [["--older-than", "1h"]],
    "keys": [["list"], ["revoke", "ü"]],
    "erase": [[SESSION, "--seq", "1", "--yes"]],
    "delete": [["nobody-ü", "--yes"], [SESSION, "--yes"]],
}
"""Every one prints, or refuses; none of them ends with a traceback."""

ELSEWHERE = {"demo", "eval", "chat", "import", "copy", "bench", "plugin"}
"""Tried below, or by the same way out. What a plug-in prints is its own."""
SERVING = {"serve", "chat-server", "studio", "mcp", "worker"}


@pytest.fixture
def store(run: Run, folder: Path) -> None:
    messages = [Message.user(TEXTS[number % len(TEXTS)]) for number in range(12)]
    run("import", write_sessions(folder / "ü.jsonl", {SESSION: messages}))


class Printed(NamedTuple):
    code: int | str | None
    out: str
    err: str


@pytest.fixture
def under(monkeypatch: pytest.MonkeyPatch) -> Under:
    return Under(monkeypatch)


class Under:
    """Runs a command whose output has an encoding."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, encoding: str, *arguments: str) -> Printed:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
        with self._patch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as ended:
                main(arguments)
        texts = (stream.buffer.getvalue().decode(encoding) for stream in (out, err))  # type: ignore[attr-defined]
        return Printed(ended.value.code, *texts)


@pytest.mark.slow
def test_all_commands_print_under_every_encoding(store: None, under: Under) -> None:
    for name, calls in PRINTED.items():
        for encoding in ENCODINGS if name in ("show", "context") else ENCODINGS[:1]:
            for call in calls:
                done = under(encoding, name, *call)
                assert done.code in (0, 1, 2), (name, call, encoding)
                assert (done.code == 2) == done.err.startswith("error: "), (name, call, encoding, done)
                if "--json" in call:
                    json.loads(done.out)


def test_every_command_is_tried() -> None:
    assert PRINTED.keys() | ELSEWHERE | SERVING == set(commands.list_commands(None))  # type: ignore[arg-type]


@pytest.mark.slow
def test_long_outputs_and_chat_print_in_ascii(folder: Path, under: Under, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_sessions(folder / "talk.jsonl", {SESSION: [Message.user(text) for text in TEXTS]})
    assert under("ascii", "demo", str(file)).code == 0
    assert under("ascii", "import", str(file)).code == 0
    for call in (["copy", "reactor-memory.db", "copy.db"], ["eval", str(file), "--budgets", "300"]):
        done = under("ascii", *call)
        assert done.code == 0, done
    assert json.loads(under("ascii", "eval", str(file), "--budgets", "300", "--json", "-").out)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TEXTS[0]}\n/facts\n/context\n"))
    assert under("ascii", "chat", "talk").code == 0


def test_json_keeps_every_character_in_ascii(store: None, under: Under) -> None:
    for encoding in ENCODINGS:
        shown = json.loads(under(encoding, "show", SESSION, "--json").out)
        assert shown["session"]["session_id"] == SESSION
        assert [each["content"] for each in shown["messages"][:2]] == TEXTS[:2]
        exported = json.loads(under(encoding, "export", SESSION).out)
        assert exported["messages"][0]["content"] == TEXTS[0]


def test_a_reader_gets_lookalikes_of_punctuation(store: None, under: Under) -> None:
    shown = under("ascii", "show", SESSION).out
    assert 'Gr??e ? ??: my order number is A-1042 - "quoted", 5 EUR -> done...' in shown
    assert TEXTS[0] in under("utf-8", "show", SESSION).out
    assert "Grüße" in under("latin-1", "show", SESSION).out


def test_utf_8_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="UTF8"))
    assert json_for_stdout('"ü"') == '"ü"'
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    assert json_for_stdout('"ü🦊"') == r'"\u00fc\ud83e\udd8a"'


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"PYTHONIOENCODING": "cp1252"}, id="windows"),
        pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="posix"),
    ],
)
def test_redirected_processes_print_too(folder: Path, variables: dict[str, str]) -> None:
    file = write_sessions(folder / "talk.jsonl", {"talk": [Message.user(text) for text in TEXTS]})
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), **variables}
    with (folder / "printed").open("wb") as printed:
        done = subprocess.run(
            [sys.executable, "-m", "reactor_memory", "demo", str(file)],
            stdout=printed,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"A long conversation" in (folder / "printed").read_bytes()


@pytest.mark.parametrize("encoding", ["ascii", "us-ascii", "utf-8"])
def test_what_is_said_in_ascii_is_stored_whole(run: Run, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXTS[0].encode()), encoding=encoding))
    assert run("chat", "s").code == 0
    assert run("show", "s", "--json").json["messages"][0]["content"] == TEXTS[0]


def test_a_store_whose_name_is_no_text_is_refused(run: Run) -> None:
    for store in ("\udcff.db", "sqlite:///\udcff.db"):
        refused = run("sessions", "--store", store)
        assert (refused.code, refused.err.count("\n")) == (2, 1), store


FULL = Path("/dev/full")
on_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="this system has no disk that is always full")
TOLD = "error: the output cannot be written: No space left on device\n"


@on_a_full_disk
def test_a_full_disk_is_told_in_one_line(store: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["sessions"], ["show", SESSION, "--json"], ["--help"], ["export", SESSION]):
        assert under_pressure(monkeypatch, *arguments) == (74, "", TOLD), arguments
    assert under_pressure(monkeypatch, "nobody").code == 2


@on_a_full_disk
@pytest.mark.slow
def test_every_command_tells_a_full_disk_in_one_line(
    store: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"": [["--help"], ["--version"]], "demo": [[]], "eval": [["ü.jsonl", "--budgets", "300", "--json", "-"]]}
    for name, calls in (more | PRINTED).items():
        for call in calls:
            done = under_pressure(monkeypatch, *filter(None, [name]), *call)
            assert done.code in (2, 74), (name, call, done)
            assert done.code == 2 or done.err.endswith(TOLD), (name, call, done)
            assert "Traceback" not in done.err, (name, call, done)
            assert done.err.count("error: ") == 1, (name, call, done)


def under_pressure(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Printed:
    """A command whose output goes to a full disk."""
    err = io.StringIO()
    with monkeypatch.context() as patch, FULL.open("w", encoding="utf-8") as full:
        patch.setattr(sys, "stdout", full)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    return Printed(ended.value.code, "", err.getvalue())


@on_a_full_disk
@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("sessions > /dev/full", 74, TOLD),
        ("sessions --json > /dev/full", 74, TOLD),
        ("sessions > /dev/full 2> /dev/full", 74, ""),
        ("nothing 2> /dev/full", 2, ""),
        ("nothing 2>&-", 2, ""),
        ("sessions >&-", 0, ""),
        ("doctor --json --output /dev/full", 2, "error: No such option '--output'."),
        ("export größe-🦊 --output /dev/full", 74, TOLD),
        ("sessions | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("show größe-🦊 | head -c 1 > one; exit ${PIPESTATUS[0]}", 0, ""),
    ],
)
def test_a_process_ends_as_it_should_without_a_reader(
    store: None, folder: Path, line: str, code: int, told: str
) -> None:
    program = f'"{sys.executable}" -m reactor_memory'
    done = subprocess.run(
        ["bash", "-c", f"{program} {line}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUTF8": "1"},
    )
    assert done.returncode == code, done
    assert done.stderr.startswith(told), done
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert told or not done.stderr.strip()
