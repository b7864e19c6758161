"""What the words of a text are worth: the rarer a term, the more. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reactor_memory.text.analyzer import TOKEN, normal_form, terms
from reactor_memory.text.caches import memo
from reactor_memory.text.commonness import rarity
from reactor_memory.text.languages import function_words, language_of

BACKGROUND = 0.5
"""Of the worth of a term so much comes from how rare it is in all texts; the rest is the same for each."""

FUNCTION = 0.05
"""The worth of a word that most sentences have."""

CONCAVE = 0.7
MANY_TERMS = 5.0
MAX_CHARACTERS = 1_000


@memo(maxsize=16_384)
def weighed_terms(text: str) -> Mapping[str, float]:
    """The terms of a text, each once, with its worth from 0 to 1."""
    text = text[:MAX_CHARACTERS]
    normal = normal_form(text)
    language = language_of(normal)
    found: dict[str, float] = {}
    for token in TOKEN.findall(normal):
        for term, worth in _weighed(token, language or "en"):
            if worth > found.get(term, 0.0):
                found[term] = worth
    return found


@memo(maxsize=32_768)
def _weighed(token: str, language: str) -> tuple[tuple[str, float], ...]:
    """The terms of a word of a text, each with its worth."""
    folded = token.casefold()
    worth = FUNCTION if folded in function_words(language) else _worth(folded)
    alone = worth if worth == FUNCTION else 0.3 * worth
    return tuple((term, worth if len(term) > 1 else alone) for term in terms(token, language))


def _worth(word: str) -> float:
    return 1 - BACKGROUND + BACKGROUND * rarity(word)


def worth_of(text: str) -> float:
    """From 0 to 1: how much a text says, taken alone."""
    return min(1.0, (sum(weighed_terms(text).values()) / MANY_TERMS) ** CONCAVE)
