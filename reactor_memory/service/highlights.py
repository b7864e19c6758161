"""The part of a text that answers a search, with the words that were found marked. Pure.

A highlight is plain text: the words stand between `OPEN` and `CLOSE`. These two characters are taken out of the text
itself, so that whoever splits at them gets what was found and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reactor_memory.terms import terms

OPEN, CLOSE = "\u27e6", "\u27e7"
LENGTH = 200
"""Characters of the text that a highlight shows, about."""

MAX_SCANNED = 20_000
"""How much of a text is looked at: as much of it as can be found."""

_MARKS = str.maketrans({OPEN: "[", CLOSE: "]"})
_WORD = re.compile(r"[^\W_]+")
_SPACE = re.compile(r"\s+")


class _Match(NamedTuple):
    start: int
    end: int
    terms: frozenset[str]


def highlight(text: str, wanted: Sequence[str]) -> str:
    """About `LENGTH` characters of `text`, on one line, where most of the terms `wanted` stand; its beginning if it has
    none of them.
    """
    line = _SPACE.sub(" ", text[:MAX_SCANNED].translate(_MARKS)).strip()
    matches = list(_matches(line, frozenset(wanted)))
    start, end = _window(line, matches)
    shown = _marked(line, start, end, [match for match in matches if start <= match.start and match.end <= end])
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def _matches(line: str, wanted: frozenset[str]) -> list[_Match]:
    found = ((word.start(), word.end(), wanted.intersection(terms(word[0]))) for word in _WORD.finditer(line))
    return [_Match(start, end, held) for start, end, held in found if held]


def _window(line: str, matches: Sequence[_Match]) -> tuple[int, int]:
    """Where the part begins and ends: around the matches that hold most terms together, on word borders."""
    if not matches:
        return 0, _word_end(line, LENGTH)
    best = max(range(len(matches)), key=lambda first: (_held(matches, first), -first))
    middle = (matches[best].start + min(_last(matches, best).end, matches[best].start + LENGTH)) // 2
    start = max(0, min(middle - LENGTH // 2, len(line) - LENGTH, matches[best].start))
    return _word_start(line, start), _word_end(line, max(start + LENGTH, matches[best].end))


def _near(matches: Sequence[_Match], first: int) -> Sequence[_Match]:
    limit = matches[first].start + LENGTH
    return [match for match in matches[first:] if match.end <= limit] or [matches[first]]


def _held(matches: Sequence[_Match], first: int) -> int:
    """How many different terms stand near each other from this match on."""
    return len(frozenset[str]().union(*(match.terms for match in _near(matches, first))))


def _last(matches: Sequence[_Match], first: int) -> _Match:
    return _near(matches, first)[-1]


def _word_start(line: str, position: int) -> int:
    """The beginning of the word that `position` stands in."""
    return line.rfind(" ", 0, position + 1) + 1 if position and line[position] != " " else position


def _word_end(line: str, position: int) -> int:
    if position >= len(line):
        return len(line)
    end = line.find(" ", position)
    return len(line) if end < 0 or end > position + LENGTH else end


def _marked(line: str, start: int, end: int, matches: Sequence[_Match]) -> str:
    pieces: list[str] = []
    for match in matches:
        pieces += (line[start : match.start], OPEN, line[match.start : match.end], CLOSE)
        start = match.end
    return "".join((*pieces, line[start:end])).strip()
