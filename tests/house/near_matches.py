"""Texts that a pattern nearly matches again and again, derived from the pattern itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from re import _constants as codes  # pyright: ignore
from re import _parser as parser  # pyright: ignore
from typing import Any, NamedTuple

LONG = 10
"""A repetition that may be longer is one that a text can draw out."""
MOST_OF_A_CLASS = 6
MOST_BRANCHES = 60
MOST_CHARACTERS = 400
"""A fragment with drawn-out parts is no longer than this."""

NASTY = ("1", ".", "a", " ", "\n", "(", ")", "[", '"', "'", "-", "a ", "a.", "1.", "1 ", "a-", "漢", "A", "Aa ", ", ")
"""What is tried with every pattern: digits, dots, brackets, one word, spaces, quotes."""
TAILS = ("", "\0", "!")
"""What ends a text so that a nearly found match is none."""

_CLASSES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a ",
    codes.CATEGORY_SPACE: " \n",
    codes.CATEGORY_NOT_SPACE: "a.",
    codes.CATEGORY_WORD: "a1",
    codes.CATEGORY_NOT_WORD: " .",
}


class NearMatch(NamedTuple):
    """`head`, then `unit` as often as there is room, then `tail`."""

    head: str
    unit: str
    tail: str

    def of(self, length: int) -> str:
        return self.head + self.unit * max(1, length // len(self.unit)) + self.tail


def near_matches(pattern: re.Pattern[Any]) -> list[NearMatch]:
    """Each fragment of what the pattern matches, repeated alone and behind what the pattern wants before it."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    parsed = parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    pieces = [(head, unit[:1] if len(set(unit)) == 1 else unit) for head, unit in _pieces(parsed, "")]
    units = list(dict.fromkeys(chain(NASTY, (unit for _, unit in pieces), (head + unit for head, unit in pieces))))
    alone = (NearMatch("", unit, tail) for unit in units if unit for tail in TAILS)
    behind = (NearMatch(head, unit, tail) for head, unit in pieces if head and unit for tail in TAILS)
    return list(dict.fromkeys(chain(alone, behind)))


def _pieces(items: Iterable[Any], head: str) -> Iterator[tuple[str, str]]:
    """What may be repeated, each with what comes before it: every part, and every part with all before it."""
    for code, value in items:
        samples = _samples(code, value)
        for sample in samples:
            yield head, sample
        for inner in _inner(code, value):
            yield from _pieces(inner, head)
        if code not in (codes.ASSERT, codes.ASSERT_NOT):
            head = (head + (samples[0] if samples else ""))[-MOST_CHARACTERS:]


def _inner(code: Any, value: Any) -> Iterator[Any]:
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        yield value[2]
    elif code is codes.SUBPATTERN:
        yield value[3]
    elif code is codes.ATOMIC_GROUP:
        yield value
    elif code is codes.BRANCH:
        yield from value[1][:MOST_BRANCHES]
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield value[1]


def _samples(code: Any, value: Any) -> list[str]:
    """Texts that an item of a pattern matches, the plainest first."""
    if code is codes.LITERAL:
        return list(dict.fromkeys((chr(value), chr(value).lower())))
    if code is codes.NOT_LITERAL:
        return [each for each in "a 1" if ord(each) != value]
    if code is codes.ANY:
        return ["a", " "]
    if code is codes.IN:
        return _class_samples(value)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, body = value
        found = [text * least for text in _sequence_samples(body)] if least else _sequence_samples(body)
        drawn = min(most, MOST_CHARACTERS)
        return [*found, *(text * drawn for text in found[:2] if most > LONG and least < LONG and len(text) == 1)]
    if code is codes.SUBPATTERN:
        return _sequence_samples(value[3])
    if code is codes.ATOMIC_GROUP:
        return _sequence_samples(value)
    if code is codes.BRANCH:
        return [text for branch in value[1][:MOST_BRANCHES] for text in _sequence_samples(branch)[:1]]
    return []


def _class_samples(items: Iterable[Any]) -> list[str]:
    if any(code is codes.NEGATE for code, _ in items):
        compiled = [(code, value) for code, value in items if code is not codes.NEGATE]
        return [each for each in "a 1.\n-(" if not any(_holds(code, value, each) for code, value in compiled)]
    found: list[str] = []
    for code, value in items:
        if code is codes.LITERAL:
            found.append(chr(value))
        elif code is codes.RANGE:
            found.append(chr(value[0]))
        elif code is codes.CATEGORY:
            found.extend(_CLASSES.get(value, ""))
    return list(dict.fromkeys(found))[:MOST_OF_A_CLASS]


def _holds(code: Any, value: Any, character: str) -> bool:
    if code is codes.LITERAL:
        return ord(character) == value
    if code is codes.RANGE:
        return value[0] <= ord(character) <= value[1]
    return character in _CLASSES.get(value, "")


def _sequence_samples(items: Iterable[Any]) -> list[str]:
    """The first samples of all items together, then with the other samples of one item each."""
    every = [_samples(code, value) for code, value in items if code not in (codes.ASSERT, codes.ASSERT_NOT)]
    every = [samples for samples in every if samples]
    if not every:
        return []
    plain = [samples[0] for samples in every]
    found = ["".join(plain)]
    for place, samples in enumerate(every):
        found.extend("".join([*plain[:place], sample, *plain[place + 1 :]]) for sample in samples[1:])
    return [text[:MOST_CHARACTERS] for text in dict.fromkeys(found)][:MOST_OF_A_CLASS]
