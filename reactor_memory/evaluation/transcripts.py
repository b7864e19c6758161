"""The file format of `import`, `export`, `demo` and `eval`: JSON Lines, a session a line (docs/formats.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast, get_args

import msgspec

from reactor_memory import forms
from reactor_memory.errors import ImportFormatError, InvalidMessageError
from reactor_memory.evaluation.probes import Probe
from reactor_memory.models import Given, JsonObject, Message, Role, ToolCall, Visibility
from reactor_memory.text import bounded_json
from reactor_memory.text.bounded_files import UnreadableError, opened
from reactor_memory.text.bounded_json import UNLIMITED, too_long
from reactor_memory.text.moments import moment_of

T = TypeVar("T")

MOST_BLANK_LINES = 10_000
"""Each costs as much time as a line that says something."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ALLOWED = {"role": get_args(Role), "visibility": get_args(Visibility)}
_NO_PROBES = msgspec.Raw()  # the very object of the default is left out


class ToolCallRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool call in the file."""

    id: str
    name: str
    arguments: JsonObject | str
    metadata: JsonObject = {}


class MessageRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A message in the file. `at` is ISO 8601 with its offset, or microseconds since the epoch."""

    role: Role
    content: str
    at: str | int | None = None
    tool_calls: tuple[ToolCallRecord, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    parts: tuple[JsonObject, ...] = ()
    metadata: JsonObject = {}
    visibility: Visibility = "user"
    author_id: str | None = None
    given: Given | None = None


class Transcript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the file. Keys that stand beside these are not read."""

    id: str
    messages: tuple[MessageRecord, ...]
    probes: msgspec.Raw = _NO_PROBES


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What tells whether the rest of a line has to be read."""

    id: str


class Line(NamedTuple):
    """A session and where it stands, `FILE:17`. Its probes are read when they are asked for."""

    where: str
    session_id: str
    messages: tuple[Message, ...]
    probes: Callable[[], tuple[Probe, ...]]
    title: str | None = None


def read_lines(path: Path, *, max_bytes: int = UNLIMITED) -> Iterator[Line]:
    """The sessions of a file, one at a time. Blank lines are skipped.

    Raises `ImportFormatError` with the file and the line for the first line that is not in the format, or longer than
    `max_bytes`; of such a line no more than that is read.
    """
    return (_line(where, text, max_bytes) for where, text in _read_texts(path, max_bytes))


def read_unread(path: Path, *, max_bytes: int = UNLIMITED) -> Iterator[tuple[str, Callable[[], Line]]]:
    """The ids of the sessions of a file, each with what reads the rest of its line."""
    return (
        (_decoded(where, text, _head, max_bytes).id, partial(_line, where, text, max_bytes))
        for where, text in _read_texts(path, max_bytes)
    )


def _read_texts(path: Path, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    where, blank = str(path), 0
    try:
        with opened(path) as file:
            for number, text in enumerate(_texts(file, max_bytes), start=1):
                where = f"{path}:{number}"
                blank += text.isspace()
                _check_line(text, blank, max_bytes)
                if not text.isspace():
                    yield where, text
    except UnreadableError as error:
        raise ImportFormatError(where, str(error)) from None


def _texts(file: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    """The lines of a file; of one that is too long the beginning, and nothing after it."""
    size = UNLIMITED if max_bytes == UNLIMITED else max_bytes + 1
    while text := file.readline(size):
        yield text


def _check_line(text: bytes, blank: int, max_bytes: int) -> None:
    if 0 <= max_bytes < len(text):
        raise too_long(max_bytes)
    if blank > MOST_BLANK_LINES:
        raise UnreadableError(f"is blank, as {MOST_BLANK_LINES} lines before it are")


def to_line(session_id: str, messages: Iterable[Message], probes: Iterable[Probe] = ()) -> bytes:
    """The inverse of reading: one line, with its line break."""
    records = [{key: value for key, value in msgspec.structs.asdict(probe).items() if value} for probe in probes]
    transcript = Transcript(
        id=session_id,
        messages=tuple(map(to_record, messages)),
        probes=msgspec.Raw(msgspec.json.encode(records)) if records else _NO_PROBES,
    )
    return msgspec.json.encode(transcript) + b"\n"


def to_record(message: Message) -> MessageRecord:
    """Everything that a message has, but for what the store sets."""
    calls = tuple(
        ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments, metadata=call.metadata)
        for call in message.tool_calls
    )
    visibility = cast("Visibility", sys.intern(message.visibility))  # the very object of the default is left out
    changed: dict[str, Any] = {"tool_calls": calls, "visibility": visibility}
    at = None if message.created_at is None else _as_text(message.created_at)
    return MessageRecord(at=at, **(forms.kept_fields(message) | changed))


def to_message(record: MessageRecord) -> Message:
    """Raises `ValueError` for a time that cannot be read."""
    return Message(
        role=record.role,
        content=record.content,
        created_at=_as_microseconds(record.at) if isinstance(record.at, str) else record.at,
        tool_calls=tuple(
            [
                ToolCall(id=call.id, name=call.name, arguments=call.arguments, metadata=call.metadata)
                for call in record.tool_calls
            ]
        ),
        tool_call_id=record.tool_call_id,
        name=record.name,
        parts=record.parts,
        metadata=record.metadata,
        visibility=record.visibility,
        author_id=record.author_id,
        given=record.given,
    )


def _line(where: str, text: bytes, max_bytes: int) -> Line:
    transcript = _decoded(where, text, _transcript, max_bytes)
    messages = tuple([_message(where, number, record) for number, record in enumerate(transcript.messages)])
    return Line(where, transcript.id, messages, partial(_decoded_probes, where, bytes(transcript.probes)))


def _decoded_probes(where: str, text: bytes) -> tuple[Probe, ...]:
    return _decoded(where, text, _probes, UNLIMITED) if text else ()


def _decoded(where: str, text: bytes, decoder: msgspec.json.Decoder[T], max_bytes: int) -> T:
    try:
        return bounded_json.decoded(text, decoder, max_bytes)
    except (UnreadableError, msgspec.ValidationError) as error:
        raise ImportFormatError(where, problem_of(error, _ALLOWED)) from None


def _message(where: str, number: int, record: MessageRecord) -> Message:
    try:
        message = to_message(record)
    except ValueError:
        problem = f"messages[{number}].at: must be a time with its offset, such as 2026-02-02T08:00:08+00:00"
        raise ImportFormatError(where, problem) from None
    if message.given is None:
        return message
    try:
        return forms.checked_given(f"messages[{number}]", message)
    except InvalidMessageError as error:
        raise ImportFormatError(where, str(error)) from None


def problem_of(error: Exception, allowed: Mapping[str, Sequence[str]] | None = None) -> str:
    """What is wrong, without the text that is wrong. `allowed`: by key, the values that are."""
    if not isinstance(error, msgspec.ValidationError):
        return str(error)
    problem, separator, path = str(error).rpartition(" - at ")
    if separator and problem.startswith("Invalid enum value"):
        values = (allowed or {}).get(path.strip("`").rpartition(".")[2])
        problem = f"must be one of {', '.join(values)}" if values else "is none of the values allowed"
    return f"{path.strip('`').removeprefix('$.')}: {problem}" if separator else str(error)


def _as_text(at: int) -> str | int:
    moment = moment_of(at)
    return at if moment is None else moment.isoformat(timespec="microseconds")


def _as_microseconds(text: str) -> int:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("no offset")
    return (at - _EPOCH) // _MICROSECOND


_transcript = msgspec.json.Decoder(Transcript)
_head = msgspec.json.Decoder(Head)
_probes = msgspec.json.Decoder(tuple[Probe, ...])
