"""Texts that say in their first clause what could not be done ("Could not save", "Не удалось сохранить"). Pure."""

from __future__ import annotations

import re
from functools import cache

from reactor_memory.features.facts.quoting.failing_texts import is_of_done
from reactor_memory.features.facts.quoting.outcome_words import JOINED, all_words, one_of

MOST_BEFORE = 40
"""Characters before the phrase that says so: the name of what was to be done."""

_CLAUSE = re.compile(r"[.,;:!?。、，！？；：।\n–—]")
_SENTENCE = re.compile(r"[.;!?](?:\s|\Z)|[。！？；।\n]")
_TITLE = re.compile(r"\S+ (?:\(|[A-Z][a-z])")
_OF_THINGS = re.compile(r"\b(?:that|which|who) (?:could|was|were|wasn|weren)|的.{1,12}已")
"""What could not be used or paid is what the clause is about."""

_PERSON = re.compile(r"(?:i|we|you|he|she|they)\b")
"""Somebody who tells what he could not do may tell what he did instead."""


def could_not(first: str) -> bool:
    """Whether the first clause of a text says what could not be done. That no error could be found is no failure, nor
    that one is over.
    """
    told = first.strip(" \t\n*`>-")
    folded = told.casefold()
    clause = _CLAUSE.split(folded, maxsplit=1)[0]
    found = _phrases().match(clause)
    if found is None or _PERSON.match(clause) or _OF_THINGS.search(clause):
        return False
    group = found.lastgroup or ""
    sentence, *later = [each for each in _SENTENCE.split(folded) if each.strip()]
    if group == "alone" and (later or _TITLE.match(told)):
        return False
    if group == "first" and any(is_of_done("", each) for each in (*later, *([sentence] if _TITLE.match(told) else []))):
        return False
    return _over().search(clause) is None


@cache
def _over() -> re.Pattern[str]:
    return re.compile(one_of(all_words("mended")))


@cache
def _phrases() -> re.Pattern[str]:
    told = all_words("begins")
    first, alone = ("|".join(map(_spelled, sorted(each[1:] for each in told if each[0] == sign))) for sign in "^$")
    endings = "|".join(re.escape(phrase[1:]) for phrase in sorted(told) if phrase[0] == "-")
    anywhere = "|".join(map(_spelled, sorted(phrase for phrase in told if phrase[0] not in "^$-")))
    return re.compile(
        rf"(?P<first>{first})|(?P<alone>{alone})|[^\n]{{0,{MOST_BEFORE}}}?(?P<told>{anywhere})|[^\n]{{0,80}}\w(?P<last>{endings})\s*\Z"
    )


def _spelled(phrase: str) -> str:
    """The pattern of a phrase: its words are whole; `#` in it stands for up to three others."""
    words = re.escape(phrase).replace(r"\ \#\ ", r"(?:\s\w{1,30}){0,3}?\s").replace(r"\ ", r"\s")
    if JOINED.search(phrase):
        return words
    return rf"(?<!\w){words}" if phrase.endswith("'") else rf"(?<!\w){words}(?!\w)"
