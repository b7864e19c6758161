"""Starting, reading and killing the processes of the proofs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def agent_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `tests.proofs.agent_process`; killed at the end of the block if it still runs."""
    with module_process("tests.proofs.agent_process", *arguments) as process:
        yield process


@contextmanager
def module_process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs this module; killed at the end of the block if it still runs."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str], word: str) -> str:
    """The next line that begins with `word`; the lines before it are lost."""
    return read_until(process, word)[-1]


def read_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """The lines up to the next one that begins with `word`."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(f"{word} ") or line == f"{word}\n":
            return lines
    assert process.stderr is not None
    raise AssertionError(f"it ended without {word!r}: {process.stderr.read()}")


def rest(process: subprocess.Popen[str]) -> list[str]:
    """What a process that ended, or was killed, had still written; a line that was cut off is left out."""
    assert process.stdout is not None
    return [line for line in process.stdout if line.endswith("\n")]
