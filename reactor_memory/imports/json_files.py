"""Conversations in JSON of others: messages and requests of OpenAI, Anthropic and Gemini, messages of LangChain, and
the exports of ChatGPT and Claude, which also come as zip files.

The forms of the providers are read where all messages are (`reactor_memory.core.context.given_messages`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.imports import chatgpt, claude
from reactor_memory.imports.conversation import Conversation, FormError, LeaveOut, reading, stop
from reactor_memory.imports.langchain_messages import in_form_of_openai, is_of_langchain
from reactor_memory.models import JsonObject, Message
from reactor_memory.text.bounded_files import UnreadableError, beginning, opened
from reactor_memory.text.bounded_json import decoded, most_values, too_long, values_of

EXPECTED = "a list of messages, or an object with messages, mapping (ChatGPT) or chat_messages (Claude)"
BEGINNING = 1 << 20
"""Bytes of a file that say what it is."""

MOST_EMPTY = 10_000
"""Conversations without a message cost as much time as others."""

_REQUEST = ("messages", "contents", "input")
_FIRST_KEYS = (b'"mapping"', b'"messages"', b'"system"', b'"title"', b'"contents"')
_EXPORTED = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_ANY = msgspec.json.Decoder()
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Source(NamedTuple):
    """A file of JSON, which may be a member of an archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"


