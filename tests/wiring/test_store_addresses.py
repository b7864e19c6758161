"""Addresses of stores as other programs write them: they work, or the right form is named."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from reactor_memory import InvalidInputError, Settings, open_memory, sync
from reactor_memory.errors import ConfigurationError, StoreClosedError
from tests.scenes.tables import each_row

ROOT = Path(__file__).parents[2]

REFUSED = [
    ("sqlite:///a.db?mode=ro", "sqlite:///file.db"),
    ("sqlite:///a.db?cache=shared&timeout=5", "sqlite:///file.db"),
    ("sqlite+aiosqlite:///a.db?mode=rwc", "sqlite:///file.db"),
    ("file:///a.db", "sqlite:///file.db"),
    ("file:a.db?mode=memory&cache=shared", "memory://"),
    ("file:a.db", "the path alone"),
    ("postgresql+psycopg://host/name", "postgresql://"),
    ("postgresql+psycopg2://host/name", "postgresql://"),
    ("postgres+pg8000://host/name", "postgres://"),
    ("sqlite+pysqlite:///a.db", "sqlite://"),
]


@each_row(("url", "form"), REFUSED)
def test_what_is_refused_names_the_right_form(url: str, form: str, tmp_path: Path) -> None:
    before = {*Path.cwd().iterdir()}
    with pytest.raises((ConfigurationError, InvalidInputError)) as refused, sync.open_memory(url):
        pass
    assert form in str(refused.value)
    assert {*Path.cwd().iterdir()} == before


@each_row(
    ("url", "ours"),
    [
        ("postgresql+asyncpg://u@host/name", "postgresql://u@host/name"),
        ("postgres+asyncpg://u@host/name", "postgres://u@host/name"),
        ("postgres://u@host/name?sslmode=require", "postgres://u@host/name?sslmode=require"),
        ("sqlite+aiosqlite:///a.db", "sqlite:///a.db"),
        ("mongodb+srv://host/name", "mongodb+srv://host/name"),
        ("sqlite:///what%3F.db", "sqlite:///what%3F.db"),
    ],
)
def test_addresses_with_our_drivers_are_ours(url: str, ours: str) -> None:
    assert Settings(store={"url": url}).store.url == ours


def test_a_file_may_have_a_question_mark_in_its_name(tmp_path: Path) -> None:
    with sync.open_memory(tmp_path / "what?.db") as memory:
        memory.save_history("s", ["hi"])
    assert (tmp_path / "what?.db").exists()


def test_without_asyncio_a_sentence_says_what_to_do() -> None:
    """As trio runs it: by hand, without an event loop of asyncio."""
    opening = open_memory("memory://").__aenter__()
    with pytest.raises(InvalidInputError, match=r"trio\.to_thread\.run_sync"):
        opening.send(None)


def test_a_closed_facade_advises_nothing_that_has_to_be_awaited() -> None:
    with sync.open_memory("memory://") as memory:
        pass
    with pytest.raises(StoreClosedError) as closed:
        memory.load_history("s")
    assert "async" not in str(closed.value)


LEFT = """
import asyncio, sys
from reactor_memory import open_memory
kept = []
async def main():
    block = open_memory(sys.argv[1])
    memory = await block.__aenter__()
    if sys.argv[2] == "kept":
        kept.append(block)
    await memory.save_history("s", ["hi"])
    print("saved")
asyncio.run(main())
"""


@each_row(("url", "how"), [("memory://", "dropped"), ("sqlite:///a.db", "kept")])
@pytest.mark.slow
def test_a_run_that_leaves_a_memory_open_prints_no_traceback(url: str, how: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEFT, url, how]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "saved\n", "")


def test_an_open_memory_may_be_closed_by_another_task() -> None:
    async def main() -> None:
        block = open_memory("memory://")
        memory = await asyncio.create_task(block.__aenter__())
        await memory.save_history("s", ["hi"])
        await asyncio.create_task(block.__aexit__(None, None, None))

    asyncio.run(main())
