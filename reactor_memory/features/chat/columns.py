"""How replies word numbers and previews. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

EXCERPT_CHARACTERS = 80
_JOINER = "\N{ZERO WIDTH JOINER}"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)


def count(number: int, noun: str) -> str:
    """``1 message``, ``1,234 messages``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def excerpt(text: str, characters: int = EXCERPT_CHARACTERS) -> str:
    """The beginning of a text on one line, at most so long. What a reader takes for one character is not cut in two."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    end = characters - 1
    while end and _belongs_to_the_one_before(line, end):
        end -= 1
    return line[: end or characters - 1].rstrip() + "…"


def _belongs_to_the_one_before(text: str, index: int) -> bool:
    character, before = text[index], text[index - 1]
    if unicodedata.category(character).startswith("M") or _JOINER in (character, before):
        return True
    return ord(character) in _SKIN_TONES or (ord(character) in _FLAG_LETTERS and ord(before) in _FLAG_LETTERS)


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns; the first is as wide as its longest text."""
    listed = list(rows)
    width = max((len(left) for left, _ in listed), default=0)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in listed)
