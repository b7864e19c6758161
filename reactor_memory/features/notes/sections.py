"""The sections of a Markdown text: how one is found, replaced, added and removed, with every other byte left alone.

A header is an ATX line (``## Title``, 0 to 3 spaces before it, closing ``#``s allowed) outside fenced code; underlined
headers are text. A section is a header and everything up to the next header of the same or a higher level. What stands
before the first header belongs to no section. Lines end with LF or CRLF.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\n]*))?\r?\n?")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ORDINAL = re.compile(r"(.+) \[([1-9][0-9]{0,3})\]")
_PATH_MARK = " > "
_LEVEL_OF_NEW = 2
_LISTED = 30
_BLANK = " \t\r\n"


class Section(NamedTuple):
    """A section of a text: its header stands at `start`, what follows the header line at `body`, and it ends before
    `end`. `path` holds the titles of the sections around it, and its own last.
    """

    level: int
    path: tuple[str, ...]
    start: int
    body: int
    end: int

    @property
    def title(self) -> str:
        return self.path[-1]


class NoSuchSectionError(LookupError):
    """No section has the header asked for. `headers` are those there are, as they can be asked for."""

    def __init__(self, headers: Sequence[str]) -> None:
        super().__init__("no such section")
        self.headers = tuple(headers)


class AmbiguousSectionError(LookupError):
    """Several sections have it. `headers` tell them apart."""

    def __init__(self, headers: Sequence[str]) -> None:
        super().__init__("several such sections")
        self.headers = tuple(headers)


class BrokenStructureError(ValueError):
    """The change would turn sections that it should leave alone into something else: a code fence is open, or a header
    cannot be read back.
    """


def sections(text: str) -> tuple[Section, ...]:
    """All sections in the order of their headers; one that lies in another follows it."""
    found: list[Section] = []
    around: list[int] = []
    for header in _headers(text):
        while around and found[around[-1]].level >= header.level:
            ended = around.pop()
            found[ended] = found[ended]._replace(end=header.start)
        path = (*(found[number].title for number in around), header.title)
        around.append(len(found))
        found.append(Section(header.level, path, header.start, header.body, len(text)))
    return tuple(found)


def find(text: str, header: str) -> Section:
    """The section with this header: a title (``Food``), one of a level (``## Food``), a path (``Likes > Food``), or
    one of several (``Food [2]``). A title in other letters (``FOOD``) is taken if there is none in these.

    Raises `NoSuchSectionError` and `AmbiguousSectionError`.
    """
    known = sections(text)
    matches = _matches(known, header)
    if not matches:
        raise NoSuchSectionError(addresses(known, known))
    if len(matches) > 1:
        raise AmbiguousSectionError(addresses(known, matches))
    return matches[0]


def addresses(known: Sequence[Section], wanted: Sequence[Section]) -> tuple[str, ...]:
    """For each of the first 30 of the `wanted` sections the shortest header by which it alone is found; those without
    one are left out.
    """
    found = (_address(known, section) for section in wanted[:_LISTED])
    return tuple(address for address in found if address is not None)


def replaced(text: str, header: str, content: str) -> str:
    """The header line of the section stays; what follows it, subsections included, becomes `content`. If that begins
    with the same header, it is not doubled.

    Raises what `find` raises, and `BrokenStructureError`.
    """
    section = find(text, header)
    content = _without_header(content, section.title)
    before, after = text[: section.body], text[section.end :]
    if content or after:
        before = _ended(before, _newline(text))
    return _checked(before + _followed(content, after, _newline(text)), after)


def removed(text: str, header: str) -> str:
    """Without the section and its subsections; the blank lines around it become one. Raises what `find` raises."""
    section = find(text, header)
    before, after = _trimmed_end(text[: section.start]), _trimmed_start(text[section.end :])
    if not before:
        return after
    before = _ended(before, _newline(text))
    return before + _newline(text) + after if after else before


def with_new(text: str, header: str, content: str) -> str:
    """With a new section at the end, of level 2 unless `header` states its level.

    Raises `BrokenStructureError` if `header` would not be found again, such as a path.
    """
    stated = _parsed_header(header)
    level, title = (stated.level, stated.title) if stated else (_LEVEL_OF_NEW, _normal(header))
    newline = _newline(text)
    added = "#" * level + f" {title}{newline}{_without_header(content, title)}"
    whole = joined(text, added)
    try:
        is_found = find(whole, header).start == len(whole) - len(added)
    except LookupError:
        is_found = False
    if not is_found or _PATH_MARK in title:
        raise BrokenStructureError
    return whole


def joined(first: str, second: str, separator: str | None = None) -> str:
    """Both texts with exactly one blank line between them, or with `separator`. A blank one adds nothing."""
    if separator is not None:
        return first + separator + second if first and second else first or second
    newline = _newline(first)
    first, second = _trimmed_end(first), _trimmed_start(second)
    return _ended(first, newline) + newline + second if first and second else first or second


def prepended(text: str, content: str, separator: str | None = None) -> str:
    """`content` before `text`. Raises `BrokenStructureError`."""
    kept = _trimmed_start(text) if separator is None else text
    return _checked(joined(content, text, separator), kept)


class _Header(NamedTuple):
    level: int
    title: str
    start: int
    body: int


def _headers(text: str) -> Iterator[_Header]:
    position = 0
    fence = ""
    for line in _LINE.findall(text):
        start, position = position, position + len(line)
        mark = _FENCE.match(line)
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif mark:
            fence = mark[1]
        elif (header := _parsed_header(line)) is not None:
            yield header._replace(start=start, body=position)


def _closes(line: str, fence: str) -> bool:
    indent = len(line) - len(line.lstrip(" "))
    mark = line.strip(_BLANK)
    return indent <= 3 and len(mark) >= len(fence) and set(mark) == {fence[0]}


def _parsed_header(line: str) -> _Header | None:
    header = _HEADER.fullmatch(line)
    if header is None:
        return None
    title = _CLOSING.sub("", (header[2] or "").strip(_BLANK))
    return _Header(len(header[1]), _normal(title), 0, 0)


def _normal(title: str) -> str:
    return unicodedata.normalize("NFC", " ".join(title.split()))


def _matches(known: Sequence[Section], header: str) -> list[Section]:
    """By title, else by path, else by what stands before an ordinal."""
    stated = _parsed_header(header.strip())
    level, title = (stated.level, stated.title) if stated else (None, _normal(header))
    levelled = [section for section in known if level in (None, section.level)]
    if not title:
        return []
    found = _titled(levelled, title) or _on_path(levelled, title)
    ordinal = None if found else _ORDINAL.fullmatch(title)
    if ordinal:
        several = _titled(levelled, ordinal[1]) or _on_path(levelled, ordinal[1])
        found = several[int(ordinal[2]) - 1 : int(ordinal[2])]
    return found


def _titled(known: Sequence[Section], title: str) -> list[Section]:
    exact = [section for section in known if section.title == title]
    return exact or [section for section in known if section.title.casefold() == title.casefold()]


def _on_path(known: Sequence[Section], address: str) -> list[Section]:
    path = tuple(address.split(_PATH_MARK))
    exact = [section for section in known if section.path[-len(path) :] == path]
    folded = tuple(title.casefold() for title in path)
    return exact or [
        section for section in known if tuple(title.casefold() for title in section.path[-len(path) :]) == folded
    ]


def _address(known: Sequence[Section], section: Section) -> str | None:
    names = (section.title, _PATH_MARK.join(section.path))
    candidates = (*names, *(f"{name} [{_ordinal(known, name, section)}]" for name in names))
    return next((candidate for candidate in candidates if _matches(known, candidate) == [section]), None)


def _ordinal(known: Sequence[Section], name: str, section: Section) -> int:
    alike = _titled(known, name) or _on_path(known, name)
    return alike.index(section) + 1 if section in alike else 0


def _without_header(content: str, title: str) -> str:
    lines = _LINE.findall(content)
    first = _first_filled(lines)
    header = _parsed_header(lines[first]) if first < len(lines) else None
    if header is None or header.title.casefold() != title.casefold():
        return content
    return "".join(lines[first + 1 :])


def _checked(whole: str, kept: str) -> str:
    """`whole`, if the headers of its end `kept` are still headers."""
    shift = len(whole) - len(kept)
    expected = [header._replace(start=header.start + shift, body=header.body + shift) for header in _headers(kept)]
    if [header for header in _headers(whole) if header.start >= shift] != expected:
        raise BrokenStructureError
    return whole


def _followed(content: str, after: str, newline: str) -> str:
    """`content` and what follows it: a section begins behind a blank line."""
    if not after:
        return content
    content = _ended(content, newline)
    ends_blank = _is_blank(_LINE.findall(content)[-1])
    return content + after if ends_blank else content + newline + after


def _newline(text: str) -> str:
    """The line ending that a text uses."""
    first = _LINE.match(text)
    return "\r\n" if first and first[0].endswith("\r\n") else "\n"


def _ended(text: str, newline: str) -> str:
    return text if text.endswith("\n") else text + newline


def _trimmed_start(text: str) -> str:
    """Without the blank lines that it begins with."""
    lines = _LINE.findall(text)
    return "".join(lines[_first_filled(lines) :])


def _trimmed_end(text: str) -> str:
    """Without the blank lines that it ends with."""
    lines = _LINE.findall(text)
    while lines and _is_blank(lines[-1]):
        lines.pop()
    return "".join(lines)


def _first_filled(lines: Sequence[str]) -> int:
    return next((number for number, line in enumerate(lines) if not _is_blank(line)), len(lines))


def _is_blank(line: str) -> bool:
    return not line.strip(_BLANK)
