"""What a load looks for (a query of the caller, or what the message to come asks), and whether it asks for something
that its context does not show: the test of the default recall.

A message asks, by a mark, a word or a reference to what was before (`reactor_memory.text.asking`), and an older passage
answers better than the best of what is shown, or about as well with other words of its question; or it names an
identifier that nothing shows. Most messages do neither, and are told apart before anything is searched. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from reactor_memory.features.recall.days import named_days
from reactor_memory.features.recall.ranking import matched
from reactor_memory.models import Message, Value
from reactor_memory.models.index_requests import IndexHit
from reactor_memory.text.analyzer import WHOLE, QueryWord, distinct, query_words, terms
from reactor_memory.text.asking import asking_part, asks, asks_anew

Verdict: TypeAlias = Literal["question", "identifier", "shown already", "weak", "nothing found", "no room"]
"""Why a default recall brought something back, or why not."""

FIRES: frozenset[Verdict] = frozenset({"question", "identifier"})

IN_WORDS: dict[Verdict, str] = {
    "question": "recall: brought back for a question",
    "identifier": "recall: brought back for an identifier that nothing shows",
    "shown already": "recall: nothing, what is shown answers better",
    "weak": "recall: nothing, too little of the message was found",
    "nothing found": "recall: nothing that is not shown was found",
    "no room": "recall: nothing, no room is free, and what is shown answers about as well",
}

MAX_CHARACTERS = 4_000
"""How much of a message is looked at: a pasted document is no question."""

MAX_IDENTIFIERS = 16

HIDDEN_SHARE = 0.6
"""A passage that is not shown has to score so much of the best one that is."""

MOVING_SHARE = 1.8
"""The same for what takes from the window, which a prompt cache holds: what comes back without need costs too much
there (docs/decisions.md).
"""

MATCHED_SHARE, MOVING_MATCHED_SHARE = 0.25, 0.6
"""How much of the weight of a question the best passage has to hold; and one of the best for which the window moves."""

BEST_HITS = 3

ANSWERING_SHARE, MOST_BETTER = 0.4, 4.0
"""The share of the words that ask which one of the best passages has to hold, times how much better the best one is
than what is shown, up to so much: the words around a question, and those of any question, are found anywhere.
"""

ALIKE_SHARE, MOST_ALIKE = 0.8, 8
"""Where more passages than these score so much of the best one, the question is one of many of its like, and none of
them is its answer.
"""

_TOKEN = re.compile(r"[\w#][\w.+@/:#-]*+")
_LENGTHS = range(3, 81)
_DIGITS = re.compile(r"\d.*\d.*\d")
_MEASURE = re.compile(r"\d{1,2}[^\W\d_]+")
"""A day, an hour or an amount with its ending or its unit (``13th``, ``5pm``, ``20km``) names nothing."""

_FEW_LETTERS = 2


def identifiers(text: str) -> tuple[str, ...]:
    """The words of `text` that name one thing, each once: with letters and digits, three digits, underscores, capitals
    inside, a path or an address.
    """
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(text[:MAX_CHARACTERS]):
        word = match[0].strip(".+:/#-")
        if len(word) in _LENGTHS and _is_identifier(word):
            found.setdefault(word)
            if len(found) == MAX_IDENTIFIERS:
                break
    return tuple(found)


def _is_identifier(word: str) -> bool:
    if "@" in word or "://" in word:
        return True
    letters = sum(map(str.isalpha, word))
    if any(map(str.isdigit, word)):
        return bool(_DIGITS.search(word)) or (letters >= _FEW_LETTERS and not _MEASURE.fullmatch(word))
    return letters >= _FEW_LETTERS and ("_" in word or "/" in word or _is_camel(word) or _is_file(word))


def _is_camel(word: str) -> bool:
    return any(before.islower() and after.isupper() for before, after in pairwise(word))


def _is_file(word: str) -> bool:
    stem, dot, ending = word.rpartition(".")
    if not dot or len(stem) < _FEW_LETTERS or stem.endswith(".") or ending.istitle():  # what follows a sentence
        return False
    return 1 < len(ending) <= 5 and ending.isascii() and ending.isalnum()


def verdict(
    *,
    asks: bool,
    named: Mapping[str, Sequence[str]],
    hidden: Sequence[IndexHit],
    visible: Sequence[IndexHit],
    shown: Iterable[str],
    weights: Mapping[str, float],
    asked: Collection[str] = (),
    is_fresh: bool = False,
) -> Verdict:
    """Whether to bring `hidden` passages back. Both lists are best first.

    `named` are the identifiers of the message, each with the names of its words; `shown` the texts of the context.
    `weights` are those of all its words, `asked` those of its sentences that ask. `is_fresh`: it asks for what nobody
    said before.
    """
    if not hidden:
        return "nothing found"
    held = [frozenset(hit.passage.terms) for hit in hidden]
    older = [word for word, its_terms in named.items() if any(terms.issuperset(its_terms) for terms in held)]
    if older and not_shown(older, shown):
        return "identifier"
    if not asks:
        return "weak"
    if visible and hidden[0].score < HIDDEN_SHARE * visible[0].score:
        return "shown already"
    best = hidden[0]
    if best.similarity:
        return "question"
    if matched(best.passage.terms, weights) < MATCHED_SHARE * sum(weights.values()):
        return "weak"
    if is_fresh and not is_worth_moving(hidden, visible, weights):
        return "weak"
    return _answer(hidden, visible, {word: weights[word] for word in asked if word in weights} or weights)


def _answer(hidden: Sequence[IndexHit], visible: Sequence[IndexHit], asked: Mapping[str, float]) -> Verdict:
    """Whether the best `hidden` passages hold enough of the words that ask, and what no shown one holds."""
    better = min(MOST_BETTER, hidden[0].score / visible[0].score) if visible else MOST_BETTER
    held = _most_held(hidden, asked)
    if better * held < ANSWERING_SHARE * sum(asked.values()):
        return "weak"
    is_told = not hidden[0].passage.call_seq  # what a tool gave holds other values under the same words
    if is_told and better < MOVING_SHARE and _most_held(visible, asked) >= held:
        return "shown already"
    return "question"


def _most_held(hits: Sequence[IndexHit], weights: Mapping[str, float]) -> float:
    return max((matched(hit.passage.terms, weights) for hit in hits[:BEST_HITS]), default=0.0)


def is_worth_moving(hidden: Sequence[IndexHit], visible: Sequence[IndexHit], weights: Mapping[str, float]) -> bool:
    """Whether the window may give way to the `hidden` passages; both are best first."""
    if not hidden or (visible and hidden[0].score < MOVING_SHARE * visible[0].score):
        return False
    if sum(hit.score >= ALIKE_SHARE * hidden[0].score for hit in hidden) > MOST_ALIKE:
        return False
    told = _most_held(hidden, weights)
    return bool(hidden[0].similarity) or told >= MOVING_MATCHED_SHARE * sum(weights.values())


def holds_enough(found: Sequence[IndexHit], weights: Mapping[str, float]) -> bool:
    """Whether one of the best passages found for a query holds enough of it for memory and window to give way."""
    is_near = any(hit.similarity for hit in found[:BEST_HITS])
    return is_near or _most_held(found, weights) >= MATCHED_SHARE * sum(weights.values())


def not_shown(words: Iterable[str], shown: Iterable[str]) -> list[str]:
    """The words that none of the texts holds."""
    waiting = {word: word.casefold() for word in words}
    for text in shown:
        if not waiting:
            break
        folded = text.casefold()
        waiting = {word: form for word, form in waiting.items() if form not in folded}
    return list(waiting)


MAX_QUERY_WORDS = 48


class Question(Value, frozen=True, kw_only=True):
    """What to look for. `asks`: the message is a question; `named`: its identifiers, each with the names of its words.
    `asked`: the names of the words of its sentences that ask. `is_fresh`: it asks for what nobody said before.
    `is_explicit`: the caller asks.
    """

    text: str
    words: Sequence[QueryWord]
    asks: bool = True
    named: dict[str, tuple[str, ...]] = {}
    asked: frozenset[str] = frozenset()
    is_fresh: bool = False
    is_explicit: bool = False


def question_of(query: str | None, current: Sequence[Message], default: str = "question") -> Question | None:
    """What a load asks for: its explicit `query`; without one (None) the message to come, if it asks or names an
    identifier; None if there is nothing to ask.
    """
    if query is not None:
        return Question(text=query, words=words_to_find(query), is_explicit=True) if query.strip() else None
    text = "\n".join(message.content for message in current if message.role == "user")
    if default == "off" or not text.strip():
        return None
    named = {word: its_names for word in identifiers(text) if (its_names := _names_of(word))}
    is_question = default == "always" or asks(text)
    if not is_question and not named:
        return None
    text = text[:MAX_CHARACTERS]
    part = asking_part(text)
    return Question(
        text=text,
        words=words_to_find(text),
        asks=is_question,
        named=named,
        asked=frozenset(word.terms[0] for word in query_words(part)) if part != text else frozenset(),
        is_fresh=asks_anew(part),
    )


def _names_of(identifier: str) -> tuple[str, ...]:
    """The words that an identifier stands under: its whole form, or all of it if it has none."""
    names = [word.terms[0] for word in query_words(identifier)]
    return tuple([name for name in names if name.startswith(WHOLE)] or names)


def words_to_find(text: str) -> list[QueryWord]:
    """The words to search for: those of days and those that mean something."""
    text = text[:MAX_CHARACTERS]
    days = [QueryWord((term,)) for term in dict.fromkeys(terms(named_days(text)))]
    return distinct([*days, *query_words(text)])[:MAX_QUERY_WORDS]
