"""What the pages about the service show to type works, one thing after the other, on a service as it starts it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest

from reactor_memory.server.problems import KINDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "http-service.md"
PAGES = [PAGE, ROOT / "docs" / "search.md", ROOT / "docs" / "response-streams.md"]
"""The later ones go on with what the first one made."""

COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
NOT_HERE = ("pip install", "export MEMORY")
"""What is done otherwise: the package is there, and the service tells its address and a token."""

STRICT = """
set -euo pipefail
curl() { command curl --fail-with-body "$@"; }
reactor-memory() { "$PYTHON" -m reactor_memory "$@"; }
"""


@contextmanager
def service_for_development(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which somebody tries a running service."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    command = [sys.executable, "-m", "reactor_memory", "serve", "--dev", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield environment | _told("".join(takewhile(_is_news, process.stdout)))
        finally:
            process.terminate()
            process.wait(30)


def _is_news(line: str) -> bool:
    return not line.startswith("curl")


def _told(text: str) -> dict[str, str]:
    address, token = re.search(r"Serving on (\S+),", text), re.search(r"export MEMORY=\S+ TOKEN=(\S+)", text)
    assert address
    assert token
    return {"MEMORY": address[1], "TOKEN": token[1]}


def test_every_code_of_an_error_is_listed() -> None:
    page = PAGE.read_text()
    assert [kind.code for kind in KINDS if f"`{kind.code}`" not in page] == []


@pytest.mark.slow
def test_what_is_shown_to_type_works(tmp_path: Path) -> None:
    blocks = [block for page in PAGES for block in COMMANDS.findall(page.read_text()) if not block.startswith(NOT_HERE)]
    assert len(blocks) > 10
    with service_for_development(tmp_path) as environment:
        done = subprocess.run(
            ["bash", "-c", STRICT + "\n".join(blocks)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "event: piece" in done.stdout
