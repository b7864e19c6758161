"""The words of ``outcome_words.toml``, with which results say how a call went. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import cast

from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.scripts import HANGUL, UNSPACED

JOINED = re.compile(f"[{UNSPACED}{HANGUL}]")
"""Scripts in which words are joined with others, or with endings."""

FLAGS = frozenset({"is_error", "iserror", "failed"})


@cache
def outcome_words() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    data = files("reactor_memory.features.facts.quoting").joinpath("outcome_words.toml").read_text("utf-8")
    return {
        language: {key: tuple(map(folded_words, value.split())) for key, value in words.items()}
        for language, words in cast("Mapping[str, Mapping[str, str]]", tomllib.loads(data)).items()
    }


@cache
def all_words(key: str) -> frozenset[str]:
    """The words of all languages."""
    return frozenset(word for each in outcome_words().values() for word in each[key])


@cache
def languages_of_failing() -> Mapping[str, tuple[str, ...]]:
    """The languages of each word that says that something failed."""
    found: dict[str, tuple[str, ...]] = {}
    for language, words in outcome_words().items():
        for word in failing_words(words):
            found[word] = (*found.get(word, ()), language)
    return found


def failing_words(words: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key in ("fails", "refused", "absent", "errors"):
        yield from words[key]


def one_of(words: Iterable[str]) -> str:
    """One of the words; where words are apart, no part of another."""
    known = sorted(words, key=lambda word: (-len(word), word))
    joined = "|".join(re.escape(word) for word in known if JOINED.search(word))
    return rf"{joined}|(?<![\w/.\\-])(?:{'|'.join(re.escape(word) for word in known if not JOINED.search(word))})(?!\w)"


def folded_words(text: str) -> str:
    return " ".join(normal_form(text).casefold().replace("_", " ").split())


def is_of_outcome(name: str) -> bool:
    """Whether a field is called like one that may say how it went."""
    folded = folded_words(name)
    return name.lower() in FLAGS or any(folded in all_words(key) for key in ("states", "errors", "succeeds"))
