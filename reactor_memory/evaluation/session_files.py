"""Where the sessions of an evaluation come from: files in our own format or a benchmark's, and templates.

The benchmarks' files are JSON arrays, read one entry at a time: the largest have gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation import locomo, longmemeval
from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.transcripts import Line, problem_of, read_lines, to_line
from reactor_memory.text.bounded_files import UnreadableError, beginning, opened
from reactor_memory.text.bounded_json import UNLIMITED, decoded, values_of
from reactor_memory.text.documents import page

T = TypeVar("T")

BEGINNING = 1 << 20
"""Bytes of a file that say what it is."""

Format: TypeAlias = Literal["auto", "jsonl", "locomo", "longmemeval"]
Read: TypeAlias = Callable[[Path], Iterator[Line]]
"""The sessions of a file. Raises `ImportFormatError` for the first place that is not in the format."""


def reader(format: Format, *, max_bytes: int = UNLIMITED) -> Read:  # noqa: A002
    """What reads files of this format; `auto` looks into each file. A session may have `max_bytes`."""
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
    return _read_benchmark(file, None if format == "auto" else format, max_bytes)


def _begins_as_array(file: Path) -> bool:
    return beginning(file, size=BEGINNING).lstrip().startswith(b"[")


def _read_benchmark(file: Path, name: str | None, max_bytes: int) -> Iterator[Line]:
    for number, entry in enumerate(_entries(file, max_bytes)):
        where = f"{file}[{number}]"
        name = name or _recognized(file, _decoded(where, entry, _KEYS, "objects", max_bytes))
        decoder, expected, to_session = _BENCHMARKS[name]
        try:
            session = to_session(_decoded(where, entry, decoder, expected, max_bytes), number)
        except ValueError as error:
            raise ImportFormatError(where, str(error)) from None
        if session is not None:
            yield _line(where, session)
    if name is None:
        _recognized(file, {})


def _entries(file: Path, max_bytes: int) -> Iterator[bytes]:
    try:
        with opened(file) as text:
            yield from values_of(text, max_bytes)
    except UnreadableError as error:
        raise ImportFormatError(str(file), str(error)) from None


def _recognized(file: Path, keys: Mapping[str, object]) -> str:
    if "haystack_sessions" in keys:
        return "longmemeval"
    if "conversation" in keys:
        return "locomo"
    problem = "is an array, but of neither LoCoMo (`conversation`) nor LongMemEval (`haystack_sessions`); see --format"
    raise ImportFormatError(str(file), problem)


_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BENCHMARKS: Mapping[str, tuple[Any, str, Callable[[Any, int], LabelledSession | None]]] = {
    "locomo": (
        msgspec.json.Decoder(locomo.Sample),
        "a sample of LoCoMo",
        lambda sample, number: locomo.to_session(sample, f"sample-{number}"),
    ),
    "longmemeval": (
        msgspec.json.Decoder(longmemeval.Entry),
        "an entry of LongMemEval",
        lambda entry, _: longmemeval.to_session(entry),
    ),
}


def _decoded(where: str, entry: bytes, decoder: msgspec.json.Decoder[T], expected: str, max_bytes: int) -> T:
    try:
        return decoded(entry, decoder, max_bytes)
    except (UnreadableError, msgspec.ValidationError) as error:
        raise ImportFormatError(where, f"{problem_of(error)}; expected {expected} ({page('evaluation')})") from None


def _line(where: str, session: LabelledSession) -> Line:
    return Line(where, session.name, session.messages, lambda: session.probes)
