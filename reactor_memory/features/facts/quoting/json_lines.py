"""Lines of a log or of results that are records of JSON each: what they say, without their signs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import cast

from reactor_memory.features.facts.plain_text import plain_quotation
from reactor_memory.features.facts.quoting.outcome_words import is_of_outcome
from reactor_memory.text.spans import leaf_text

MOST_FIELDS, LONGEST_FIELD = 6, 60
"""Fields of a record that are told, and the characters of one beside what it says."""

_MESSAGES = ("message", "msg", "event", "text", "textpayload", "body", "log")
_LEVELS = ("level", "severity", "lvl", "loglevel", "levelname", "log.level")
_TIMES = frozenset({"ts", "time", "timestamp", "@timestamp", "datetime", "date", "pid", "v"})
_DECODER = JSONDecoder()
_TIME = (
    r"(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?|\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_BEGINS = re.compile(
    r"\s{0,8}(?:[a-z][\w.-]{0,40}[-_]\d{1,4} {0,20}\|\s{0,8})?"
    rf"(?:\[?{_TIME}\]?:?\s{{1,8}})?"
    r'(?P<record>\{\s{0,4}")'
)
"""A record begins its line, behind the name of the container that wrote it and a time: other words say something."""

_BETWEEN = re.compile(r"[\s,:]*")


def first_record(text: str) -> Mapping[str, object] | None:
    """The record that is the first line of a text, where another line follows."""
    first, _, rest = text.strip().partition("\n")
    found = _record(first) if rest else None
    return found and found[1]


def is_of_log(record: Mapping[str, object], *, is_lookup: bool) -> bool:
    """Whether a record is an event that is told and not what a call gave: it has a level, or the call looked something
    up and the record has a message or a time.
    """
    names = {name.lower() for name in record}
    return not names.isdisjoint(_LEVELS) or (is_lookup and not names.isdisjoint({*_MESSAGES, *_TIMES}))


def told_part(line: str, most: int) -> str:
    """The part of a line that says what its record says: the whole record, or where that is too long its level and its
    message, or its message. A line that is no record is returned as it is.
    """
    start, record = _record(line) or (0, None)
    if record is None:
        return line
    whole = line[start:].strip()
    names = [name for name in (_first(record, _LEVELS), _first(record, _MESSAGES)) if name]
    if len(whole) <= most or not names:
        return whole
    found = {name: (begin, end) for name, begin, end in _places(whole)}
    places = [found[name] for name in names]
    part = whole[min(begin for begin, _ in places) : max(end for _, end in places)]
    return part if len(part) <= most else whole[slice(*places[-1])]


def shown_record(told: str, *, is_cut: bool = False) -> str:
    """What such a part says, as ``error: "disk full"; host=db-2``; empty if it is none."""
    if told[:1] not in ('"', "{"):
        return ""
    closed = told + '"' * is_cut
    found = _record(closed if told[:1] == "{" else "{" + closed + "}")
    if found is None or found[0]:
        return ""
    record = found[1]
    level, message = _first(record, _LEVELS), _first(record, _MESSAGES)
    if not message:
        if told[:1] == '"':
            return ""
        return ", ".join(_fields(record, frozenset()))
    mark = " …" * is_cut
    said = f'"{plain_quotation(leaf_text(record[message]))}{mark}"'
    others = ", ".join(_fields(record, {level, message, *(name for name in record if name.lower() in _TIMES)}))
    head = plain_quotation(leaf_text(record[level])) if level else ""
    head = f"{level}={head}: " if head.isdigit() else f"{head}: " if head else ""
    return f"{head}{said}{f' ({others})' if others else ''}"


def _fields(record: Mapping[str, object], without: set[str] | frozenset[str]) -> Iterator[str]:
    """The first fields, before others those that may say how it went; with a mark where some are left out."""
    told = ((name, leaf_text(value)) for name, value in record.items() if not isinstance(value, (Mapping, list)))
    fields = [(name, text) for name, text in told if name not in without and text]
    short = [(name, text) for name, text in fields if len(text) <= LONGEST_FIELD or is_of_outcome(name)]
    first = sorted(short, key=lambda field: not is_of_outcome(field[0]))[:MOST_FIELDS]
    yield from (f"{plain_quotation(name)}={plain_quotation(text)}" for name, text in short if (name, text) in first)
    if len(first) < len(fields):
        yield "…"


def _record(line: str) -> tuple[int, Mapping[str, object]] | None:
    """Where the record of a line begins, and the record; it ends with the line."""
    begins = _BEGINS.match(line)
    if begins is None:
        return None
    start = begins.start("record")
    try:
        value, end = _DECODER.raw_decode(line, start)
    except (ValueError, RecursionError):
        return None
    return None if line[end:].strip() else (start, cast("Mapping[str, object]", value))


def _first(record: Mapping[str, object], names: tuple[str, ...]) -> str:
    """The name of the first field that is called so and has one value."""
    lowered = {name.lower(): name for name, value in record.items() if isinstance(value, (str, int)) and value}
    return next((lowered[name] for name in names if name in lowered), "")


def _places(record: str) -> Iterator[tuple[str, int, int]]:
    """The fields of a record: the name, and from where to where a field stands."""
    end = 1
    while record[start := _behind(record, end)] != "}":
        name, end = _DECODER.raw_decode(record, start)
        _, end = _DECODER.raw_decode(record, _behind(record, end))
        yield name, start, end


def _behind(record: str, place: int) -> int:
    between = _BETWEEN.match(record, place)
    return between.end() if between else place
