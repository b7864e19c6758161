"""Files of strangers as bytes of UTF-8: unpacked and decoded while they are read, and never further than the limits.

Raises `UnreadableError` for what is damaged, packed too tightly, or cannot be read.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

MOST_TIMES = 200
"""Text packs to a tenth or a twentieth; what is unpacked to more than so many times its size is no conversation."""

UNPACKED_BYTES = 64 * 1024 * 1024
"""A packed file may be unpacked to so much, however small it is."""

MOST_DIRECTORY_BYTES = 16 * 1024 * 1024
"""The list of the files in an archive is read at once."""

PIECE = 64 * 1024
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_UTF16 = (BOM_UTF16_LE, BOM_UTF16_BE)


class UnreadableError(ValueError):
    """A file, or a part of one, that is damaged, too large, or not in its format. The text says which."""


@contextmanager
def opened(path: Path, member: str | None = None, *, most: int | None = None) -> Generator[IO[bytes]]:
    """The bytes of a file, or of a member of an archive: unpacked if they are gzip, as UTF-8 if they are UTF-16,
    without the mark that some editors put before them. `most`: so many bytes, unpacked.
    """
    with _translated(), path.open("rb") as file:
        if member is None:
            packed, size = file, os.fstat(file.fileno()).st_size
            yield _as_text(_unpacked(packed, size, most))
            return
        with _archive(file) as archive, archive.open(_readable(archive, member)) as packed:
            yield _as_text(_unpacked(packed, archive.getinfo(member).compress_size, most, is_unpacked=True))


def members(path: Path) -> Sequence[str] | None:
    """The names of the files in an archive (zip); None if the file is none."""
    with _translated(), path.open("rb") as file:
        if file.read(4) not in (_ZIP, _EMPTY_ZIP):
            return None
        with _archive(file) as archive:
            return archive.namelist()


def beginning(path: Path, member: str | None = None, *, size: int) -> bytes:
    """The first bytes. Empty for a file that cannot be read: who reads it says why."""
    try:
        with opened(path, member) as file:
            return file.read(size)
    except UnreadableError:
        return b""


def read_at_most(path: Path, most: int) -> bytes:
    """All bytes of a file that is not packed. Raises `OSError`, too."""
    with path.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise UnreadableError(f"has more than {most} bytes")
    return found


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableError("the compressed file is damaged or not complete") from None
    except (zipfile.BadZipFile, NotImplementedError):
        raise UnreadableError("the zip file is damaged or not complete") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or type(error).__name__}") from None


def _archive(file: IO[bytes]) -> zipfile.ZipFile:
    file.seek(0)
    try:
        return zipfile.ZipFile(_Capped(file))
    except UnreadableError:
        raise
    except (ValueError, IndexError, OverflowError, UnicodeDecodeError):  # names, sizes and places that cannot be
        raise zipfile.BadZipFile from None


def _readable(archive: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    found = archive.getinfo(member)
    if found.flag_bits & 1:
        raise UnreadableError(f"{member} is encrypted: unpack it first")
    if found.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnreadableError(f"{member} is packed by another method than deflate: unpack it first")
    return found


def _unpacked(packed: IO[bytes], size: int, most: int | None, *, is_unpacked: bool = False) -> io.BufferedReader:
    """A reader that stops at the limits. `size`: of what is packed."""
    source = io.BufferedReader(_Pieces(packed), PIECE)
    is_gzip = source.peek(2)[:2] == _GZIP
    if is_gzip and is_unpacked:
        raise UnreadableError("is packed twice: unpack it first")
    limits = [] if most is None else [most]
    if is_gzip or is_unpacked:
        limits.append(max(UNPACKED_BYTES, MOST_TIMES * size))
    stream = gzip.GzipFile(fileobj=source) if is_gzip else source
    return io.BufferedReader(_Pieces(stream, min(limits, default=None)), PIECE)


def _as_text(file: io.BufferedReader) -> IO[bytes]:
    begin = file.peek(3)[:3]
    if begin[:2] in _UTF16:
        return io.BufferedReader(_Recoded(file), PIECE)
    if begin == BOM_UTF8:
        file.read(3)
    return file


class _Pieces(io.RawIOBase):
    """What another file holds, a piece at a time, and at most so many bytes of it."""

    def __init__(self, file: Any, most: int | None = None) -> None:
        self._file = file
        self._most = most
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._next(min(len(buffer), PIECE))
        self._read += len(piece)
        if self._most is not None and self._read > self._most:
            raise UnreadableError(f"is larger than {self._most} bytes when it is unpacked: give it unpacked, in parts")
        buffer[: len(piece)] = piece
        return len(piece)

    def _next(self, size: int) -> bytes:
        return self._file.read(size)


class _Recoded(_Pieces):
    """UTF-16 as UTF-8."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._decoder = getincrementaldecoder("utf-16")("replace")
        self._waiting = b""

    def _next(self, size: int) -> bytes:
        while not self._waiting:
            piece = self._file.read(PIECE)
            self._waiting = self._decoder.decode(piece, final=not piece).encode()
            if not piece:
                break
        found, self._waiting = self._waiting[:size], self._waiting[size:]
        return found


class _Capped:
    """A file of which nobody reads very much at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(min(size, MOST_DIRECTORY_BYTES + 1) if size >= 0 else MOST_DIRECTORY_BYTES + 1)
        if len(found) > MOST_DIRECTORY_BYTES:
            raise UnreadableError("is an archive of too many files: unpack it first")
        return found

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
