"""JSON of strangers: cut into its values while it is read, and decoded only if that takes no more than the limits.

Raises `UnreadableError`, and `msgspec.ValidationError` for JSON of another shape than was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, TypeVar

import msgspec

from reactor_memory.text.bounded_files import PIECE, UnreadableError

T = TypeVar("T")

UNLIMITED = -1
BYTES_PER_VALUE = 80
"""A value takes about so much memory, however short its text is: a text of so many bytes may hold one for each."""

LEAST_VALUES = 50_000
MOST_DEPTH = 500

_NO_JSON = "is not valid JSON"
# What is outside of strings, and strings; then, if one does not end, the rest of the text. None of it is read twice.
_OUTSIDE = re.compile(rb'(?:[^"\[\]{},]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+("[^"\\]*+(?:\\.[^"\\]*+)*+\\?+)?+', re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+("[^"\\]*+(?:\\.[^"\\]*+)*+\\?+)?+', re.DOTALL)


def values_of(file: IO[bytes], max_bytes: int = UNLIMITED) -> Iterator[bytes]:
    """The elements of the array that a file is, or the objects of which it has one or several; as they are written,
    and not yet checked. None has more than `max_bytes`, nor more values than fit into as many.
    """
    splitter = _Splitter(max_bytes)
    while piece := file.read(PIECE):
        yield from splitter.cut(piece)
    splitter.end()


def decoded(text: bytes, decoder: msgspec.json.Decoder[T], max_bytes: int = UNLIMITED) -> T:
    """The value that a text is."""
    if max_bytes != UNLIMITED and is_dense(text, max_bytes):
        raise _too_many(max_bytes)
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableError(_NO_JSON) from None


def is_dense(text: bytes, max_bytes: int) -> bool:
    """Whether a text holds more values than may be made of it."""
    most = most_values(max_bytes)
    return _signs(text, 0, len(text)) > most and _values(text) > most


def most_values(max_bytes: int) -> int:
    return max(LEAST_VALUES, max_bytes // BYTES_PER_VALUE)


def too_long(max_bytes: int) -> UnreadableError:
    return UnreadableError(f"has more than {max_bytes} bytes (limits.max_session_bytes)")


def _too_many(max_bytes: int) -> UnreadableError:
    return UnreadableError(f"holds more than {most_values(max_bytes)} values (limits.max_session_bytes)")


def _signs(text: bytes, start: int, stop: int) -> int:
    return sum(text.count(sign, start, stop) for sign in (b",", b"[", b"{", b":"))


def _values(text: bytes) -> int:
    """Signs that stand in no string; a string is not decoded for it."""
    found = at = 0
    while (begin := text.find(b'"', at)) >= 0:
        found += _signs(text, at, begin)
        at = _end_of_string(text, begin + 1)
        if at < 0:
            return found
    return found + _signs(text, at, len(text))


def _end_of_string(text: bytes, at: int) -> int:
    """Behind the quote that ends a string of which text[at:] is a part; -1 if it does not end."""
    while (quote := text.find(b'"', at)) >= 0:
        if not _is_escaped(text, at, quote):
            return quote + 1
        at = quote + 1
    return -1


def _is_escaped(text: bytes, start: int, at: int) -> bool:
    """Whether an odd number of backslashes stands before a place."""
    first = at
    while first > start and text[first - 1] == 0x5C:
        first -= 1
    return (at - first) % 2 == 1


class _Splitter:
    """Cuts pieces of a text into the values of its outermost level."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._most_openings = most_values(max_bytes) if max_bytes != UNLIMITED else None
        self._value = bytearray()
        self._openings = 0
        self._depth = 0
        self._in_array: bool | None = None
        self._elements = 0
        self._is_closed = False
        self._in_string = False
        self._is_escaped = False

    def cut(self, piece: bytes) -> Iterator[bytes]:
        at = start = self._begun(piece) if self._in_array is None else 0
        while at < len(piece):
            at = self._passed(piece, at)
            if at == len(piece):
                break
            sign = piece[at : at + 1]
            at += 1
            if sign in b"[{":
                self._open()
            elif self._depth:
                self._depth -= 1
                if not self._depth and not self._in_array:
                    yield self._taken(piece, start, at)
                    start = at
            elif self._in_array and not self._is_closed and sign in b",]":
                if sign == b"," or self._elements or not self._is_blank(piece[start : at - 1]):
                    yield self._element(piece, start, at - 1)
                self._is_closed = sign == b"]"
                self._value.clear()
                start = at
            else:
                raise UnreadableError(_NO_JSON)
        self._keep(piece, start, len(piece))

    def end(self) -> None:
        if self._depth or self._in_string or self._value or (self._in_array and not self._is_closed):
            raise UnreadableError(_NO_JSON)

    def _begun(self, piece: bytes) -> int:
        """Where the text begins."""
        text = piece.lstrip()
        if not text:
            return len(piece)
        if text[:1] not in b"[{":
            raise UnreadableError(f"{_NO_JSON}; expected an array of objects")
        self._in_array = text[:1] == b"["
        return len(piece) - len(text) + self._in_array

    def _passed(self, piece: bytes, at: int) -> int:
        """The place of the next sign that opens, closes or (outside of all) separates."""
        if self._in_string:
            start = at + self._is_escaped
            end = _end_of_string(piece, start)
            if end < 0:
                self._is_escaped = start <= len(piece) and _is_escaped(piece, start, len(piece))
                return len(piece)
            self._in_string = self._is_escaped = False
            at = end
        found = _INSIDE.match(piece, at) if self._depth else _OUTSIDE.match(piece, at)
        if not found:
            return at
        if unended := found[1]:
            self._in_string = True
            self._is_escaped = _is_escaped(unended, 1, len(unended))
        return found.end()

    def _open(self) -> None:
        self._depth += 1
        self._openings += 1
        if self._depth > MOST_DEPTH:
            raise UnreadableError("is nested too deeply")
        if self._most_openings is not None and self._openings > self._most_openings:
            raise _too_many(self._max_bytes)

    def _element(self, piece: bytes, start: int, stop: int) -> bytes:
        self._elements += 1
        if self._is_blank(piece[start:stop]):
            raise UnreadableError(_NO_JSON)
        return self._taken(piece, start, stop)

    def _is_blank(self, rest: bytes) -> bool:
        return not (self._value or rest.strip())

    def _taken(self, piece: bytes, start: int, stop: int) -> bytes:
        self._keep(piece, start, stop)
        found = bytes(self._value)
        self._value.clear()
        self._openings = 0
        return found

    def _keep(self, piece: bytes, start: int, stop: int) -> None:
        rest = piece[start:stop]
        self._value += rest if self._value else rest.lstrip()
        if 0 <= self._max_bytes < len(self._value):
            raise too_long(self._max_bytes)
        if self._value and self._is_closed:
            raise UnreadableError(_NO_JSON)
