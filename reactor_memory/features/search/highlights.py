"""The part of a text that answers a search, with the words that were found marked. Pure.

A highlight is plain text: the words stand between `OPEN` and `CLOSE`. These two characters are taken out of the text
itself, so that whoever splits at them gets what was found and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.text.analyzer import ANY_ENDING, TOKEN, terms
from reactor_memory.text.languages import language_of

OPEN, CLOSE = "\u27e6", "\u27e7"
LENGTH = 200
"""Characters of the text that a highlight shows, about; never more than four times as many, marks not counted."""

MAX_SCANNED = 20_000
"""How much of a text is looked at: as much of it as can be found."""

_MARKS = str.maketrans({OPEN: "[", CLOSE: "]"})
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
    beginnings = tuple(term.removesuffix(ANY_ENDING) for term in wanted if term.endswith(ANY_ENDING))
    matches = list(_matches(line, frozenset(wanted), beginnings))
    start, end = _window(line, matches)
    shown = _marked(line, start, end, [match for match in matches if start <= match.start and match.end <= end])
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def _matches(line: str, wanted: frozenset[str], beginnings: tuple[str, ...]) -> Iterator[_Match]:
    """The words that hold a term. Of an endless word the beginning stands for it."""
    language = language_of(line)
    for word in TOKEN.finditer(line):
        its_terms = terms(word[0], language)
        if held := wanted.intersection(its_terms) or {term for term in its_terms if term.startswith(beginnings)}:
            yield _Match(word.start(), min(word.end(), word.start() + LENGTH), frozenset(held))


def _window(line: str, matches: Sequence[_Match]) -> tuple[int, int]:
    """Where the part begins and ends: around the matches that hold most terms together, on word borders."""
    if not matches:
        return 0, _word_end(line, LENGTH)
    first, last = _densest(matches)
    middle = (first.start + last.end) // 2
    start = max(0, min(middle - LENGTH // 2, len(line) - LENGTH, first.start))
    return _word_start(line, start), _word_end(line, max(start + LENGTH, first.end))


def _densest(matches: Sequence[_Match]) -> tuple[_Match, _Match]:
    """The first and the last match of the earliest `LENGTH` characters that hold the most different terms.

    One pass, since each match enters and leaves the characters looked at once.
    """
    best, most, after = (matches[0], matches[0]), 0, 0
    held = Counter[str]()
    for match in matches:
        while after < len(matches) and matches[after].end <= match.start + LENGTH:
            held.update(matches[after].terms)
            after += 1
        if len(held) > most:
            best, most = (match, matches[after - 1]), len(held)
        held -= Counter(match.terms)
    return best


def _word_start(line: str, position: int) -> int:
    """The beginning of the word that `position` stands in, unless that is far away."""
    if not position or line[position] == " ":
        return position
    found = line.rfind(" ", max(0, position - LENGTH), position) + 1
    return found or max(0, position - LENGTH)


def _word_end(line: str, position: int) -> int:
    """The end of the word that `position` stands in, unless that is far away."""
    farthest = min(position + LENGTH, len(line))
    found = line.find(" ", position, farthest + 1)
    return farthest if found < 0 else found


def _marked(line: str, start: int, end: int, matches: Sequence[_Match]) -> str:
    pieces: list[str] = []
    for match in matches:
        pieces += (line[start : match.start], OPEN, line[match.start : match.end], CLOSE)
        start = match.end
    return "".join((*pieces, line[start:end])).strip()
