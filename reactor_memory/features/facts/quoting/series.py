"""Statements that differ in one word. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from reactor_memory.features.facts.quoting.log_records import Said
from reactor_memory.features.facts.quoting.record_keys import replies_to
from reactor_memory.text.analyzer import TOKEN
from reactor_memory.text.caches import memo

SERIES, LONGEST_FORM = 4, 40
"""So many statements that differ in one of so many words or more, and of no more than that, are told as one."""

_PARTICLED = re.compile("[\uac00-\ud7af]")


def told_in_series(said: Sequence[Said], answers: Mapping[int, Said]) -> Mapping[int, tuple[Said, ...]]:
    """The last of many statements that differ in one word and have no numbers, with the others. What the model says
    is one if the word stands in what it replies to: then it says the same of everything.
    """
    forms: defaultdict[tuple[str, ...], list[Said]] = defaultdict(list)
    users: defaultdict[int, str] = defaultdict(str)
    for each in said:
        if each.is_users:
            users[each.seq] += each.fact.value.casefold()
        if each.stance != "pasted" and id(each) not in answers:
            for form in _forms(each.fact.value):
                forms[each.name, *form].append(each)
    found: dict[int, tuple[Said, ...]] = {}
    taken: set[int] = set()
    for (_, *form), members in sorted(forms.items(), key=lambda item: -len(item[1])):
        left = [each for each in members if id(each) not in taken]
        left = [each for each in left if each.is_users or _slot(each, form) in users[replies_to(each.fact.key)]]
        if len({each.fact.value for each in left}) >= SERIES:
            taken.update(map(id, left))
            found[id(left[-1])] = tuple(left[:-1])
    return found


def _slot(each: Said, form: Sequence[str]) -> str:
    """The word in which a statement differs from the others of its form, without what may be a particle."""
    word = _words(each.fact.value)[form.index("")]
    return word[:1] if _PARTICLED.match(word) else word


@memo(maxsize=8192)
def _forms(text: str) -> tuple[tuple[str, ...], ...]:
    """A text without one of its words, wherever it stands, for each word; none for very few words, and for numbers."""
    words = _words(text)
    if not SERIES <= len(words) <= LONGEST_FORM or any(map(str.isdigit, text)):
        return ()
    return tuple(tuple("" if word == slot else word for word in words) for slot in dict.fromkeys(words))


@memo(maxsize=8192)
def _words(text: str) -> tuple[str, ...]:
    return tuple(TOKEN.findall(text.casefold()))
