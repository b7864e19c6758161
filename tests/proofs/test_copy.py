"""A copy that is killed at any moment goes on where it stopped, and at its end all is there, once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.core.log.walks import list_groups
from reactor_memory.features.transfer import operations as transfer
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from tests.conformance.suites.transfer import Store, contents, fill
from tests.scenes.stores import postgres_store, sqlite_store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MESSAGES = 20_000
GROUPS = 60
KILLS = 12


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A long session with forks, and many short ones."""
    path = tmp_path / "source.db"
    asyncio.run(with_store(sqlite_store(path), fill_source))
    return path


async def with_store(store: Store, act: Callable[[Store], Any]) -> Any:
    await store.open()
    try:
        return await act(store)
    finally:
        await store.close()


async def fill_source(store: Store) -> None:
    await fill(store)
    for number in range(MESSAGES // 1000):
        await append_messages(store, "long", numbered(1000), idempotency_key=f"batch {number}")
    await store.fork("long", None, at_seq=15_000, fork_id="long~fork", now=wall_clock())
    await append_messages(store, "long~fork", numbered(3000))
    for number in range(GROUPS):
        await append_messages(store, f"short {number}", numbered(5), user_id="u")


@pytest.mark.timeout(300)
def test_a_killed_copy_goes_on_in_sqlite(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "target.db"
    copy_through_kills(source, str(path), lambda: sqlite_store(path))


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_a_killed_copy_goes_on_in_postgres(source: Path, postgres_dsn: str) -> None:
    copy_through_kills(source, postgres_dsn, lambda: postgres_store(postgres_dsn))


def copy_through_kills(source: Path, url: str, target: Callable[[], Store]) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    asyncio.run(with_store(target(), nothing))
    killed = sum(kill_while_it_copies(source, url, target, chance) for _ in range(KILLS))
    assert killed >= 2
    finished = subprocess.run(command(source, url), cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(finished.stdout)["messages"] == MESSAGES + 3000 + 5 * GROUPS + 24
    expected = asyncio.run(with_store(sqlite_store(source), contents))
    assert asyncio.run(with_store(target(), contents)) == expected
    again = subprocess.run(command(source, url), cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["copied"] == 0


def command(source: Path, url: str) -> list[str]:
    return [sys.executable, "-m", "reactor_memory", "copy", str(source), url, "--json"]


async def nothing(store: Store) -> None:
    """Only the schema is made."""


def kill_while_it_copies(source: Path, url: str, target: Callable[[], Store], chance: random.Random) -> bool:
    """Kill a copy some time after its first message arrived; whether it was still at work."""
    before = asyncio.run(with_store(target(), arrived))
    with subprocess.Popen(command(source, url), cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            asyncio.run(with_store(target(), lambda store: until_more(store, before, process)))
            time.sleep(chance.uniform(0, 0.1))  # noqa: TID251 - the moment is the point
            return process.poll() is None
        finally:
            process.kill()


async def until_more(store: Store, before: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and await arrived(store) <= before:  # noqa: ASYNC110 - another process is at work
        await asyncio.sleep(0.01)


async def arrived(store: Store) -> int:
    """How many messages the target shows, of how many sessions."""
    groups = [
        await store.database.read(transfer.export_group, group_id)
        for group_id in await store.database.read(list_groups, limit=10_000)
    ]
    return sum(1 + stored.message_count for group in groups for stored in group)
