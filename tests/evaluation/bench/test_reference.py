"""The reference: short, and the same rows as the library."""

from __future__ import annotations

import ast
import shutil
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from reactor_memory.cli.bench import REFERENCES
from reactor_memory.evaluation.bench import reference_sqlite
from reactor_memory.evaluation.bench.bench_sessions import SAMPLE, TURN
from reactor_memory.evaluation.bench.memories import BUDGET, USER, Memories, memories
from reactor_memory.evaluation.bench.raw import Raw, postgres_raw, sqlite_raw
from reactor_memory.evaluation.bench.reference_commits import Commits
from reactor_memory.models import Message
from reactor_memory.settings.settings import Settings

pytestmark = pytest.mark.anyio

MOST_LINES = 40
SIZE = 60


def lines_of(name: str) -> int:
    """Lines that are neither empty nor comment nor documentation."""
    source = Path(str(import_module(f"reactor_memory.evaluation.bench.{name}").__file__)).read_text()
    body = ast.parse(source).body
    described = (isinstance(body[0], ast.Expr) and body[0].end_lineno) or 0
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in source.splitlines()[described:])


@pytest.mark.parametrize("name", REFERENCES)
def test_it_is_short_enough_to_be_read_at_a_glance(name: str) -> None:
    assert 0 < lines_of(name) <= MOST_LINES


def settings_at(url: str, **sections: Any) -> Settings:
    return Settings(store={"url": url, "auto_migrate": True}, **sections)


async def filled(url: str) -> None:
    """A session with a memory, and the turn that the reference appends."""
    async with memories(partial(settings_at, url)) as opened:
        await opened.take_last.save_history(SAMPLE, TURN, user_id=USER, idempotency_key="k")
        texts = [(Message.user, Message.assistant)[at % 2](f"order {at % 5} is for Ann " * 40) for at in range(SIZE)]
        await opened.take_last.save_history("s", texts, user_id=USER)
        await opened.working.summarize("s", user_id=USER)
        await opened.hierarchical.load_history("s", user_id=USER, budget=BUDGET, query="")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    return f"sqlite:///{tmp_path}/ours.db" if request.param == "sqlite" else request.getfixturevalue("postgres_dsn")


@pytest.fixture
async def both(url: str, tmp_path: Path) -> AsyncIterator[tuple[Memories, Raw]]:
    """The library and the reference on what holds the same."""
    await filled(url)
    if url.startswith("sqlite"):
        for name in ("raw.db", "sync.db"):
            shutil.copyfile(tmp_path / "ours.db", tmp_path / name)
    opening = sqlite_raw(f"{tmp_path}/raw.db", f"{tmp_path}/sync.db") if url.startswith("sqlite") else postgres_raw(url)
    async with memories(partial(settings_at, url)) as opened, opening as raw:
        yield opened, raw


def seqs(rows: Any) -> list[int]:
    """The positions of the rows that are messages: those with a role in the third column."""
    return sorted(row[0] for row in rows if len(row) == 14 and row[2] in ("user", "assistant"))


async def test_the_newest_messages_are_those_of_the_context(both: tuple[Memories, Raw]) -> None:
    opened, raw = both
    context = await opened.take_last.load_history("s", user_id=USER)
    rows: Any = await raw.last("s", 20)
    assert seqs(rows) == [seq for seq in context.report.seqs if seq]
    assert len(rows) == 21


async def test_rows_of_a_memory_are_its_window_and_its_blocks(both: tuple[Memories, Raw]) -> None:
    opened, raw = both
    context = await opened.hierarchical.load_history("s", user_id=USER, budget=BUDGET, query="")
    rows: Any = await raw.memory("s", BUDGET)
    assert context.report.window_start_seq
    assert context.report.tokens["facts"] > 0
    assert seqs(rows) == [seq for seq in context.report.seqs if seq]
    assert len(rows) == len(seqs(rows)) + 3


@pytest.mark.parametrize("way", ["append", "commit"])
async def test_what_it_appends_is_what_the_library_stored(both: tuple[Memories, Raw], way: str) -> None:
    opened, raw = both
    rows = raw.turns.rows("s")
    await getattr(raw, way)(rows)
    stored: Any = await raw.last("s", 2)
    written = sorted((row for row in stored if row[2] in ("user", "assistant")), key=lambda row: row[0])
    assert [row[0] for row in written] == [SIZE + 1, SIZE + 2]
    messages = await opened.take_last.read_messages(SAMPLE, user_id=USER)
    assert [(row[2], row[5], row[11]) for row in written] == [(m.role, m.content, m.token_count) for m in messages]
    assert rows[0][2] is not None
    assert rows[1][2] is None
    assert raw.turns.rows("s")[0][5] == SIZE + 3


async def test_append_to_sqlite_moves_the_counter_as_the_library_does(tmp_path: Path) -> None:
    await filled(f"sqlite:///{tmp_path}/ours.db")
    for name in ("raw.db", "sync.db"):
        shutil.copyfile(tmp_path / "ours.db", tmp_path / name)
    async with sqlite_raw(f"{tmp_path}/raw.db", f"{tmp_path}/sync.db") as raw:
        await raw.append(raw.turns.rows("s"))
    async with memories(partial(settings_at, f"sqlite:///{tmp_path}/raw.db")) as opened:
        assert (await opened.take_last.get_session("s", user_id=USER)).last_seq == SIZE + 2


async def test_cold_load_is_same_on_a_connection_of_its_own(both: tuple[Memories, Raw]) -> None:
    _, raw = both
    rows: Any = await raw.cold("s", 20)
    assert seqs(rows) == list(range(SIZE - 19, SIZE + 1))


async def test_appends_that_wait_together_share_a_commit() -> None:

    written: list[list[object]] = []

    async def commit(rows: list[object]) -> None:
        await anyio.lowlevel.checkpoint()
        written.append(rows)

    commits = Commits(commit)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(commits.append, [number, number])
    assert sorted(number for rows in written for number in rows) == sorted([*range(5), *range(5)])
    assert len(written) < 5


async def test_its_commits_are_as_durable_as_the_library_s(tmp_path: Path) -> None:
    async with sqlite_raw_of(tmp_path) as raw:
        appending: Any = raw.append
        assert await appending.args[0].execute_fetchall("PRAGMA synchronous") == [(2,)]
        assert await appending.args[0].execute_fetchall("PRAGMA journal_mode") == [("wal",)]


def sqlite_raw_of(folder: Path) -> Any:
    """The reference on databases without any message."""
    for name in ("raw.db", "sync.db"):
        connection = sqlite3.connect(folder / name)
        connection.execute(
            "CREATE TABLE messages (group_id, conversation_id, batch_key, batch_fingerprint, batch_size, "
            f"{reference_sqlite.COLUMNS})"
        )
        connection.close()
    return sqlite_raw(f"{folder}/raw.db", f"{folder}/sync.db")
