"""Words without their endings and prefixes, by language: Snowball where it has the language, rules of our own where it
has not.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

from reactor_memory.text.caches import memo
from reactor_memory.text.languages import languages, of_script

_PACKAGE = "reactor_memory.text.snowball"

MAX_STEMMED = 40
"""A longer word is no word of a language."""

_SCRIPTS = (
    (0x024F, "latin"),
    (0x036F, ""),
    (0x03FF, "greek"),
    (0x052F, "cyrillic"),
    (0x058F, "armenian"),
    (0x05FF, "hebrew"),
    (0x08FF, "arabic"),
    (0x097F, "devanagari"),
    (0x09FF, "bengali"),
    (0x0B7F, ""),
    (0x0BFF, "tamil"),
    (0x0C7F, "telugu"),
    (0x1DFF, ""),
    (0x1EFF, "latin"),
    (0x1FFF, "greek"),
)
_ACCENTED = frozenset(("latin", "greek", "cyrillic"))
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0487]")
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ħ": "h", "ς": "σ"}
)
"""Letters that are written as others where a keyboard lacks them, and have no accent to lose."""

_TO_ARABIC = str.maketrans("یکہە", "يكهه")
_TO_PERSIAN = str.maketrans("يىك", "ییک")
_ARABIC_FORMS = str.maketrans("أإآٱىيئؤكةەہ", "ااااییی" + "وکههه")
_HEBREW_FORMS = str.maketrans("ךםןףץ", "כמנפצ")
_HEBREW_PREFIX = re.compile("^[והבכלמש]+")
_HEBREW_ENDING = re.compile("(?:ימ|ות|ינ|יה|ה|ת|י)$")
_NUKTA = str.maketrans("", "", "\u093c\u09bc")
_NASAL = str.maketrans("ँ", "ं")
_UKRAINIAN_ENDING = re.compile(
    "(?:ування|увати|ення|ання|ями|ами|ові|еві|ого|ому|ими|ій|ої|ою|ею|єю|их|ах|ях|ів|їв|ам|ям|ом|ем|єм|ти|ла|ло|ли"
    "|ть|ся|[аеєиіїйоуюяьв])$"
)


def script_of(word: str) -> str:
    """The script of the first letter of a word, where it has languages with endings."""
    place = ord(word[0])
    return next((script for last, script in _SCRIPTS if place <= last), "")


@memo(maxsize=16_384)
def stems(word: str, language: str | None) -> tuple[str, ...]:
    """What a word of one script, in lower case, is found by: its stem without accents; also that of the word written
    without them, if it is another one.

    Of a word in another script than `language` is written in, the first language of that script decides.
    """
    if len(word) > MAX_STEMMED or (not word.isalpha() and word.isascii()):
        return (unaccented(word),)
    script = script_of(word)
    spoken = _spoken(script, language)
    stem = _STEMS.get(spoken, _snowball)(word, spoken)
    if script not in _ACCENTED or word.isascii():
        return (stem,)
    plain = unaccented(word)
    return tuple(dict.fromkeys((unaccented(stem) or plain, unaccented(_STEMS.get(spoken, _snowball)(plain, spoken)))))


def unaccented(word: str) -> str:
    """A word without accents, where letters of Latin, Greek or Cyrillic bear them."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word))).translate(_LETTERS)


def _spoken(script: str, language: str | None) -> str:
    known = of_script(script)
    if language in known:
        return language or ""
    return known[0] if known else ""


def _snowball(word: str, language: str) -> str:
    known = languages().get(language)
    if known is None or not known.stemmer:
        return word
    # A stemmer holds the word that it works on, so that no two threads may share one.
    stemmer: Any = _stemmer(known.stemmer)()
    return stemmer.stemWord(word) or word


@cache
def _stemmer(name: str) -> Callable[[], Any]:
    """The class of an algorithm, without the other 35 that the package imports when it is imported itself."""
    if _PACKAGE not in sys.modules:
        found = find_spec("snowballstemmer")
        package = ModuleType(_PACKAGE)
        package.__path__ = list((found and found.submodule_search_locations) or ())
        sys.modules[_PACKAGE] = package
    module = import_module(f"{_PACKAGE}.{name}_stemmer")
    return cast("Callable[[], Any]", getattr(module, f"{name.title()}Stemmer"))


def _arabic(word: str, language: str) -> str:
    return _snowball(word.translate(_TO_ARABIC), language).translate(_ARABIC_FORMS)


def _persian(word: str, language: str) -> str:
    word = word.translate(_TO_PERSIAN)
    bare = word.removeprefix("ال")  # the article of Arabic, in what was borrowed or quoted
    return _snowball(bare if len(bare) > 2 else word, language).translate(_ARABIC_FORMS)


def _hebrew(word: str, language: str) -> str:
    """Without the prefixes that are written on a word, as long as three letters stay, and without an ending."""
    word = word.translate(_HEBREW_FORMS)
    found = _HEBREW_PREFIX.match(word)
    rest = word[min(found.end(), len(word) - 3) :] if found and len(word) > 3 else word
    ending = _HEBREW_ENDING.search(rest)
    return rest[: ending.start()] if ending and ending.start() >= 3 else rest


def _ukrainian(word: str, language: str) -> str:
    found = _UKRAINIAN_ENDING.search(word)
    return word[: found.start()] if found and found.start() >= 3 else word


def _indic(word: str, language: str) -> str:
    return _snowball(word.translate(_NUKTA), language).translate(_NASAL)


_STEMS: dict[str, Callable[[str, str], str]] = {
    "ar": _arabic,
    "fa": _persian,
    "ur": _persian,
    "he": _hebrew,
    "uk": _ukrainian,
    "hi": _indic,
    "mr": _indic,
    "bn": _indic,
}

_KOREAN_PARTICLE = re.compile(
    "(?:이라고는|에서부터|으로부터|에게서는|이었습니다|입니다|이에요|예요|이었다|였어요|이라고|에서는|에서도|에게서|한테서|으로는|으로도|까지는"
    "|까지|부터|처럼|보다|마다|조차|마저|라고|이랑|하고|이나|에서|에게|한테|으로|이야|인가요|인가|인데|들이|들은|들을|들의|들도|들|은|는|이|가|을|를"
    "|에|의|로|와|과|도|만|요|랑|야)$"
)


def without_particle(word: str) -> str:
    """A Korean word without the particle at its end, if anything stays."""
    found = _KOREAN_PARTICLE.search(word)
    return word[: found.start()] if found and found.start() else word
