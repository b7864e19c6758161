"""Where the sessions of an evaluation come from: files in our own format or a benchmark's, and templates.

The benchmarks' files are JSON arrays. They are read whole, but decoded one entry at a time: the largest have gigabytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation import locomo, longmemeval
from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.transcripts import UNLIMITED, Line, open_file, problem_of, read_lines, to_line
from reactor_memory.text.documents import page

T = TypeVar("T")

Format: TypeAlias = Literal["auto", "jsonl", "locomo", "longmemeval"]
Read: TypeAlias = Callable[[Path], Iterator[Line]]
"""The sessions of a file. Raises `ImportFormatError` for the first place that is not in the format."""


def reader(format: Format, *, max_bytes: int = UNLIMITED) -> Read:  # noqa: A002
    """What reads files of this format; `auto` looks into each file. A line of JSONL may have `max_bytes`."""
    return partial(_read, format=format, max_bytes=max_bytes)


def generated(count: int, seed: int) -> tuple[Path, Read]:
    """Sessions out of templates, with the name under which they appear instead of a file's."""
    return Path(f"generated-seed-{seed}"), partial(_generate, count=count, seed=seed)


def write_generated(count: int, seed: int) -> Iterator[bytes]:
    """The same sessions as lines of a file."""
    for session in generate_sessions(count, seed=seed):
        yield to_line(session.name, session.messages, session.probes)


def _generate(file: Path, *, count: int, seed: int) -> Iterator[Line]:
    for session in generate_sessions(count, seed=seed):
        yield _line(str(file), session)


def _read(file: Path, *, format: Format, max_bytes: int) -> Iterator[Line]:  # noqa: A002
    if format == "jsonl" or (format == "auto" and not _begins_as_array(file)):
        return read_lines(file, max_bytes=max_bytes)
    entries = entries_of(file)
    return _BENCHMARKS[_recognized(file, entries) if format == "auto" else format](file, entries)


def _begins_as_array(file: Path) -> bool:
    try:
        with open_file(file) as opened:
            begins = iter(lambda: opened.read(1), b"")
            return next((sign for sign in begins if not sign.isspace()), b"") == b"["
    except (OSError, EOFError, zlib.error):
        return False  # whoever reads the lines of it says what is wrong


def entries_of(file: Path) -> list[msgspec.Raw]:
    """The elements of the array that a file is; a single object counts as one, and of several objects each."""
    try:
        with open_file(file) as opened:
            text = opened.read()
        return _objects(text) if text.lstrip()[:1] == b"{" else msgspec.json.decode(text, type=list[msgspec.Raw])
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ImportFormatError(str(file), "the compressed file is damaged or not complete") from None
    except OSError as error:
        raise ImportFormatError(str(file), f"cannot be read: {error.strerror or type(error).__name__}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ImportFormatError(str(file), "is not valid JSON; expected an array of objects") from None


def _objects(text: bytes) -> list[msgspec.Raw]:
    """One object, or one a line."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return [msgspec.Raw(line) for line in text.splitlines() if line.strip()]
    return [msgspec.Raw(text)]


def _recognized(file: Path, entries: list[msgspec.Raw]) -> str:
    keys = _decoded(f"{file}[0]", entries[0], dict[str, msgspec.Raw], "objects") if entries else {}
    if "haystack_sessions" in keys:
        return "longmemeval"
    if "conversation" in keys:
        return "locomo"
    problem = "is an array, but of neither LoCoMo (`conversation`) nor LongMemEval (`haystack_sessions`); see --format"
    raise ImportFormatError(str(file), problem)


def _read_locomo(file: Path, entries: list[msgspec.Raw]) -> Iterator[Line]:
    for number, entry in enumerate(entries):
        where = f"{file}[{number}]"
        sample = _decoded(where, entry, locomo.Sample, "a sample of LoCoMo")
        try:
            yield _line(where, locomo.to_session(sample, f"sample-{number}"))
        except ValueError as error:
            raise ImportFormatError(where, str(error)) from None


def _read_longmemeval(file: Path, entries: list[msgspec.Raw]) -> Iterator[Line]:
    for number, entry in enumerate(entries):
        where = f"{file}[{number}]"
        decoded = _decoded(where, entry, longmemeval.Entry, "an entry of LongMemEval")
        try:
            session = longmemeval.to_session(decoded)
        except ValueError as error:
            raise ImportFormatError(where, str(error)) from None
        if session is not None:
            yield _line(where, session)


_BENCHMARKS: Mapping[str, Callable[[Path, list[msgspec.Raw]], Iterator[Line]]] = {
    "locomo": _read_locomo,
    "longmemeval": _read_longmemeval,
}


def _decoded(where: str, entry: msgspec.Raw, kind: type[T], expected: str) -> T:
    try:
        return msgspec.json.decode(entry, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportFormatError(where, f"{problem_of(error)}; expected {expected} ({page('evaluation')})") from None


def _line(where: str, session: LabelledSession) -> Line:
    return Line(where, session.name, session.messages, lambda: session.probes)
