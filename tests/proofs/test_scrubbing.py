"""What was destroyed is gone from the bytes of a SQLite database, or whoever destroyed it is told that it is not."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from time import monotonic

import anyio
import httpx2
import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.cli import main
from reactor_memory.client import MemoryServiceClient
from reactor_memory.features.erasure.models import ErasedMessages, ErasedUser
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.models.requests import DeletedSessions
from tests.acceptance.scenes import settings
from tests.server.running import running_service

pytestmark = [pytest.mark.anyio]

MARKER = "zyxmarker"
QUICK = {"poll_seconds": 0.05, "backoff_seconds": 0.1, "max_backoff_seconds": 0.5}


@asynccontextmanager
async def opened(folder: Path, **background: object) -> AsyncGenerator[Memory]:
    async with open_memory(settings(f"sqlite:///{folder}/memory.db", background={**QUICK, **background})) as memory:
        yield memory


async def told(memory: Memory, session_id: str, *, user_id: str, mark: str = MARKER) -> None:
    said = [Message.user(f"{mark} {number}") for number in range(12)]
    said[1::2] = [Message.assistant(f"noted {mark}") for _ in range(6)]
    await memory.save_history(session_id, said, user_id=user_id)
    await memory.drain()


def traces_in(folder: Path, mark: str = MARKER) -> dict[str, int]:
    """Also of the log beside the file, and of what coordinates readers."""
    found = {path.name: path.read_bytes().count(mark.encode()) for path in folder.glob("memory.db*")}
    return {name: traces for name, traces in found.items() if traces}


@contextmanager
def read_transaction(folder: Path) -> Generator[None]:
    """Of another process: one that reads and goes on reading."""
    with closing(sqlite3.connect(folder / "memory.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        yield


@contextmanager
def readers_in_a_loop(folder: Path, *, seconds: float) -> Generator[None]:
    """Two, of which one always begins before the other ends."""
    ending = threading.Event()

    def read() -> None:
        with closing(sqlite3.connect(folder / "memory.db", isolation_level=None)) as connection:
            while not ending.is_set():
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM messages").fetchall()
                ending.wait(seconds)
                connection.execute("COMMIT")

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
        ending.wait(seconds / 2)
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


async def until_gone(folder: Path, *, seconds: float = 60.0) -> None:
    ends = monotonic() + seconds
    while traces := traces_in(folder):
        assert monotonic() < ends, traces
        await anyio.sleep(0.05)


async def problems(memory: Memory) -> list[str]:
    """Of `doctor`, about what is left."""
    health = await memory.container.message_store().check()
    return [text for label, text in health.details if label == "left to destroy"]


async def erase_messages(memory: Memory) -> ErasedMessages:
    return await memory.erasure.erase("s", seq=range(1, 13), user_id="ann")


async def erase_user(memory: Memory) -> ErasedUser:
    return await memory.erasure.erase_user("ann")


async def delete(memory: Memory) -> DeletedSessions:
    return await memory.delete("s", user_id="ann")


async def prune(memory: Memory) -> DeletedSessions:
    return await memory.container.pruner().prune(older_than_seconds=-1)


@pytest.mark.parametrize("destroy", [erase_messages, erase_user, delete, prune])
async def test_who_meets_a_reader_is_told_what_is_left(tmp_path: Path, destroy: object) -> None:
    async with opened(tmp_path) as memory:
        await told(memory, "s", user_id="ann")
        with read_transaction(tmp_path):
            done = await destroy(memory)  # type: ignore[operator]
            assert (done.is_scrubbed, done.left) == (False, ("files",))
            assert traces_in(tmp_path)
            assert (await problems(memory))[0].startswith("files of the database")
        await until_gone(tmp_path)
        await memory.drain()
        assert await problems(memory) == []


@pytest.mark.parametrize("destroy", [erase_messages, erase_user, delete, prune])
async def test_who_meets_nobody_has_destroyed_every_byte(tmp_path: Path, destroy: object) -> None:
    async with opened(tmp_path, enabled=False) as memory:
        await told(memory, "s", user_id="ann")
        assert traces_in(tmp_path)
        done = await destroy(memory)  # type: ignore[operator]
        assert (done.is_scrubbed, done.left) == (True, ())
        assert traces_in(tmp_path) == {}
        assert await problems(memory) == []


async def test_the_next_process_goes_on_where_none_worked(tmp_path: Path) -> None:
    """The reader outlives the process, which does no background work: closing it empties nothing."""
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as connection:
        async with opened(tmp_path, enabled=False) as memory:
            await told(memory, "s", user_id="ann")
            connection.execute("BEGIN")
            connection.execute("SELECT COUNT(*) FROM messages").fetchone()
            assert not (await erase_user(memory)).is_scrubbed
        connection.execute("COMMIT")
        assert traces_in(tmp_path)
        async with opened(tmp_path):
            await until_gone(tmp_path)


async def test_notes_of_a_user_without_sessions_are_scrubbed(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        note = Notes(user_id="ann", agent_name="a", version=1, text=f"{MARKER} likes tea")
        assert await memory.container.database().write(note_rows.put_notes, note)
        with read_transaction(tmp_path):
            assert not (await erase_user(memory)).is_scrubbed
            assert traces_in(tmp_path)
        await until_gone(tmp_path)


def test_the_command_says_what_is_left_and_exits_with_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def exit_code(*command: str) -> object:
        with pytest.raises(SystemExit) as ended:
            main([*command, *store])
        return ended.value.code

    store = ["--store", str(tmp_path / "memory.db"), "--user", "ann"]

    async def fill() -> None:
        async with opened(tmp_path) as memory:
            for session_id in ("s", "t"):
                await told(memory, session_id, user_id="ann")

    anyio.run(fill)
    with read_transaction(tmp_path):
        for command in (["delete", "s", "--yes"], ["erase", "t", "--seq", "1", "--yes"], ["erase", "--yes"]):
            assert exit_code(*command) == 3
            assert "not gone yet: files" in capsys.readouterr().out
    assert exit_code("erase", "--yes") == 0
    assert traces_in(tmp_path) == {}


@pytest.mark.slow
async def test_the_service_and_its_client_say_what_is_left(tmp_path: Path) -> None:
    sections = {"store": {"delete_grace_days": 0}, "background": QUICK}
    async with running_service(f"sqlite:///{tmp_path}/memory.db", **sections) as service:
        transport = httpx2.ASGITransport(service.app)
        async with MemoryServiceClient("http://test", token=service.token("ann"), transport=transport) as client:
            for _ in range(2):
                made = await client.create_conversation(title=MARKER)
                with read_transaction(tmp_path):
                    gone = await client.delete_conversation(made.id)
                    assert (gone.is_scrubbed, gone.left) == (False, ["files"])
            await until_gone(tmp_path)
            assert (await client.delete_conversation((await client.create_conversation(title=MARKER)).id)).is_scrubbed


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.001, 0.4])
async def test_nobody_is_told_done_while_bytes_are_left(tmp_path: Path, seconds: float) -> None:
    """Fifteen users are erased and fifteen sessions deleted while two connections read in a loop. Short readers are
    waited for, long ones are not.
    """
    marks = [f"{MARKER}{number:02d}" for number in range(30)]
    async with opened(tmp_path, max_backoff_seconds=300.0, poll_seconds=1.0, backoff_seconds=1.0) as memory:
        for number, mark in enumerate(marks):  # ids of users and sessions stay
            await told(memory, f"s{number}", user_id=f"u{number}", mark=mark)
        done = 0
        with readers_in_a_loop(tmp_path, seconds=seconds):
            for number, mark in enumerate(marks):
                user = f"u{number}"
                act = memory.erasure.erase_user(user) if number % 2 else memory.delete(f"s{number}", user_id=user)
                answer: ErasedUser | DeletedSessions = await act
                if answer.is_scrubbed:
                    assert traces_in(tmp_path, mark) == {}
                    done += 1
                else:
                    assert answer.left == ("files",)
        assert done if seconds < 0.1 else done < len(marks)
        await until_gone(tmp_path)
        await anyio.sleep(0.2)
        await memory.drain()
        assert await problems(memory) == []
