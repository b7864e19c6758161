"""A small file never takes much more memory than one session may have, whatever it is unpacked to."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest

from reactor_memory.core.validation import MessageLimits

pytestmark = pytest.mark.slow

MOST = 50_000_000 + MessageLimits().max_session_bytes
PROGRAM = """
import resource, sys
from pathlib import Path
from reactor_memory.core.validation import MessageLimits
from reactor_memory.errors import ImportFormatError
from reactor_memory.imports.importer import check_files, read_sessions

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def read(path):
    try:
        check_files([Path(path)], MessageLimits())
    except ImportFormatError as error:
        return str(error)

read(sys.argv[1])
before = peak()
print(read(sys.argv[2]))
print(peak() - before)
"""
SMALL = b'[{"role": "user", "content": "x"}]'


def repeated(begin: bytes, each: bytes, size: int) -> bytes:
    """Packed: `begin` and so many bytes of `each` again and again."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        block = each * (1_000_000 // len(each) + 1)
        for piece in chain([begin], repeat(block, size // len(block))):
            file.write(piece)
    return packed.getvalue()


def in_archive(begin: bytes, each: bytes, size: int) -> bytes:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w") as file,
    ):
        block = each * (1_000_000 // len(each) + 1)
        for piece in chain([begin], repeat(block, size // len(block))):
            file.write(piece)
    return packed.getvalue()


@pytest.mark.parametrize("packed", [repeated, in_archive])
@pytest.mark.parametrize(
    ("begin", "each"),
    [
        (b"[", b" "),
        (b"", b"\n"),
        (b"\xff\xfe", b" \0"),
        (b'[{"role": "user", "content": "', b"x"),
        (b'[{"role": "user", "content": "', b"\\n"),
        (b"[", b'{"role":"user","content":"x"},'),
        (b"[", b"[],"),
        (b"[", b'{"messages":["x"]},'),
        (b"[[", b"{},"),
        (b"[", b"0,"),
        (b"", b"{}\n"),
        (b'{"id":"a","messages":[', b'{"role":"user","content":""},'),
        (b'[{"mapping":{', b'"":{},'),
        (b'[{"chat_messages":[', b'{"sender":"human","text":"x"},'),
        (b'{"a":', b'{"a":'),
    ],
)
def test_a_bomb_is_not_unpacked(
    tmp_path: Path, begin: bytes, each: bytes, packed: Callable[[bytes, bytes, int], bytes]
) -> None:
    small, bomb = tmp_path / "small.json", tmp_path / "bomb"
    small.write_bytes(SMALL)
    bomb.write_bytes(packed(begin, each, 110_000_000))
    command = [sys.executable, "-c", PROGRAM, str(small), str(bomb)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ), check=True)
    told, taken = done.stdout.splitlines()
    assert told.startswith(str(bomb))
    assert int(taken) <= MOST
