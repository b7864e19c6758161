"""The gate: what a context does not say although the log holds it. Pure.

A message that was withdrawn or erased is not there any more. Here stands what is there and is not told: messages that
were cleared, and statements that a person took back, replaced or muted. Every source of a context asks this one value.
Whoever asks for what was taken out of view asks `NOTHING_WITHHELD`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from reactor_memory.models import LARGEST, Value
from reactor_memory.models.seq_ranges import joined_ranges, overlaps
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.spans import sentences

LEAST_CHARACTERS = 4
"""A shorter value ("no", "5") stands in many sentences that say something else."""

SINGULAR_CHARACTERS = 5
SINGULAR_WORDS = 4
"""From so many characters on a value with a digit, and from so many words on any value, is taken to be the same
statement wherever it stands: a number, a date, a sentence.
"""

OWN_SHARE = 0.5
"""A sentence of an answer that takes this share of its words from a statement repeats it."""

MOST_TEXTS = 1024
"""Texts that are remembered as words (sentences, most of them): each is held against every statement."""

_SPEAKERS = frozenset({"assistant", "user", "agent", "system", "tool"})
"""Before what was said stands who said it."""

_WORDS = re.compile(r"[^\W_]+")


class Statement(Value, frozen=True, kw_only=True):
    """The value that message `seq` states at `span` of its evidence, and that is not to be told.

    `answered_seq` is the last message of the turn, in which the same value is the same statement. What was said behind
    `until_seq` was said anew, and counts.
    """

    seq: int
    value: str
    span: tuple[int, int] = (0, 0)
    answered_seq: int = 0
    until_seq: int = LARGEST

    def holds(self, span: tuple[int, int]) -> bool:
        """Whether what stands at `span` of the same message says it."""
        return span[0] <= self.span[0] and self.span[1] <= span[1] and span[0] < span[1]

    def stands_in(self, text: str) -> bool:
        """Whether a text says it word for word."""
        return _holds(spoken(text), spoken(self.value))

    def is_repeated_in(self, text: str) -> bool:
        """Whether a text of the same turn says it: word for word, or in a sentence with hardly a word of its own."""
        return self.stands_in(text) or any(map(self._is_repeated_by, sentences(text)))

    def _is_repeated_by(self, sentence: str) -> bool:
        words = {word for word in spoken(sentence).split() if _is_content(word)}
        shared = words & set(spoken(self.value).split())
        return bool(shared) and len(shared) >= OWN_SHARE * len(words)

    @property
    def is_telling(self) -> bool:
        """Whether its words alone tell that somebody says it."""
        return _characters(spoken(self.value)) >= LEAST_CHARACTERS

    @property
    def turn(self) -> tuple[int, int]:
        return self.seq, min(self.answered_seq, self.until_seq)

    def is_said(self, text: str, first: int, last: int) -> bool:
        """Whether `text`, which was made of the messages `first` to `last`, says it."""
        if overlaps((first, last), (self.turn,)):
            return self.is_repeated_in(text)
        return first <= self.until_seq and is_singular(self.value) and self.stands_in(text)


class Withheld(Value, frozen=True, kw_only=True):
    """What is withheld of one branch: the messages of `cleared`, and `statements`."""

    cleared: tuple[tuple[int, int], ...] = ()
    statements: tuple[Statement, ...] = ()

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The messages that memory passes over: those cleared, and those that make one of the statements."""
        return joined_ranges([*self.cleared, *((each.seq, each.seq) for each in self.statements)])

    def touches(self, first: int, last: int) -> bool:
        """Whether one of these messages is among `ranges`."""
        return overlaps((first, last), self.ranges)

    def is_said(self, text: str, first: int, last: int) -> bool:
        """Whether `text`, which was made of the messages `first` to `last`, says one of the statements."""
        return any(each.is_said(text, first, last) for each in self.statements)

    def without(self, text: str, first: int, last: int) -> str:
        """`text`, which was made of these messages, without the sentences that say one of the statements; nothing, if
        one stands across sentences.
        """
        if not self.statements:
            return text
        lines = (self._left(line, first, last) for line in text.splitlines())
        left = "\n".join(line for line in lines if line)
        return "" if any(each.stands_in(left) and each.is_said(left, first, last) for each in self.statements) else left

    def _left(self, line: str, first: int, last: int) -> str:
        said = sentences(line)
        left = [each for each in said if not self.is_said(each, first, last)]
        return line if len(left) == len(said) else " ".join(left)


NOTHING_WITHHELD = Withheld()
"""For whoever asks for everything."""


@memo(maxsize=MOST_TEXTS)
def spoken(text: str) -> str:
    """The words of a text, whatever stands between them."""
    return " ".join(_WORDS.findall(normal_form(text).casefold()))


def is_singular(value: str) -> bool:
    """Whether a value is hardly ever said of something else."""
    words = spoken(value)
    if words.count(" ") + 1 >= SINGULAR_WORDS:
        return True
    return _characters(words) >= SINGULAR_CHARACTERS and any(map(str.isdigit, words))


def _holds(text: str, value: str) -> bool:
    if not value:
        return False
    return f" {value} " in f" {text} " or (_is_unspaced(value) and value in text)


def _is_content(word: str) -> bool:
    return word not in _SPEAKERS and (len(word) >= LEAST_CHARACTERS or any(map(str.isdigit, word)))


def _characters(words: str) -> int:
    return sum(map(str.isalnum, words))


def _is_unspaced(words: Iterable[str]) -> bool:
    """Whether letters are among them of a script that knows no case: many of these put no space between words."""
    return any(unicodedata.category(each) == "Lo" for each in words)
