"""Packed files are unpacked as far as the limits go, and what is damaged is refused in words."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reactor_memory.text.bounded_files import UNPACKED_BYTES, UnreadableError, beginning, members, opened, read_at_most


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def zipped(content: bytes, *, method: int = zipfile.ZIP_DEFLATED, name: str = "a.json") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


def lying(content: bytes, *, size: int) -> bytes:
    """An archive whose member is said to have so many bytes."""
    packed = bytearray(zipped(content))
    place = packed.index(b"PK\x01\x02")
    packed[22:26] = packed[place + 24 : place + 28] = struct.pack("<I", size)
    return bytes(packed)


def encrypted(content: bytes) -> bytes:
    packed = bytearray(zipped(content))
    place = packed.index(b"PK\x01\x02")
    packed[6] |= 1
    packed[place + 8] |= 1
    return bytes(packed)


def read(path: Path, member: str | None = None, most: int | None = None) -> bytes:
    with opened(path, member, most=most) as text:
        return text.read()


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_text_is_utf_8_however_it_was_written(file: Path, packed: Callable[[bytes], bytes], encoding: str) -> None:
    said = "Grüße 🦊" * 30_000
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    file.write_bytes(packed(mark + said.encode(encoding)))
    assert read(file).decode() == said
    assert beginning(file, size=4).decode() == "Grü"


def test_members_of_archives_are_read(file: Path) -> None:
    file.write_bytes(zipped("é".encode("utf-16"), name="x/conversations.json"))
    assert members(file) == ["x/conversations.json"]
    assert read(file, "x/conversations.json").decode() == "é"
    file.write_bytes(b"no archive")
    assert members(file) is None


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: gzip.compress(b" " * (UNPACKED_BYTES + 1)), "larger than"),
        (lambda: gzip.compress(b"text")[:-4], "damaged or not complete"),
        (lambda: gzip.compress(b"text")[:9] + b"\x55" * 9, "damaged or not complete"),
        (lambda: zipped(b" " * (UNPACKED_BYTES + 1)), "larger than"),
        (lambda: zipped(gzip.compress(b"text")), "packed twice"),
        (lambda: zipped(b"text" * 999)[:-40], "damaged or not complete"),
        (lambda: lying(b"text" * 999, size=8), "damaged or not complete"),
        (lambda: zipped(b"text", method=zipfile.ZIP_LZMA), "another method"),
        (lambda: zipped(b"text", method=zipfile.ZIP_BZIP2), "another method"),
        (lambda: encrypted(b"text"), "encrypted"),
    ],
    ids=range(10),
)
def test_bombs_and_damaged_files_are_refused(file: Path, made: Callable[[], bytes], told: str) -> None:
    file.write_bytes(made())
    with pytest.raises(UnreadableError, match=told):
        read(file, "a.json" if members(file) else None)


def test_an_archive_of_too_many_files_is_refused(file: Path) -> None:
    packed = bytearray(zipped(b"text"))
    end = packed.index(b"PK\x05\x06")
    packed[end:end] = bytes(20 * 1024 * 1024)
    packed[-10:-6] = struct.pack("<I", 20 * 1024 * 1024)
    file.write_bytes(packed)
    with pytest.raises(UnreadableError, match="too many files"):
        members(file)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_what_is_packed_otherwise_is_no_text(file: Path, pack: Callable[[bytes], bytes]) -> None:
    file.write_bytes(pack(b"[]"))
    assert not read(file).startswith(b"[")


def test_a_small_file_is_read_whole(file: Path) -> None:
    file.write_bytes(b"12345")
    assert read_at_most(file, 5) == b"12345"
    with pytest.raises(UnreadableError, match="more than 4 bytes"):
        read_at_most(file, 4)
    with pytest.raises(UnreadableError, match="larger than 4 bytes"):
        read(file, most=4)


def test_what_cannot_be_read_is_said(file: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read(file)
    assert beginning(file, size=9) == b""
