"""What is known about each language, and which one a text is written in.

The words stand in ``languages.toml``. A language is named by its two letters of ISO 639.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

from reactor_memory.models import Value

MAX_CHARACTERS = 2_000
"""How much of a text is read to tell its language."""

MIN_EVIDENCE = 0.9
"""A language is told by one word that no other has, or by two that few others have."""

MIN_MARGIN = 1.2
"""By how much more it must be told than the second best."""

_WORD = re.compile(r"[^\s\d_.,;:!?()\[\]{}<>|#@*=+/\\'’‘\"“”„«»।。、，！？؟،؛…–—-]+")
"""By what stands between words, for the marks of a word are no letters."""

_URDU = re.compile("[ٹڈڑےںھہ]")
_PERSIAN = re.compile("[پچژگکی]")
_UKRAINIAN = re.compile("[іїєґ]")
_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_THAI, _LAO, _KHMER = re.compile("[\u0e00-\u0e7f]"), re.compile("[\u0e80-\u0eff]"), re.compile("[\u1780-\u17ff]")
_BURMESE = re.compile("[\u1000-\u109f]")
_LATIN_SIGNS = (
    *(
        ("ß", "de"),
        ("[ñ¿¡]", "es"),
        ("[ãõ]", "pt"),
        ("[ğış]", "tr"),
        ("[łżąęśźń]", "pl"),
        ("[őű]", "hu"),
        ("[řěů]", "cs"),
    ),
    *(("[ășț]", "ro"), ("[ơưđ]", "vi"), ("[øæ]", "da"), ("å", "sv"), ("[äöü]", "de"), ("[àâçèéêëîïôœùû]", "fr")),
)
_SIGNS = (
    *((_URDU, "ur"), (_PERSIAN, "fa"), (_UKRAINIAN, "uk"), (_HANGUL, "ko"), (_KANA, "ja"), (_HAN, "zh")),
    *((_THAI, "th"), (_LAO, "lo"), (_KHMER, "km"), (_BURMESE, "my")),
    *((re.compile(letters), name) for letters, name in _LATIN_SIGNS),
)
"""Letters that tell a language, in the order in which they do."""


class Language(Value, frozen=True, kw_only=True):
    """`function`: words that most sentences have. `homographs`: words that are none here, but in another language.
    `questions`: words that begin a question. `endings`: particles that
    end one. `references`: phrases that point to what was said before. `fresh`: phrases of a question for what
    nobody said before. `stemmer`: the Snowball algorithm, if there is
    one. `script`: of the letters. `asks_anywhere`: a question word need not stand first.
    """

    script: str
    function: frozenset[str] = frozenset()
    homographs: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    endings: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    stemmer: str = ""
    asks_anywhere: bool = False


@cache
def languages() -> Mapping[str, Language]:
    """All languages by their names, in the order of the data: the first of a script is the one of a text that does not
    tell.
    """
    data = files("reactor_memory.text").joinpath("languages.toml").read_text("utf-8")
    return {name: _language(cast("Mapping[str, str]", values)) for name, values in tomllib.loads(data).items()}


def _language(values: Mapping[str, str]) -> Language:
    words = {
        key: frozenset(word.replace("_", " ") for word in values.get(key, "").split())
        for key in ("function", "homographs", "questions", "endings", "references", "fresh")
    }
    return Language(
        script=values["script"],
        stemmer=values.get("stemmer", ""),
        asks_anywhere="anywhere" in values,
        **words,
    )


@cache
def of_script(script: str) -> tuple[str, ...]:
    """The languages that are written in `script`, the one of a text that does not tell first."""
    return tuple(name for name, language in languages().items() if language.script == script)


def function_words(language: str | None) -> frozenset[str]:
    """The function words of a language; of one that is not known, or None, there are none."""
    known = languages().get(language or "")
    return known.function if known else frozenset()


@cache
def _evidence() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """For each function word the languages that have it, each with what it says for that one: less if more have it."""
    holders: dict[str, list[str]] = {}
    for name, language in languages().items():
        for word in language.function | language.homographs:
            holders.setdefault(word, []).append(name)
    return {
        word: tuple((name, (0.5 if len(word) == 1 else 1.0) / len(names) ** 0.5) for name in names)
        for word, names in holders.items()
    }


@cache
def _first_words() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """What such words say at the beginning of a text, where the other language asks with them ("Come stai?")."""
    known = languages()
    return {
        word: tuple((name, 1.0) for name, language in known.items() if word in language.function & language.questions)
        for each in known.values()
        for word in each.homographs
    }


def read_languages() -> None:
    """Read the data, which takes some 20 ms, so that no event loop has to wait for it later."""
    _evidence()
    _first_words()


def are_read() -> bool:
    """Whether `read_languages` was called in this process."""
    return _evidence.cache_info().currsize > 0


def language_of(text: str) -> str | None:
    """The language of `text`, told by its function words and by letters that only one language writes.

    None if it does not tell: too short, no words at all, or a language that is not known.
    """
    words = _WORD.findall(text[:MAX_CHARACTERS].casefold())
    evidence = _evidence()
    scores: dict[str, float] = {}
    for place, word in enumerate(words):
        told = (_first_words() if place == 0 and word in _first_words() else evidence).get(word, ())
        for name, weight in told:
            scores[name] = scores.get(name, 0.0) + weight
    if not scores:
        return _by_letters(text)
    (best, most), *others = sorted(scores.items(), key=lambda each: -each[1])
    second = others[0][1] if others else 0.0
    if most < MIN_EVIDENCE or most < MIN_MARGIN * second:
        return _by_letters(text)
    return best


def _by_letters(text: str) -> str | None:
    if text.isascii():
        return None
    folded = text[:MAX_CHARACTERS].casefold()
    return next((name for letters, name in _SIGNS if letters.search(folded)), None)
