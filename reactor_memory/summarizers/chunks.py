"""Sentences cut into chunks: the runs of words between function words, exactly as they stand in the text.

A chunk says which of its words are details (names, numbers, days); that needs the capitals of a script that has them,
digits work everywhere. One pass over the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.summarizers.lexicon import DETAIL_WORDS, STOP_WORDS

MAX_CHARACTERS = 8_000
"""How much of one text is read; the recall index covers the rest."""
MAX_CHUNK_WORDS = 16
MAX_WORD_CHARACTERS = 100
MAX_NAME_GAP = 2

_TOKEN = re.compile(r"[^\s。！？，、；]+[。！？，、；]?")
_EDGE = "\"'“”‘’«»()[]{}<>,;:!?.*_`~。！？，、；「」"
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]]*$")
_ABBREVIATION = re.compile(
    r"\W*(?:(?:[^\W\d_]\.)+|(?:dr|mr|mrs|ms|st|vs|no|jr|sr|prof|inc|ltd|ave|blvd)\.)\W*$", re.IGNORECASE
)
_BREAK_AFTER = re.compile(r"[,;:!?)\]}”».。！？，、；]$")
_SOFT_BREAK = re.compile(r"[,:]$")


class Chunk(NamedTuple):
    """A run of words: where it begins in the text, the words, and those of them that are details."""

    start: int
    text: str
    details: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.text.casefold().split())


class Sentence(NamedTuple):
    """A sentence as it stands in the text, and its chunks."""

    start: int
    text: str
    chunks: tuple[Chunk, ...]

    @property
    def details(self) -> int:
        return sum(len(chunk.details) for chunk in self.chunks)


def read_sentences(text: str) -> list[Sentence]:
    """The sentences of the beginning of a text."""
    text = text[:MAX_CHARACTERS]
    return [
        Sentence(words[0].begin, text[words[0].begin : words[-1].end], tuple(_chunks(words, text)))
        for words in _sentences(text)
    ]


class _Word(NamedTuple):
    """A word and its place: with (`begin`, `end`) and without (`start`, `stop`) the punctuation around it."""

    begin: int
    end: int
    start: int
    stop: int
    raw: str
    text: str

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper()

    @property
    def names_on(self) -> bool:
        """It may be inside a name that goes on over a comma."""
        return self.is_capitalised or any(character.isdigit() for character in self.text)

    @property
    def is_abbreviation(self) -> bool:
        return bool(_ABBREVIATION.match(self.raw))

    def is_detail(self, first: bool) -> bool:
        if "@" in self.text or any(character.isdigit() for character in self.text):
            return True
        return (self.is_capitalised and not first and self.text != "I") or self.text.lower() in DETAIL_WORDS


def _sentences(text: str) -> Iterator[list[_Word]]:
    words: list[_Word] = []
    for match in _TOKEN.finditer(text):
        if words and "\n" in text[words[-1].end : match.start()]:
            yield words
            words = []
        words.append(_word(match))
        if _SENTENCE_END.search(words[-1].raw[-8:]) and not words[-1].is_abbreviation:
            yield words
            words = []
    if words:
        yield words


def _word(match: re.Match[str]) -> _Word:
    raw = match.group()
    if len(raw) > MAX_WORD_CHARACTERS:
        return _Word(match.start(), match.end(), match.end(), match.end(), raw[-8:], "")
    start = match.start() + len(raw) - len(raw.lstrip(_EDGE))
    text = raw.strip(_EDGE)
    if text and _ABBREVIATION.match(raw):
        text = f"{text}."
    return _Word(match.start(), match.end(), start, start + len(text), raw, text)


def _chunks(words: Sequence[_Word], text: str) -> Iterator[Chunk]:
    run: list[int] = []
    for index, word in enumerate(words):
        inner = bool(word.text) and not _is_idle(words, index)
        if run and (not inner or len(run) == MAX_CHUNK_WORDS or _breaks_between(words[index - 1], word)):
            yield _chunk(words, run, text)
            run = []
        if inner:
            run.append(index)
    if run:
        yield _chunk(words, run, text)


def _is_idle(words: Sequence[_Word], index: int) -> bool:
    """A function word, unless it is part of a name: "Let it Be by the Beatles"."""
    word = words[index]
    if word.text.lower() not in STOP_WORDS:
        return False
    if word.text == "I" or index == 0:
        return True
    before = any(w.is_capitalised for w in words[max(0, index - MAX_NAME_GAP) : index])
    after = any(w.is_capitalised for w in words[index + 1 : index + 1 + MAX_NAME_GAP])
    return not (word.is_capitalised or (before and after))


def _breaks_between(before: _Word, after: _Word) -> bool:
    """Punctuation ends a chunk, but not inside a name: "Gregory Lane 5, Brooklyn", "Citadines (Apart Hotel)"."""
    opened = after.start > after.begin
    if before.names_on and after.is_capitalised:
        return not (_SOFT_BREAK.search(before.raw) or before.is_abbreviation or opened) and _closes(before)
    return opened or (_closes(before) and not before.is_abbreviation)


def _closes(word: _Word) -> bool:
    return bool(_BREAK_AFTER.search(word.raw))


def _chunk(words: Sequence[_Word], run: Sequence[int], text: str) -> Chunk:
    first, last = words[run[0]], words[run[-1]]
    value = text[first.start : last.stop]
    if value.count("(") > value.count(")") and text[last.stop : last.stop + 1] == ")":
        value += ")"
    return Chunk(first.start, value, tuple(words[i].text.casefold() for i in run if words[i].is_detail(i == 0)))