def is_foreign(path: Path) -> bool:
    """Whether a file is none of our own, which hold an object with ``id`` and ``messages`` in every line."""
    begin = beginning(path, size=BEGINNING).lstrip()
    if not begin.startswith(b"{"):
        return begin.startswith(b"[")
    try:
        first = msgspec.json.decode(begin.partition(b"\n")[0], type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _is_first_of_lines(begin) or begin[1:].lstrip().startswith(_FIRST_KEYS)
    return "id" not in first and any(key in first for key in (*_REQUEST, *_FORMS))


def looks_like_json(path: Path) -> bool:
    """Whether a file may hold an object; one that is empty or cannot be read may, until it is read."""
    begin = beginning(path, size=BEGINNING).lstrip()
    return not begin or begin.startswith(b"{")


def _is_first_of_lines(begin: bytes) -> bool:
    """Whether an object goes on in the next line, as one that was printed for people does."""
    line, goes_on, _ = begin.partition(b"\n")
    return bool(goes_on) and line.rstrip().endswith((b"{", b"[", b","))


def sources_of(path: Path, names: Sequence[str] | None) -> Sequence[Source]:
    """The conversations in an archive with files of these names; without any, the file itself."""
    if names is None:
        return (Source(path),)
    found = [Source(path, name) for name in names if _EXPORTED.fullmatch(name) and "__MACOSX" not in name]
    if not found:
        raise ImportFormatError(str(path), "is an archive without conversations.json; unpack it and name the file")
    return found


def read_json(sources: Sequence[Source], *, max_bytes: int, leave_out: LeaveOut) -> Iterator[Line]:
    """The conversations of files. Those without an id of their own are named after the file, and numbered if there are
    several. `leave_out` is told of conversations that cannot be read beside others that can. Raises
    `ImportFormatError`, which names the place and what would be right.
    """
    found = chain.from_iterable(_conversations(source, max_bytes, leave_out) for source in sources)
    name = sources[0].path.name.partition(".")[0]
    first = next(found, None)
    if first is None:
        return
    second = next(found, None)
    if second is None:
        yield _line(first, name)
        return
    for number, each in enumerate(chain((first, second), found), start=1):
        yield _line(each, f"{name}-{number}")


def _line(found: tuple[str, Conversation], name: str) -> Line:
    where, given = found
    return Line(where, given.session_id or name, tuple(given.messages), tuple, given.title)


def _conversations(source: Source, max_bytes: int, leave_out: LeaveOut) -> Iterator[tuple[str, Conversation]]:
    read = 0

    def counted(values: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal read
        for value in values:
            read += 1
            yield value

    try:
        with opened(source.path, source.member) as file:
            values = counted(values_of(file, max_bytes))
            first = next(values, None)
            if first is None:
                return
            if _is_message(f"{source}[0]", first, max_bytes):
                yield str(source), Conversation(_messages(source, chain((first,), values), max_bytes))
                return
            yield from _each(source, first, values, max_bytes, leave_out)
    except UnreadableError as error:
        raise ImportFormatError(f"{source}[{read}]" if read else str(source), str(error)) from None


def _each(
    source: Source, first: bytes, values: Iterator[bytes], max_bytes: int, leave_out: LeaveOut
) -> Iterator[tuple[str, Conversation]]:
    """A file of which nothing can be read is in another form: then the first fault is told, and nothing left out."""
    texts = chain((first,), values)
    del first
    faults: list[ImportFormatError] = []
    empty, is_known = 0, False
    for number, text in enumerate(texts):
        where = f"{source}[{number}]"
        try:
            with reading(where, EXPECTED):
                found = _conversation(text, max_bytes)
        except ImportFormatError as fault:
            faults.append(fault)
            if is_known or len(faults) > MOST_EMPTY:
                _tell(faults, leave_out if is_known else stop)
            continue
        is_known = True
        _tell(faults, leave_out)
        if found.messages:
            yield where, found
            continue
        empty += 1
        if empty > MOST_EMPTY:
            raise UnreadableError(f"holds more than {MOST_EMPTY} conversations without a message")
    _tell(faults, stop)


def _tell(faults: list[ImportFormatError], leave_out: LeaveOut) -> None:
    for fault in faults:
        leave_out(fault)
    faults.clear()


def _messages(source: Source, texts: Iterator[bytes], max_bytes: int) -> Sequence[Message]:
    """Of a file that is one list of messages."""
    items: list[Any] = []
    size = 0
    for number, text in enumerate(texts):
        size += len(text)
        if 0 <= max_bytes < size:
            raise too_long(max_bytes)
        if max_bytes >= 0 and number > most_values(max_bytes) // 4:
            raise UnreadableError(f"holds more than {number} messages (limits.max_session_bytes)")
        with reading(f"{source}[{number}]", EXPECTED):
            items.append(decoded(text, _ANY, max_bytes))
    with reading(str(source), EXPECTED):
        return of_messages(items)


def _is_message(where: str, text: bytes, max_bytes: int) -> bool:
    """Whether it is a message, and no conversation."""
    if not text.startswith((b"{", b'"')):
        return False
    with reading(where, EXPECTED):
        keys = decoded(text, _KEYS, max_bytes) if text.startswith(b"{") else {}
    return not any(key in keys for key in (*_REQUEST, *_FORMS))


def _conversation(text: bytes, max_bytes: int) -> Conversation:
    if text.startswith(b"["):
        return Conversation(of_messages(decoded(text, _ANY, max_bytes)))
    keys = decoded(text, _KEYS, max_bytes)
    form = next((_FORMS[key] for key in _FORMS if key in keys), _request)
    return form(text, max_bytes)


def _batched(text: bytes, max_bytes: int) -> Conversation:
    """A line of OpenAI's batches."""
    return _of_request(cast("JsonObject", decoded(text, _ANY, max_bytes))["body"])


def _request(text: bytes, max_bytes: int) -> Conversation:
    return _of_request(decoded(text, _ANY, max_bytes))


def _of_request(value: Any) -> Conversation:
    if not isinstance(value, dict):
        raise FormError(f"is no request; expected {EXPECTED}")
    request = cast("JsonObject", value)
    given = next((request[key] for key in ("id", "conversation_id", "uuid") if request.get(key)), None)
    listed = request.get("messages")
    is_of_others = isinstance(listed, list) and any(map(is_of_langchain, cast("list[Any]", listed)))
    messages = of_messages(cast("list[Any]", listed)) if is_of_others else messages_of(request)
    return Conversation(messages, given if isinstance(given, str) else None)


_FORMS: Mapping[str, Callable[[bytes, int], Conversation]] = {
    "mapping": chatgpt.conversation,
    "chat_messages": claude.conversation,
    "body": _batched,
}
"""By the key that only this form has."""


def of_messages(given: Sequence[Any]) -> Sequence[Message]:
    """Messages of providers, or of LangChain."""
    return messages_of([in_form_of_openai(each) if is_of_langchain(each) else each for each in given])
