"""The words of a text: which are details (names, numbers, days).

Capitals tell names in scripts that have them, digits tell numbers everywhere. One pass over the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_CHARACTERS = 8_000
"""How much of one text is read; the recall index covers the rest."""
MAX_WORD_CHARACTERS = 100


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
CALENDAR_WORDS = frozenset(MONTHS) | _words(
    "jan feb mar apr jun jul aug sept sep oct nov dec monday tuesday wednesday thursday friday saturday sunday today"
    " tonight tomorrow yesterday noon midnight morning afternoon evening"
)
DETAIL_WORDS = CALENDAR_WORDS | _words(
    "am pm one two three four five six seven eight nine ten eleven twelve dozen hundred thousand million single double"
)
"""Words that are details although they are written in lower case."""

FILLERS = _words(
    "a an the this that these those there here it it's its i am i'm i'd i'll i've me my mine we we're us our you"
    " you'd you're you'll we'll we'd let's your he she him her his they them their be is are was were been being"
    " do does did have has having will would can shall please also just like want wants wanted"
    " need looking look find get got make let know tell okay ok yes yeah sure great thanks thank hi hello well"
    " very really right confirm confirming check correct following found interested help think there's that's"
    " what's sorry so kindly u"
)
LINKS = _words(
    "to for in on at by with from as and of about into out who whom what when where which how anything something else"
)
STOP_WORDS = FILLERS | LINKS | _words("or but if then than why any some again more nothing now")
"""Words that say nothing of their own."""

NEGATIONS = _words("no not never don't doesn't didn't cannot can't won't wouldn't shouldn't mustn't without")

_SIGNS = _words("# & + - – @ = / %")
_FIRST_PERSON = re.compile(r"I(?:['’]\w+)?$")
_TOKEN = re.compile(r"[^\s。！？，、；]+[。！？，、；]?")
_EDGE = "\"'“”‘’«»()[]{}<>,;:!?.*_`~。！？，、；「」"
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]]*$")
_ABBREVIATION = re.compile(
    r"\W*(?:(?:[^\W\d_]\.)+|(?:dr|mr|mrs|ms|st|vs|jr|sr|prof|inc|ltd|co|corp|ave|blvd|approx|e\.g|i\.e)\.)\W*$",
    re.IGNORECASE,
)
_BREAK_AFTER = re.compile(r"[,;:!?)\]}”».。！？，、；]$")


class Word(NamedTuple):
    """A word and its place: with (`begin`, `end`) and without (`start`, `stop`) the punctuation around it."""

    begin: int
    end: int
    start: int
    stop: int
    raw: str
    text: str

    @property
    def folded(self) -> str:
        return self.text.casefold()

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper() and not _FIRST_PERSON.match(self.text)

    @property
    def counts(self) -> bool:
        """It is a number, a day or a month."""
        return any(character.isdigit() for character in self.text) or self.text.lower() in DETAIL_WORDS

    @property
    def is_abbreviation(self) -> bool:
        return bool(_ABBREVIATION.match(self.raw))

    @property
    def closes(self) -> bool:
        """Punctuation after it ends a run of words."""
        return bool(_BREAK_AFTER.search(self.raw)) and not self.is_abbreviation


class Sentence(NamedTuple):
    """A sentence as it stands in the text from `start` on; the places of its words count in the text, too."""

    start: int
    text: str
    words: tuple[Word, ...]

    @property
    def details(self) -> tuple[str, ...]:
        """The words that are names, numbers, days or addresses, case folded."""
        return tuple(
            word.folded
            for index, word in enumerate(self.words)
            if not (_is_idle(self.words, index, FILLERS | LINKS) or _is_of_checking(self.words, index))
            and (word.counts or "@" in word.text or (index and word.is_capitalised))
        )

    @property
    def content(self) -> frozenset[str]:
        """Its words without the ones that say nothing of their own, case folded."""
        return frozenset(word.folded for word in self.words if word.text) - STOP_WORDS


def read_sentences(text: str) -> list[Sentence]:
    """The sentences of the beginning of a text."""
    text = text[:MAX_CHARACTERS]
    return [Sentence(words[0].begin, text[words[0].begin : words[-1].end], tuple(words)) for words in _sentences(text)]


def _sentences(text: str) -> Iterator[list[Word]]:
    words: list[Word] = []
    for match in _TOKEN.finditer(text):
        if words and "\n" in text[words[-1].end : match.start()]:
            yield words
            words = []
        words.append(_word(match))
        if _ends_sentence(words[-1], text):
            yield words
            words = []
    if words:
        yield words


def _ends_sentence(word: Word, text: str) -> bool:
    """Its last sign ends a sentence: no abbreviation, and no ordinal as in "vom 3. bis 6."."""
    if not _SENTENCE_END.search(word.raw[-8:]) or word.is_abbreviation:
        return False
    return not (word.text.isdigit() and word.raw.endswith(".") and text[word.end + 1 : word.end + 2].islower())


def _word(match: re.Match[str]) -> Word:
    raw = match.group()
    if len(raw) > MAX_WORD_CHARACTERS:
        return Word(match.start(), match.end(), match.end(), match.end(), raw[-8:], "")
    if raw in _SIGNS:
        return Word(match.start(), match.end(), match.start(), match.end(), raw, raw)
    start = match.start() + len(raw) - len(raw.lstrip(_EDGE))
    text = raw.strip(_EDGE)
    if text and raw[start - match.start() + len(text) :].startswith(".") and _ABBREVIATION.match(raw):
        text = f"{text}."
    return Word(match.start(), match.end(), start, start + len(text), raw, text)


def _is_idle(words: Sequence[Word], index: int, idle: frozenset[str]) -> bool:
    """A word of `idle`, unless it is written as a name, is what somebody does not want, or the "am" of a time."""
    word = words[index]
    if word.text.lower() not in idle:
        return False
    if not index or words[index - 1].closes:
        return True
    if words[index - 1].folded in NEGATIONS:
        return False
    return not (word.is_capitalised or (word.folded == "am" and words[index - 1].counts))


def _is_of_checking(words: Sequence[Word], index: int) -> bool:
    """The "double" of "double check", which is no number."""
    follows = words[index + 1].folded if index + 1 < len(words) else ""
    return words[index].folded == "double" and follows.startswith("check")
