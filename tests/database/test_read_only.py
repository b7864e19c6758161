"""A database that cannot be written is read all the same, and who saves learns why that fails."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Message, Settings, open_container

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
READER = """
import contextlib, io, json, logging, sys
import anyio
from reactor_memory import Message, Settings, open_container
from reactor_memory.cli import main

paths, commands = json.loads(sys.argv[1]), sys.argv[2:]

async def read(path, told):
    async with open_container(Settings(store={"url": f"sqlite:///{path}"})) as memory:
        manager = memory.conversation_manager()
        contexts = [await manager.load_history("s", message=Message.user("order A-1?")) for _ in range(3)]
        told["messages"] = len(contexts[0].messages)
        try:
            await manager.save_history("s", [Message.user("more")])
        except Exception as error:
            told["error"] = [type(error).__name__, str(error)]
        await anyio.sleep(0.3)

logging.basicConfig(stream=sys.stderr, level=logging.INFO)
logging.getLogger("asyncio").setLevel("WARNING")

def ask(path, told):
    anyio.run(read, path, told)
    logging.disable()
    for command in commands:
        output = io.TextIOWrapper(io.BytesIO(), write_through=True)
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                main([*command.split(), "--store", f"sqlite:///{path}"])
        except SystemExit as end:
            told["commands"].append([end.code, output.buffer.getvalue().decode()])
    logging.disable(logging.NOTSET)
    return told

print(json.dumps([ask(path, {"commands": []}) for path in paths]))
"""
READING = ("sessions --json", "show s", "context s", "facts s", "export s")
WRITING = "delete s --yes"


def powerless() -> None:
    """The superuser writes whatever the rights on a file say, unless it gives that up."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP, which binds the program that is started


def run(paths: Iterable[Path], *commands: str, copies: Path | None = None) -> tuple[list[dict[str, Any]], str]:
    """What a process that has no power over rights reads of each database, and what it logs."""
    done = subprocess.run(
        [sys.executable, "-c", READER, json.dumps([str(path) for path in paths]), *commands],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | ({"TMPDIR": str(copies)} if copies else {}),
        preexec_fn=powerless if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


async def fill(path: Path) -> None:
    async with open_container(Settings(store={"url": f"sqlite:///{path}"})) as memory:  # type: ignore[arg-type]
        manager = memory.conversation_manager()
        turns = [
            [Message.user(f"order A-{number} costs {number} EUR"), Message.assistant("ok")] for number in range(30)
        ]
        await manager.save_history("s", chain.from_iterable(turns))
        await manager.drain()


def shut(path: Path) -> None:
    """Neither the files nor their folder can be written."""
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)


def plain(path: Path) -> None:
    """A file that was closed in good order."""
    shut(path)


def in_open_folder(path: Path) -> None:
    """Only the file cannot be written."""
    path.chmod(0o444)


def with_log(path: Path) -> None:
    """As a process that was killed leaves it: the newest rows stand in the log beside the file."""
    leave_in_log(path)
    path.with_name(f"{path.name}-shm").unlink()
    shut(path)


def with_log_and_index(path: Path) -> None:
    """As `with_log`, and the index of the log is there, too."""
    leave_in_log(path)
    shut(path)


def with_log_in_open_folder(path: Path) -> None:
    leave_in_log(path)
    path.chmod(0o444)


def leave_in_log(path: Path) -> None:
    kept = path.with_name("kept")
    kept.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("UPDATE conversations SET title = 'from the log'")
    files = [path, *(path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm"))]
    for file in files:
        shutil.copy(file, kept)
    connection.close()
    for file in kept.iterdir():
        shutil.move(file, path.parent / file.name)
    kept.rmdir()


WAYS = (plain, in_open_folder, with_log, with_log_and_index, with_log_in_open_folder)


@pytest.mark.slow
async def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """One process reads a file for each way in which it cannot be written."""
    copies = tmp_path / "copies"
    copies.mkdir()
    paths = {way: tmp_path / way.__name__ / "memory.db" for way in WAYS}
    for way, path in paths.items():
        path.parent.mkdir()
        await fill(path)
        way(path)
    before = {path: path.read_bytes() for path in paths.values()}
    told, logged = run(paths.values(), *READING, WRITING, copies=copies)
    assert logged == ""
    for (way, path), found in zip(paths.items(), told, strict=True):
        path.parent.chmod(0o755)
        check_told(found)
        assert ("from the log" in found["commands"][0][1]) == way.__name__.startswith("with_log"), way
        assert path.read_bytes() == before[path]
    assert list(copies.iterdir()) == []


def check_told(told: dict[str, Any]) -> None:
    assert told["messages"] > 2
    assert told["error"][0] == "StoreReadOnlyError"
    assert "rights on the file" in told["error"][1]
    *reading, (code, output) = told["commands"]
    assert [exit_code for exit_code, _ in reading] == [0] * len(READING), reading
    assert code == 2
    assert "rights on the file" in output


@pytest.mark.slow
async def test_a_disk_that_is_mounted_for_reading(tmp_path: Path) -> None:
    folder = tmp_path / "mount"
    folder.mkdir()
    if mount("-t", "tmpfs", "none", folder):
        pytest.skip("only the superuser may mount a disk")
    try:
        await fill(folder / "memory.db")
        mount("-o", "remount,ro", folder)
        (told,), logged = run([folder / "memory.db"], *READING, WRITING)
    finally:
        subprocess.run(["umount", folder], check=True)  # noqa: ASYNC221 (nothing else runs)
    check_told(told)
    assert logged == ""


def mount(*arguments: str | Path) -> int:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode
