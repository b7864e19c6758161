"""The words of a text: which are details (names, numbers, days), and which a short form can do without.

Capitals tell names in scripts that have them, digits tell numbers everywhere. One pass over the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.text.caches import memo

MAX_CHARACTERS = 8_000
"""How much of one text is read; the recall index covers the rest."""
MAX_WORD_CHARACTERS = 100
MAX_GAP = 2
"""Words that may be left out between two parts of a name or a date, and are not."""


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
EMPTY = _words(
    "a an the please just also very really so kindly okay ok well actually quite pretty simply basically totally"
    " definitely absolutely u"
)
"""Words that a sentence can lose and still say who did what."""

LINKS = _words(
    "to for in on at by with from as and of about into out who whom what when where which how anything something else"
)
STOP_WORDS = FILLERS | LINKS | _words("or but if then than why any some again more nothing now")
"""Words that say nothing of their own."""

PICTURE_MARK = "["
"""How a sentence begins that tells what a picture shows."""

COMMON_WORDS = _words(
    "able absolutely actually agree always amazing anything around awesome back bad beautiful best better big bit bring"
    " brings came can come cool could definitely different done even ever every everyone everything excited exciting"
    " fantastic far feel feeling feels felt few fun getting give gives glad go going gonna good gotta great guess"
    " happy hard hear hey hope hoping important inspiring interesting it's keep kind know last less life like little"
    " long lot lots love lovely made make makes making many maybe mean means might moment moments more most much must"
    " need never new nice now often old one part people perfect place pretty proud put quite reminds say see seems"
    " should show since someone something sometimes soon special still stuff super support sweet take takes taking talk"
    " thing things think thinking though thought through time times together too took totally tried true try trying"
    " understand use used want wanted way well wonderful work world worth would wow yet you're"
)
"""What people say in any talk, whatever it is about."""

VERBS = _words(
    "accept add adore affirm agree allow announce apologize apply appreciate arrange arrive ask assist assume attend"
    " authorize average avoid bake become begin believe bless book borrow break bring build buy call camp cancel care"
    " carry cast catch celebrate change charge chat check cheer choose climb close collect come compare complete"
    " confirm connect consider contact continue cook correct cost count cover create cross cut dance deal decide"
    " deliver depart depend deposit describe design discover discuss divide donate double download draw drink drive"
    " drop earn eat end enjoy ensure expect explain explore express fail fall feel fight fill finalize find finish fit"
    " fix fly follow forget garden gather get give go guess handle happen hate head hear help hike hire hit hold hope"
    " hurt imagine improve include inspire introduce invite jog join jump keep know land last laugh lead learn leave"
    " lend let lie lift like list listen live locate lock look lose love make manage mark marry match mean meet"
    " mention mind miss modify move name need note notice offer open operate order organize owe own pack paint park"
    " pass pause pay perform permit pick plan play point post prefer prepare press print proceed promise provide pull"
    " purchase push put raise reach read realize receive recommend record reduce refer refuse relax release remain"
    " remember remind remove rent repair repeat replace reply report request require reschedule reserve respond rest"
    " return review ride ring rise run sail save say schedule search see seem select sell send separate serve set"
    " settle share shop show sign sing sit ski skip sleep smell smile sort sound speak spend split stand start state"
    " stay stop stream study suggest supply support suppose surf swim switch take talk taste teach tell text thank"
    " think throw touch track train transfer travel trust try turn type unlock update use verify visit volunteer wait"
    " wake walk want warn wash waste watch wear win wish wonder work worry wrap write"
)
"""Verbs of talk and errands, as they stand after "I"."""

PAST_VERBS = _words(
    "ate became began bought broke brought built came chose dealt did drank drew drove fell felt flew fought found"
    " gave got grew had heard held hid kept knew laid lit lost meant met paid put ran read rode rose said sang sat"
    " saw set shook showed slept sold spent spoke stood swam swore taught thought threw told took tore understood"
    " went woke won wore wrote"
)
"""The past of some, where it does not end in "ed"."""

NEGATIONS = _words("no not never don't doesn't didn't cannot can't won't wouldn't shouldn't mustn't without")

_VERBAL = (
    (PAST_VERBS | VERBS | FILLERS | NEGATIONS)
    - CALENDAR_WORDS
    - _words("a an the this that these those there here its my our your his her their also just please let okay ok yes")
    - _words(
        "yeah sure great thanks thank hi hello well very really right correct following so kindly u no not never found"
    )
    - _words("without name show order book")
) | _words("could should might must may had says won")
"""Words that show that a sentence says what somebody does or is."""

_ENGLISH = (FILLERS | LINKS | NEGATIONS | _words("only perhaps maybe another")) - _words("me was so hat will in an am")
"""Small words that hardly another language has."""

_BEFORE_VERBS = _words("please kindly then and now so just also no yes ok okay to")
_NO_FORMS = _words("anything something nothing everything during evening morning spring string hundred")
SHORTEST_FORM = 4

_TIME_UNITS = CALENDAR_WORDS | _words(
    "minute minutes hour hours day days night nights week weeks weekend month months year years"
)
_POINTING = _words("this next last")
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


def says_what(sentence: Sentence) -> bool:
    """Whether a sentence has a verb or a person, as far as English words tell; in other languages it counts as having.

    "New York City" and "At half past nine" answer a question and say nothing without it.
    """
    words = [word for word in sentence.words if word.text]
    is_english = any(word.folded in _ENGLISH for word in words)
    if not is_english and not all(word.counts or word.is_capitalised for word in words):
        return True
    first = next((word for word in words if word.folded not in _BEFORE_VERBS), words[0]) if words else None
    return any(_is_verbal(word, is_first=word is first) for word in words)


def _is_verbal(word: Word, *, is_first: bool) -> bool:
    if word.is_capitalised and not is_first:
        return False
    said = word.folded.replace("’", "'")
    if said in _VERBAL or "'" in said or (is_first and said in VERBS):
        return True
    if said.endswith("s") and (said[:-1] in VERBS or said[:-2] in VERBS):
        return True
    return len(said) > SHORTEST_FORM and said.endswith(("ing", "ed")) and said not in _NO_FORMS


def read_sentences(text: str) -> list[Sentence]:
    """The sentences of the beginning of a text."""
    text = text[:MAX_CHARACTERS]
    return [Sentence(words[0].begin, text[words[0].begin : words[-1].end], tuple(words)) for words in _sentences(text)]


@memo(maxsize=4096)
def squeeze(text: str) -> str:
    """A text without the words that it says nothing with: nothing is added, nothing changes its place.

    Who does what to whom stays, and so do names ("The Beatles"), dates, negations, conditions and numbers, and the mark
    of a question.
    """
    return " ".join(part for sentence in read_sentences(text) if (part := _squeezed(sentence, text, EMPTY)))


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


def _squeezed(sentence: Sentence, text: str, idle: frozenset[str]) -> str:
    runs: list[tuple[int, int]] = []
    before: Word | None = None
    for word, keep in zip(sentence.words, _kept(sentence.words, idle), strict=True):
        if keep and before is not None:
            runs[-1] = (runs[-1][0], word.stop)
        elif keep:
            runs.append((word.start, word.stop))
        before = word if keep else None
    last = runs[-1][1] if runs else 0
    squeezed = " ".join(_closed(text[start:stop], text[stop : stop + 1], is_last=stop == last) for start, stop in runs)
    return f"{squeezed}?" if squeezed and sentence.text.endswith("?") else squeezed


def _closed(run: str, after: str, *, is_last: bool) -> str:
    """A run with the bracket that closes the one in it, "Nord (by the sea)", and the colon behind it."""
    closes = after == ")" and run.count("(") > run.count(")")
    return run + after if closes or (after == ":" and not is_last) else run


def _kept(words: Sequence[Word], idle: frozenset[str]) -> list[bool]:
    """Names and dates hold together whatever else is left out: "by the Beatles" in "Let It Be by the Beatles"."""
    kept = [bool(word.text) and not _is_idle(words, index, FILLERS | LINKS) for index, word in enumerate(words)]
    end = 0
    for index in [index for index, keep in enumerate(kept) if keep]:
        if 0 < index - end <= MAX_GAP + 1 and end and _belongs(words[end - 1], words[end:index], words[index]):
            kept[end:index] = [True] * (index - end)
        elif index > end and words[index].folded in _TIME_UNITS and words[index - 1].folded in _POINTING:
            kept[index - 1] = True
        end = index + 1
    return [keep or (bool(words[i].text) and not _is_idle(words, i, idle)) for i, keep in enumerate(kept)]


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


def _belongs(before: Word, gap: Sequence[Word], after: Word) -> bool:
    """Small words between two parts of a name or of a date belong to it."""
    if any(not word.text or word.closes for word in (before, *gap)):
        return False
    if before.is_capitalised and after.is_capitalised:
        return True
    return before.counts and after.folded in _TIME_UNITS
