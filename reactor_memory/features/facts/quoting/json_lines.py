"""Lines of a log or of results that are records of JSON each: what they say, without their signs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import cast

from reactor_memory.features.facts.plain_text import plain_quotation
from reactor_memory.text.spans import leaf_text

MOST_BEFORE = 60
"""Characters before a record on its line: a time, or the name of what wrote it."""

MOST_FIELDS, LONGEST_FIELD = 6, 60
"""Fields of a record that are told, and the characters of one beside what it says."""

_MESSAGES = ("message", "msg", "event", "text", "textpayload", "body", "log")
_LEVELS = ("level", "severity", "lvl", "loglevel", "levelname", "log.level")
_TIMES = frozenset({"ts", "time", "timestamp", "@timestamp", "datetime", "date", "pid", "v"})
_DECODER = JSONDecoder()
_BEGINS = re.compile(r'\{\s{0,4}"')


def is_json_lines(text: str) -> bool:
    """Whether the first line of a text is a record, and another line follows."""
    first, _, rest = text.strip().partition("\n")
    return bool(rest) and _record(first) is not None


def told_part(line: str, most: int) -> str:
    """The part of a line that says what its record says: the whole record, or where that is too long its level and its
    message, or its message. A line that is no record is returned as it is.
    """
    start, record = _record(line) or (0, None)
    if record is None:
        return line
    whole = line[start:].strip()
    places = [_place(whole, name) for name in (_first(record, _LEVELS), _first(record, _MESSAGES)) if name]
    if len(whole) <= most or not places:
        return whole
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
    told = ((name, leaf_text(value)) for name, value in record.items() if not isinstance(value, (Mapping, list)))
    shown = [(name, text) for name, text in told if name not in without and 0 < len(text) <= LONGEST_FIELD]
    yield from (f"{plain_quotation(name)}={plain_quotation(text)}" for name, text in shown[:MOST_FIELDS])


def _record(line: str) -> tuple[int, Mapping[str, object]] | None:
    """Where the record of a line begins, and the record; it ends with the line."""
    begins = _BEGINS.search(line, 0, MOST_BEFORE)
    if begins is None:
        return None
    try:
        value, end = _DECODER.raw_decode(line, begins.start())
    except (ValueError, RecursionError):
        return None
    return None if line[end:].strip() else (begins.start(), cast("Mapping[str, object]", value))


def _first(record: Mapping[str, object], names: tuple[str, ...]) -> str:
    """The name of the first field that is called so and has one value."""
    lowered = {name.lower(): name for name, value in record.items() if isinstance(value, (str, int)) and value}
    return next((lowered[name] for name in names if name in lowered), "")


def _place(record: str, name: str) -> tuple[int, int]:
    """From the name of a field to the end of its value."""
    quoted, end = f'"{name}"', 0
    while (start := record.find(quoted, end)) >= 0:
        end = start + len(quoted)
        behind = record[end:]
        if behind.lstrip()[:1] == ":":
            value = end + len(behind) - len(behind.lstrip(" \t:"))
            return start, _DECODER.raw_decode(record, value)[1]
    return 0, len(record)
