"""What a newcomer does first, from the wheel in an empty folder, as the pages say it.

The agent of LangChain is run by the tests of the adapters, whose environment has LangChain.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installed.conftest import CHECKOUT, Run

pytestmark = pytest.mark.slow

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
FIRST_EXAMPLE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]


def test_an_agent_that_remembers(site: Path, run_python: Run) -> None:
    done = run_python([site], "-c", FIRST_EXAMPLE)
    assert done.stdout.splitlines()[-1] == "It was A-1042.", done.stderr
    told = run_python([site], "-m", "reactor_memory", "facts", "session-1", "--store", "agent.db")
    assert "A-1042" in told.stdout


def test_a_chat_of_ones_own_is_imported_and_looked_at(site: Path, run_python: Run, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "My flight is LH 441."}, {"role": "assistant", "content": "Noted."}]
    (tmp_path / "chats.json").write_text(json.dumps(said), encoding="utf-8")
    for arguments in (("import", "chats.json"), ("sessions",), ("context", "chats")):
        done = run_python([site], "-m", "reactor_memory", *arguments, "--store", "mine.db")
        assert done.returncode == 0, done.stderr
    assert "My flight is LH 441." in done.stdout


@pytest.fixture
def served(site: Path, tmp_path: Path) -> Iterator[str]:
    """What `serve --dev` prints until it is ready."""
    command = [sys.executable, "-m", "reactor_memory", "serve", "--dev", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        lines = list[str]()
        for line in process.stdout:
            lines.append(line)
            if "keys create --help" in line:
                break
        yield "".join(lines)
        process.send_signal(signal.SIGTERM)


def test_a_service_with_a_token(served: str) -> None:
    exported = re.search(r"export MEMORY=(\S+) TOKEN=(\S+)", served)
    assert exported
    page = re.search(r"goes on in (\S+),", served)
    assert page
    assert "# Run the HTTP service" in Path(page[1]).read_text(encoding="utf-8")
    headers = {"Authorization": f"Bearer {exported[2]}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{exported[1]}/v1/user/conversations", data=b'{"title": "Trip to Lisbon"}', headers=headers
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert json.load(answer)["title"] == "Trip to Lisbon"


@pytest.mark.postgres
def test_an_agent_on_postgresql(site: Path, run_python: Run, empty_postgres_dsn: str) -> None:
    migrated = run_python([site], "-m", "reactor_memory", "migrate", "--store", empty_postgres_dsn)
    assert migrated.returncode == 0, migrated.stderr
    done = run_python([site], "-c", FIRST_EXAMPLE.replace('"agent.db"', repr(empty_postgres_dsn)))
    assert done.stdout.splitlines()[-1] == "It was A-1042.", done.stderr
