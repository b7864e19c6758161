"""A text as the terms that recall compares: words without their endings.

Every index and every query goes through `terms`, so that all of them mean the same word by the same term. An index
holds function words too, for names are made of them; a query leaves out those that stand outside a name.
"""

from __future__ import annotations

import re
import unicodedata

from reactor_memory.memos import memo

MAX_TERM_CHARACTERS = 40


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _words(
    "a about also am an and any are as at be been but by can could did do does for from get give got had has have he"
    " her here hi him his how i if in into is it its just know let like me my need no not of off ok okay on or our out"
    " please remind she should so some tell than thank thanks that the their them then there these they this those to"
    " too up us use used want was we were what when where which who whom whose why will with would yes you your"
    " d ll m re s t ve"
)
"""Words that most sentences have, whatever they are about. English: in another language they are common terms, which
a rank counts for little.
"""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_VOWELS = frozenset("aeiouy")


def terms(text: str, *, without: frozenset[str] = frozenset()) -> list[str]:
    """The terms of `text` in its order, repetitions included, of all words but those in `without`.

    Scripts without spaces give pairs of characters.
    """
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", _CAMEL.sub(" ", text)))
    words = _WORD.findall(unicodedata.normalize("NFC", plain).casefold())
    return [term for word in words if word not in without for term in _of_word(word)]


@memo(maxsize=16_384)
def _of_word(word: str) -> tuple[str, ...]:
    if word.isascii():
        return (stem(word)[:MAX_TERM_CHARACTERS],)
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        found += [word[end : run.start()], *_pairs(run[0])]
        end = run.end()
    return tuple(term[:MAX_TERM_CHARACTERS] for term in (*found, word[end:]) if term)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def stem(word: str) -> str:
    """An English word in lower case without the endings of plural, tense and noun: ``reservations`` as ``reserve``.

    Lighter than Porter's stemmer ("An algorithm for suffix stripping", 1980): what remains has at least three letters
    with a vowel. Numbers and ids stay as they are.
    """
    if not word.isalpha() or len(word) < 4:
        return word
    singular = _singular(word)
    for ending, left in (("ations", 4), ("ation", 4), ("ment", 4), ("ings", 3), ("ing", 3), ("ed", 3)):
        rest = singular.removesuffix(ending)
        if rest != singular and len(rest) >= left and not _VOWELS.isdisjoint(rest):
            return _undoubled(rest).rstrip("e") or rest
    return (len(singular) > 3 and singular.rstrip("e")) or singular


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _undoubled(rest: str) -> str:
    return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
