"""What a load looks for: a query of the caller, or what the message to come asks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.features.recall.days import named_days
from reactor_memory.features.recall.gate import MAX_CHARACTERS, identifiers
from reactor_memory.models import Message, Value
from reactor_memory.text.analyzer import WHOLE, QueryWord, distinct, query_words, terms
from reactor_memory.text.asking import asking_part, asks, asks_anew

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
