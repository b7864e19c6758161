"""What `import` shows of its progress: a bar as wide as the terminal, without colours if asked; nothing elsewhere."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from reactor_memory.cli import main
from tests.acceptance.conftest import Run, small_talk, write_sessions

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m")


class Shown(NamedTuple):
    code: int | str | None
    text: str

    @property
    def lines(self) -> list[str]:
        return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", self.text)) if line.strip()]


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Shown:
    """A command whose stderr is a terminal."""
    ours, theirs = pty.openpty()
    read = bytearray()

    def listen() -> None:
        try:
            while part := os.read(ours, 4096):
                read.extend(part)
        except OSError:  # the other side was closed
            pass

    listener = Thread(target=listen)
    listener.start()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        patch.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    listener.join(5)
    os.close(ours)
    return Shown(ended.value.code, read.decode())


@pytest.fixture
def file(folder: Path) -> str:
    return write_sessions(folder / "talks.jsonl", {f"s{number}": small_talk(12) for number in range(3)}).name


@pytest.mark.parametrize("columns", [80, 30, 12])
def test_a_terminal_gets_a_bar_of_its_width(run: Run, file: str, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_terminal(monkeypatch, "import", file)
    assert shown.code == 0
    assert max(map(cell_len, shown.lines)) <= columns
    assert columns < 80 or any("talks.jsonl" in line and "/36" in line for line in shown.lines)
    assert columns < 80 or any("memory" in line and "/3" in line for line in shown.lines)
    assert COLOUR.search(shown.text)


def test_no_color_leaves_the_bar_without_colours(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(monkeypatch, "import", file)
    assert any("talks.jsonl" in line for line in shown.lines)
    assert not COLOUR.search(shown.text)


def test_a_terminal_without_control_codes_gets_none(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = on_terminal(monkeypatch, "import", file)
    assert shown.code == 0
    assert "\x1b[" not in shown.text


def test_a_pipe_gets_the_result_alone(run: Run, file: str) -> None:
    done = run("import", file)
    assert done.code == 0
    assert done.err == ""
    assert "talks.jsonl" in done.out
    assert "\x1b" not in done.out
    assert run("import", file, "--json").json[0]["stored"] == 0
