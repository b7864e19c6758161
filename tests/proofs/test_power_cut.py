"""A power cut takes back what no sync had written to the disk, in any order and in parts: nothing acknowledged is lost.

``strace`` records every write, truncation and sync of a process that saves. A cut anywhere in the record leaves of each
file what was written before its last sync, and of the later writes any, whole or torn at a sector.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.acceptance.conftest import CHECKOUT
from tests.scenes.counts import count as count_proven

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="records system calls with strace: install it"),
]

TURNS = 60
CUTS = 400
SECTOR = 512
_CALL = re.compile(r'^\d+ +(\w+)\((?:\d+<([^>]*)>|("[^"]*"))(?:, (.*))?\) += -?\d+')
_ACKNOWLEDGED = re.compile(rb"acknowledged (\d+)")


class Event(NamedTuple):
    """``write`` and ``truncate`` at `offset`, ``sync``, ``unlink``; ``acknowledge`` of the turn `offset`."""

    kind: str
    path: str
    offset: int = 0
    data: bytes = b""


@dataclass
class File:
    """What is on the disk for certain, and what was written since."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list[Event])

    def sync(self) -> None:
        for event in self.pending:
            apply(self.synced, event)
        self.pending.clear()

    def after_a_cut(self, random: Random) -> bytes:
        content, kept = bytearray(self.synced), random.choice((0.0, 0.5, 0.9, 1.0))
        for event in self.pending:
            if random.random() < kept:
                apply(content, torn(event, random) if random.random() < 0.1 else event)
        return bytes(content)


def apply(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
    content.extend(bytes(max(0, event.offset + len(event.data) - len(content))))
    content[event.offset : event.offset + len(event.data)] = event.data


def torn(event: Event, random: Random) -> Event:
    return event._replace(data=event.data[: SECTOR * random.randint(0, len(event.data) // SECTOR)])


def recorded(folder: Path, *mode: str) -> list[Event]:
    """What a process that saves writes, in its order."""
    trace, command = folder / "trace", [sys.executable, "-m", "tests.proofs.power_process"]
    calls = "write,pwrite64,ftruncate,fsync,fdatasync,unlink"
    strace = ["strace", "-f", "-qq", "-y", "-xx", "-s", "9000000", "-e", f"trace={calls}", "-o", str(trace)]
    done = subprocess.run(
        [*strace, *command, str(folder / "agent.db"), str(TURNS), *mode], cwd=CHECKOUT, capture_output=True, check=True
    )
    assert done.stdout.splitlines()[-1] == b"done"
    return list(events_of(whole_lines(trace.read_text().splitlines())))


def whole_lines(lines: Sequence[str]) -> Iterator[str]:
    """A call during which another thread called something stands in two lines; it counts when it ended."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.split(maxsplit=1)[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix(" <unfinished ...>")
        elif " resumed>" in line:
            yield begun.pop(thread) + line.partition(" resumed>")[2]
        else:
            yield line


def events_of(lines: Iterator[str]) -> Iterator[Event]:
    for line in lines:
        if (call := _CALL.match(line)) is None:
            continue
        name, path = call[1], text_of(call[2] or call[3]).decode()
        arguments = (call[4] or "").split(", ")
        if name in ("fsync", "fdatasync"):
            yield Event("sync", path)
        elif name == "unlink":
            yield Event("unlink", path)
        elif name == "ftruncate":
            yield Event("truncate", path, int(arguments[0]))
        elif name == "pwrite64":
            yield Event("write", path, int(arguments[2]), text_of(arguments[0]))
        elif turn := _ACKNOWLEDGED.match(text_of(arguments[0])):
            yield Event("acknowledge", path, int(turn[1]))


def text_of(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.strip('"').replace("\\x", ""))


def cut(events: Sequence[Event], folder: Path, random: Random) -> int:
    """Write the files as a cut after these events leaves them; the newest turn that was acknowledged."""
    files: dict[str, File] = {}
    newest = 0
    for event in events:
        name = Path(event.path).name
        if event.kind == "acknowledge":
            newest = event.offset
        elif event.kind == "sync":
            files.setdefault(name, File()).sync()
        elif event.kind == "unlink":
            files.pop(name, None)
        else:
            files.setdefault(name, File()).pending.append(event)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("agent.db", "agent.db-wal", "agent.db-journal"):  # what is mapped into memory is made anew
        if name in files:
            (folder / name).write_bytes(files[name].after_a_cut(random))
    return newest


def lost(folder: Path, newest: int) -> set[int]:
    """The acknowledged turns that are not there. Fails if the file is damaged, or a turn or a number is half there."""
    with closing(sqlite3.connect(folder / "agent.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages'").fetchall():
            return set(range(1, newest + 1))
        rows = database.execute("SELECT conversation_id, seq, content FROM messages ORDER BY 1, 2").fetchall()
        lengths = dict(database.execute("SELECT conversation_id, last_seq FROM conversations").fetchall())
    stored = [int(content.split()[0]) for _, _, content in rows]
    assert all(stored.count(turn) == 2 for turn in stored)
    for conversation_id, last_seq in lengths.items():
        assert [seq for owner, seq, _ in rows if owner == conversation_id] == list(range(1, last_seq + 1))
    return set(range(1, newest + 1)) - set(stored)


def losses(events: Sequence[Event], folder: Path) -> int:
    """After how many cuts something acknowledged was lost."""
    random = Random(7)
    begin = next(place for place, event in enumerate(events) if event.kind == "acknowledge")
    places = [random.randint(begin + 1, len(events)) for _ in range(CUTS)]
    return sum(bool(lost(folder, cut(events[:place], folder, random))) for place in places)


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    assert losses(recorded(tmp_path), tmp_path / "cut") == 0
    count_proven("power cuts; 0 acknowledged turns lost, 0 damaged files", CUTS)


def test_the_proof_notices_a_commit_that_does_not_wait(tmp_path: Path) -> None:
    assert losses(recorded(tmp_path, "NORMAL"), tmp_path / "cut") > CUTS / 4
