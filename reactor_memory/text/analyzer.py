"""A text as the terms that recall compares: words without their endings.

Every index and every query goes through `terms`, so that all of them mean the same word by the same term. An index
holds function words too, for names are made of them; a query leaves out those that stand outside a name.
"""

from __future__ import annotations

import re
import unicodedata

from reactor_memory.text.caches import memo

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
_WORD = re.compile("[\\w\U00020000-\U0003ffff]+")  # the planes of ideographs whole, assigned or not
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
_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_VOWELS = frozenset("aeiouy")


def terms(text: str, *, without: frozenset[str] = frozenset()) -> list[str]:
    """The terms of `text` in its order, repetitions included, of all words but those in `without`.

    Scripts without spaces give pairs of characters.
    """
    words = _WORD.findall(_unaccented(_CAMEL.sub(" ", text)).casefold().replace("_", " "))
    return [term for word in words if word not in without for term in _of_word(word)]


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    known = _NEWER.sub(" ", text)
    if _BEYOND.search(known):
        known = _NEWER_BEYOND.sub(" ", known)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", known)))


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
