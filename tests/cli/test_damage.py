"""`doctor` finds every damage that SQLite's own check finds, and says so in words."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reactor_memory import Message, Settings, open_container
from reactor_memory.cli.doctor import examine
from reactor_memory.cli.invocation import Invocation

pytestmark = pytest.mark.anyio

SAMPLE = 12
"""Pages that the fast test damages, the first one included; the slow one damages all."""


async def made(path: Path) -> bytes:
    url = f"sqlite:///{path}"
    async with open_container(Settings(store={"url": url}, search={"enabled": True})) as memory:  # type: ignore[arg-type]
        manager = memory.conversation_manager()
        for number in range(4):
            batch = [Message.user(f"order A-{number} {'word ' * 200}{turn}") for turn in range(15)]
            await manager.save_history(f"s{number}", batch)
        await manager.drain()
    return content_of(path)


def content_of(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def page_size_of(content: bytes) -> int:
    return int.from_bytes(content[16:18], "big")


def damaged(content: bytes, page: int, randomness: random.Random) -> bytes:
    """A page whose beginning holds something else. The header of the file stays: it says where the pages are."""
    begin = page * page_size_of(content) + (100 if page == 0 else 0)
    noise = randomness.randbytes(200)
    return content[:begin] + noise + content[begin + len(noise) :]


def found_by_sqlite(path: Path) -> bool:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
        except sqlite3.DatabaseError:
            return True


async def problems_of(path: Path) -> tuple[str, ...]:
    return (await examine(Invocation(store=f"sqlite:///{path}", user_id=None, as_json=False))).problems


async def check_pages(tmp_path: Path, numbers: list[int], content: bytes) -> tuple[int, list[int]]:
    """How many damages SQLite finds, and those pages of which `doctor` says nothing."""
    found, silent = 0, list[int]()
    for page in numbers:
        path = tmp_path / f"page-{page}.db"
        path.write_bytes(damaged(content, page, random.Random(page)))
        if found_by_sqlite(path):
            found += 1
            problems = await problems_of(path)
            if not any("damaged" in problem for problem in problems):
                silent.append(page)
    return found, silent


async def test_a_whole_database_has_no_problems(tmp_path: Path) -> None:
    await made(tmp_path / "memory.db")
    assert await problems_of(tmp_path / "memory.db") == ()


async def test_a_few_damaged_pages(tmp_path: Path) -> None:
    content = await made(tmp_path / "memory.db")
    pages = len(content) // page_size_of(content)
    numbers = [0, *sorted(random.Random(7).sample(range(1, pages), SAMPLE - 1))]
    found, silent = await check_pages(tmp_path, numbers, content)
    assert found >= SAMPLE / 3
    assert silent == []


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_every_damaged_page(tmp_path: Path) -> None:
    content = await made(tmp_path / "memory.db")
    pages = len(content) // page_size_of(content)
    found, silent = await check_pages(tmp_path, list(range(pages)), content)
    assert found >= pages / 3
    assert silent == []


async def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    content = await made(tmp_path / "memory.db")
    path = tmp_path / "cut.db"
    path.write_bytes(content[: 3 * page_size_of(content)])
    assert any("damaged" in problem for problem in await problems_of(path))


async def test_a_file_without_its_header(tmp_path: Path) -> None:
    content = await made(tmp_path / "memory.db")
    path = tmp_path / "headless.db"
    path.write_bytes(b"\0" * 100 + content[100:])
    assert any("damaged" in problem for problem in await problems_of(path))
