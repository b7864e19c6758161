"""Where a text may be cut: never inside what a reader takes for one character, and where one word ends.

Characters as readers see them are the extended grapheme clusters of Unicode's annex 29, in a rule for a single place: a
letter keeps its marks, an emoji what it is joined with, a flag both its letters, a Hangul syllable its parts.
"""

from __future__ import annotations

import re
import unicodedata

from reactor_memory.text.scripts import HANGUL, UNSPACED

MAX_CLUSTER = 64
"""A longer run of marks may be cut: it is no character of any language."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_HANGUL = re.compile(f"[{HANGUL}]")
_EXTENDS = re.compile(
    "[\u200c\u200d\u0e33\u0eb3\uff9e\uff9f\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_JOINED_JAMO = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1100-\u11a7\ua960-\ua97c\uac00-\ud7a3]|[\u1160-\u11ff\uac00-\ud7a3][\u1160-\u11ff]"
)
_VIRAMA = re.compile("[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2]")
_ZWJ = "\u200d"


def cut(text: str, length: int) -> str:
    """The first `length` characters of `text`, or as many fewer as end with a whole character of the reader."""
    return text[: border_before(text, length)]


def cut_at_word(text: str, length: int) -> str:
    """`cut`, and not inside a word, unless half of the text would go. White space is collapsed before."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    words = text[: length + 1]
    return cut(words.rsplit(" ", 1)[0] if " " in words[length // 2 :] else words, length).rstrip()


def border_before(text: str, place: int) -> int:
    """The last place up to `place` where `text` can be cut."""
    if place <= 0 or place >= len(text):
        return max(0, min(place, len(text)))
    if text.isascii() and text[place - 1 : place + 1] != "\r\n":
        return place
    for found in range(place, max(0, place - MAX_CLUSTER), -1):
        if _is_border(text, found):
            return found
    return 0 if place <= MAX_CLUSTER else place


def border_after(text: str, place: int) -> int:
    """The first place from `place` on where `text` can be cut."""
    place = max(0, place)
    for found in range(place, place + MAX_CLUSTER):
        if not found or found >= len(text) or _is_border(text, found):
            return min(found, len(text))
    return place


def _is_border(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if before < "\x7f" and after < "\x7f":
        return before + after != "\r\n"
    if _EXTENDS.match(after) or unicodedata.category(after)[0] == "M":
        return False
    if before == _ZWJ or _JOINED_JAMO.match(before + after):
        return False
    if _VIRAMA.match(before) and unicodedata.category(after) == "Lo":
        return False
    return not (_FLAG.match(before) and _FLAG.match(after)) or _flags_before(text, place) % 2 == 0


def _flags_before(text: str, place: int) -> int:
    start = place
    while start > 0 and _FLAG.match(text[start - 1]):
        start -= 1
    return place - start


def joins(before: str, after: str) -> bool:
    """Whether two characters beside each other belong to one word: no border of words lies between them.

    Between characters of a script without spaces there is always one; so is behind Hangul, where particles stand.
    Empty: the end of the text.
    """
    if not before or not after:
        return False
    if unicodedata.category(after)[0] == "M":
        return True
    if not (_in_word(before) and _in_word(after)):
        return False
    return not (_UNSPACED.match(before) or _UNSPACED.match(after) or _HANGUL.match(after))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
