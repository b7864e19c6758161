"""Commands, run in this process or in one of their own, in an empty folder with no settings."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from reactor_memory.cli import main
from reactor_memory.evaluation.transcripts import to_line
from reactor_memory.models import Message, ToolCall

CHECKOUT = Path(__file__).parents[2]


class Finished(NamedTuple):
    """How a command ended."""

    code: int | str | None
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)


Run: TypeAlias = Callable[..., Finished]
Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the commands."""
    forget_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def forget_settings(patch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("REACTOR_MEMORY_") or name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
            patch.delenv(name)
    patch.delenv("COLUMNS", raising=False)  # as readline leaves it in the workers of xdist


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command to its end."""

    def run(*arguments: object) -> Finished:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return Finished(ended.value.code, *capsys.readouterr())

    log = logging.getLogger("reactor_memory")
    before = list(log.handlers), log.level
    yield run
    log.handlers[:], log.level = before


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a command as a process of its own, which is killed if it outlives the test."""
    with started_commands() as start:
        yield start


@contextmanager
def started_commands() -> Generator[Start]:
    """Starts commands, which are killed if they outlive the block."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "reactor_memory", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        processes.append(process)
        return process

    try:
        yield start
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def write_sessions(path: Path, sessions: dict[str, list[Message]]) -> Path:
    path.write_bytes(b"".join(to_line(session_id, messages) for session_id, messages in sessions.items()))
    return path


def small_talk(length: int) -> list[Message]:
    """Dated messages in turn from user and assistant; the text of each holds its number."""
    make = (Message.user, Message.assistant)
    return [make[number % 2](f"message {number + 1}", created_at=number) for number in range(length)]


def rich_messages() -> list[Message]:
    """One of everything that a message can hold."""
    calls = [
        ToolCall(id="c1", name="book", arguments={"seats": 2, "price": 12.5, "note": None, "big": 2**70}),
        ToolCall(id="c2", name="book", arguments="{malformed", metadata={"signature": "abc"}),
    ]
    return [
        Message.system("be kind 🦊", created_at=-1),
        Message.user("two seats\nplease", name="Ann", author_id="u9", metadata={"deep": {"list": [1, "two", None]}}),
        Message.assistant("", tool_calls=calls, created_at=1_770_000_000_000_001),
        Message.tool("", tool_call_id="c1", name="book", visibility="agent"),
        Message.tool("done", tool_call_id="c2", parts=({"type": "image", "data": "x"}, {"type": "text", "text": "y"})),
        Message(role="agent", content="as said", visibility="system"),
        Message(role="summary", content="", created_at=2**62),
    ]
