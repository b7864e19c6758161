"""A text as the terms that an index and a query compare: one layer for recall, search and whatever reads words.

Every index and every query goes through this module, so that all of them mean the same word by the same term. An
index gets `terms`; a query gets `query_words`, in which each word has the terms that it may stand under, for a short
text does not always tell its language.

A term is a word in compatible forms (NFKC), case folded, without its ending and then without accents. Compounds
(paths, ids, snake and camel case) are found whole, behind `WHOLE`, and by their parts. Scripts without spaces give
pairs of characters; a Han character is found alone, too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from reactor_memory.text.caches import memo
from reactor_memory.text.languages import function_words, language_of, of_script
from reactor_memory.text.scripts import HAN, HANGUL, KANA, SOUTHEAST
from reactor_memory.text.stems import script_of, stems, unaccented, without_particle

ANALYZER_VERSION = 2
"""Changes with the terms of any text: what was indexed by another version is to be indexed again."""

MAX_TERM_CHARACTERS = 40
WHOLE = "\ua78a"
"""Before the whole form of a compound: a sign that no text keeps, and that full text engines take for a letter."""

ANY_ENDING = "*"
"""Behind a term of a query: all terms that begin so."""

MIN_PREFIX_CHARACTERS = 3
"""A shorter beginning is that of too many words."""

MAX_SHORTENED = 4
"""How many letters of a beginning may belong to the ending that its word loses."""

MAX_PARTS = 16
"""A compound of more parts, as encoded data, has no whole form."""

SHORT_QUERY_WORDS = 12
"""In a longer query its own words tell the language."""

SHORT_QUERY_CHARACTERS = 240
"""Few words may have thousands of parts (``a.a.a``), and each is stemmed in every language that it may be of."""

_NEWER = re.compile(
    "[\u0558\u058b-\u058c\u05c8-\u05c9\u088f-\u0897\u0c5c\u0cdc\u1acf-\u1af0\u1c89-\u1c8a\u208f\u209d-\u209f"
    "\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7f1\uab6c-\uab6d]"
)
_NEWER_BEYOND = re.compile(
    "[\U000105c0-\U000105f3\U000107bb-\U000107bf\U00010940-\U00010959\U00010d40-\U00010d85\U00010ec2-\U00010eff"
    "\U0001123f-\U00011240\U00011380-\U000113d3\U000116d0-\U000116e3\U00011b0a-\U00011bf9\U00011db0-\U00011df1"
    "\U00011f02-\U00011f59\U0001246f-\U0001247f\U00012550-\U00012686\U0001342f-\U000143fa\U00016100-\U00016139"
    "\U00016d40-\U00016d79\U00016ea0-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff\U00018cd6-\U00018cff"
    "\U00018d09-\U000191d2\U0001b123-\U0001b132\U0001b155\U0001b168\U0001ccd6-\U0001d128\U0001d250-\U0001d2d3"
    "\U0001d6a6\U0001df1f-\U0001dfff\U0001e030-\U0001e08f\U0001e4d0-\U0001e6ff]"
)
"""Letters, numbers and accents of Unicode 15 to 18, unknown to Python 3.11, whose tables are those of Unicode 14. They
separate words, so that an index gets the same terms from every version of Python. The ranges also cover characters
between them that separate words anyway.
"""
_BEYOND = re.compile("[\U00010000-\U0001ffff]")  # a class of one range, which is searched for at little cost

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b"
    "\u08ca-\u08e1\u08e3-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03"
    "\u0a3c-\u0a51\u0a70\u0a71\u0a75\u0a81-\u0a83\u0abc-\u0acd\u0ae2\u0ae3\u0afa-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bcd"
    "\u0bd7\u0c00-\u0c04\u0c3c-\u0c56\u0c62\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d62\u0d63"
    "\u0d81-\u0d83\u0dca-\u0ddf\u0df2\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f"
    "\u0f71-\u0f84\u0f86\u0f87\u0f8d-\u0fbc\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d"
    "\u108f\u109a-\u109d\u135d-\u135f\u1712-\u1715\u1732-\u1734\u1752\u1753\u1772\u1773\u17b4-\u17d3\u17dd\u18a9\u1920-\u193b\u1a17-\u1a1b"
    "\u1a55-\u1a7f\u1ab0-\u1abd\u1b00-\u1b04\u1b34-\u1b44\u1b80-\u1b82\u1ba1-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1ce8\u1ced"
    "\u1cf4\u1cf7-\u1cf9\u1dc0-\u1dff\u3099\u309a\ua802\ua806\ua80b\ua823-\ua827\ua880\ua881\ua8b4-\ua8c5\ua8e0-\ua8f1\ua926-\ua92d\ua947-\ua953"
    "\ua980-\ua983\ua9b3-\ua9c0\ua9e5\uaa29-\uaa36\uaa43\uaa4c\uaa4d\uaa7b-\uaa7d\uaab0-\uaabf\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabea\uabec\uabed"
)
"""Marks of the first plane: a word goes on behind them. Those of scripts beyond it separate words, on every Python."""


_WORDS = f"[\\w{_MARKS}\U00020000-\U0003ffff]+"
TOKEN = re.compile(f"{_WORDS}(?:[-./\\\\@:#\u2010]{_WORDS})*")
_ASCII_TOKEN = re.compile(r"\w+(?:[-./\\@:#]\w+)*", re.ASCII)
_SEPARATORS = re.compile("[-_./\\\\@:#\u2010]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_JOINER = re.compile("(?<=[\u0600-\u08ff])[\u200c\u200d]")
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u08ca-\u08e1\u08e3-\u08ff]")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_TAIL = re.compile(r"[a-z]+(\d{3,})")
_RUN = re.compile(
    f"(?P<han>[{HAN}]+)|(?P<kana>[\u3041-\u309f][\u3041-\u309f\u30fc]*|[\u30a0-\u30ff]+)|(?P<unspaced>[{SOUTHEAST}]+)"
    f"|(?P<hangul>[{HANGUL}]+)|(?P<word>[^{HAN}{KANA}{SOUTHEAST}{HANGUL}]+)"
)
_HIRAGANA = {place: place - 0x60 for place in range(0x30A1, 0x30F7)}


def terms(text: str, language: str | None = None) -> list[str]:
    """The terms that `text` is found by, in its order, repetitions included.

    `language` is that of the text, if it is known, as `languages.language_of` names it; else the text itself tells it,
    or the first language of its script counts. Never empty for a text with a letter.
    """
    normal = normal_form(text)
    language = language or language_of(normal)
    tokens = (_ASCII_TOKEN if normal.isascii() else TOKEN).findall(normal)
    return [term for token in tokens for term in _of_token(token, language)]


def normal_form(text: str) -> str:
    """`text` in compatible forms, without what is not seen, with plain digits."""
    if text.isascii():
        return text
    known = _NEWER.sub(" ", text)
    if _BEYOND.search(known):
        known = _NEWER_BEYOND.sub(" ", known)
    known = _JOINER.sub(" ", known).replace("\u200c", "").replace("\u200d", "").replace("\u200b", " ")
    normal = unicodedata.normalize("NFKC", _UNSEEN.sub("", known))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), normal)


def _parts(token: str) -> list[str]:
    """The words of a compound, as they are written."""
    return [part for each in _SEPARATORS.split(token) if each for part in _CAMEL.split(each)]


def _folded(word: str) -> str:
    if word.isascii():
        return word.casefold()
    bare = _POINTS.sub("", word) or word
    return unicodedata.normalize("NFC", bare.casefold().replace("i\u0307", "i"))


def _wholes(token: str, parts: Sequence[str]) -> Iterator[str]:
    """The whole form of a compound, and that of what a path ends with."""
    if not 1 < len(parts) <= MAX_PARTS:
        return
    yield _whole(token)
    last = token.replace("\\", "/").rpartition("/")[2]
    if last != token and len(_parts(last)) > 1:
        yield _whole(last)


def _whole(token: str) -> str:
    """Of a long one the end, which says more than its beginning."""
    return WHOLE + unaccented(_folded(_SEPARATORS.sub("", token)))[1 - MAX_TERM_CHARACTERS :]


@memo(maxsize=32_768)
def _of_token(token: str, language: str | None) -> tuple[str, ...]:
    return tuple(term[:MAX_TERM_CHARACTERS] for run in _runs(token) for term in _of_run(*run, language))


def _runs(token: str) -> Iterator[tuple[str, str]]:
    """The runs of one kind of script in a token, each with its kind."""
    if token.isascii():
        yield "word", token
    else:
        for run in _RUN.finditer(token):
            yield run.lastgroup or "", run[0]


def _of_run(kind: str, run: str, language: str | None) -> Iterator[str]:
    if kind == "word":
        parts = _parts(run)
        for part in parts:
            yield from _of_word(_folded(part), language)
        yield from _wholes(run, parts)
        return
    yield from _pairs(kind, run)
    if kind == "han" and len(run) > 1:
        yield from run


def _of_word(word: str, language: str | None) -> Iterator[str]:
    yield from stems(word, language)
    if tail := _TAIL.fullmatch(word):
        yield tail[1]


def _pairs(kind: str, run: str) -> list[str]:
    """The pairs of characters of a run without spaces; of Korean without the particle."""
    if kind == "kana":
        run = run.translate(_HIRAGANA)
    if kind == "hangul":
        bare = without_particle(run)
        if len(bare) == 1 < len(run):
            return [*_pairs_of(run), bare]
        run = bare
    return _pairs_of(run)


def _pairs_of(characters: str) -> list[str]:
    return [characters[i : i + 2] for i in range(max(1, len(characters) - 1))]


class QueryWord(NamedTuple):
    """A word of a query: the `terms` that it may stand under, any of which finds it, and how it begins as written."""

    terms: tuple[str, ...]
    beginning: str = ""


def query_words(text: str, languages: Iterable[str] = ()) -> list[QueryWord]:
    """The words to look for, each once: those that mean something, or all if none does.

    `languages` are those that the texts searched are written in, if they are known. Where neither they nor `text` tell,
    a word has a term for each language of its script.
    """
    normal = normal_form(text)
    tokens = (_ASCII_TOKEN if normal.isascii() else TOKEN).findall(normal)
    told = language_of(normal)
    spoken = tuple(dict.fromkeys((*((told,) if told else ()), *languages)))
    is_open = not spoken and len(tokens) <= SHORT_QUERY_WORDS and len(normal) <= SHORT_QUERY_CHARACTERS
    each = dict.fromkeys(tokens)
    meant = _said(each, spoken, without=told or "en", is_open=is_open)
    return distinct(meant) or distinct(_said(each, spoken, without="", is_open=is_open))


def distinct(words: Iterable[QueryWord]) -> list[QueryWord]:
    """The words, those of one first term as one: two forms of a word ask for one thing."""
    found: dict[str, QueryWord] = {}
    for word in words:
        known = found.setdefault(word.terms[0], word)
        if known is not word:
            found[word.terms[0]] = known._replace(terms=tuple(dict.fromkeys((*known.terms, *word.terms))))
    return list(found.values())


def _said(tokens: Iterable[str], spoken: tuple[str, ...], *, without: str, is_open: bool) -> Iterator[QueryWord]:
    """The words of a query but the function words of the language `without`."""
    function = function_words(without)
    for token in tokens:
        for kind, run in _runs(token):
            if kind != "word":
                yield from _unspaced_words(kind, run, without)
                continue
            parts = _parts(run)
            for part in dict.fromkeys(map(_folded, parts)):
                if part not in function:
                    yield _query_word(part, spoken, is_open=is_open)
            for whole in _wholes(run, parts):
                bare = _alternatives(whole.removeprefix(WHOLE), spoken, is_open=is_open)
                yield QueryWord(tuple(dict.fromkeys((whole, *bare))))


def _unspaced_words(kind: str, run: str, without: str) -> Iterator[QueryWord]:
    function = function_words(without)
    if kind == "hangul" and (run in function or without_particle(run) in function):
        return
    pieces = _between_function_words(without).split(run) if kind in ("han", "unspaced") and function else [run]
    for piece in filter(None, pieces):
        yield from (QueryWord((pair,)) for pair in _pairs(kind, piece) if pair not in function)


@cache
def _between_function_words(language: str) -> re.Pattern[str]:
    """What separates the words of a language that writes no spaces."""
    words = sorted(map(_folded, map(normal_form, function_words(language))), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)))


def _query_word(word: str, spoken: tuple[str, ...], *, is_open: bool) -> QueryWord:
    terms = (*_alternatives(word, spoken, is_open=is_open), WHOLE + unaccented(word)[1 - MAX_TERM_CHARACTERS :])
    return QueryWord(terms, unaccented(word)[:MAX_TERM_CHARACTERS])


def _alternatives(word: str, spoken: tuple[str, ...], *, is_open: bool) -> tuple[str, ...]:
    """The stems of a word in each language that it may be of; the first of its script is that of texts that do not
    tell.
    """
    known = of_script(script_of(word))
    tried = known if is_open else (*(each for each in spoken if each in known), *known[:1])
    found = (stem[:MAX_TERM_CHARACTERS] for language in (tried or (None,)) for stem in stems(word, language))
    return tuple(dict.fromkeys(found))


def present(words: Iterable[QueryWord], frequencies: Mapping[str, int]) -> list[str]:
    """The terms to search for, given how many texts hold each: of every word those that any text holds, or the first
    where none does, which counts as missing. The whole form of a compound is never missing: its parts are.
    """
    found: dict[str, None] = {}
    for word in words:
        held = [term for term in word.terms if frequencies.get(term)]
        missing = () if word.terms[0].startswith(WHOLE) else word.terms[:1]
        found |= dict.fromkeys((*held,) or missing)
    return list(found)


def beginnings(word: QueryWord) -> tuple[str, ...]:
    """What to look for where no text holds a word: what begins as it does (with `ANY_ENDING`), and the stems that are
    some letters shorter, since the ending of an unfinished word cannot be told.
    """
    typed = word.beginning
    if len(typed) < MIN_PREFIX_CHARACTERS:
        return ()
    shorter = (typed[:-cut] for cut in range(1, MAX_SHORTENED + 1) if len(typed) - cut > MIN_PREFIX_CHARACTERS)
    return (typed + ANY_ENDING, *shorter)
