"""What users said of a thing after it was agreed: without that, what was agreed would stand as current. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from itertools import takewhile

from reactor_memory.features.facts.quoting.language_packs import begins_to_correct
from reactor_memory.features.facts.quoting.log_records import Said
from reactor_memory.features.facts.quoting.measures import gives_another_number
from reactor_memory.features.facts.quoting.read_backs import NEAR, ReadBack

LEAST_NAMED, SURELY_NAMED, NAMED_SHARE = 2, 3, 1 / 3
"""Words by which a statement names what was agreed, and their share of all its words. A name may have two."""

MOST_REPLIES, MOST_CHARACTERS = 2, 200
"""Sentences of a reply that stand with a change, and characters of a statement that may be one."""


def later_changes(
    said: Sequence[Said],
    terms: Sequence[frozenset[str]],
    read_backs: Sequence[ReadBack],
    agreed: Container[int],
    taken: Container[int],
) -> Mapping[int, tuple[Said, ...]]:
    """What was agreed, with what the same users said of it later, and with the replies: only these tell whether it was
    changed. Statements that are `taken` belong to others already. `terms`: the telling ones of each statement.

    A statement is of what it names by the most words, and not of what is read back right after it: that is new.
    """
    places = {id(each): place for place, each in enumerate(said)}
    words = {
        id(each): frozenset[str]().union(*(terms[places[id(part)]] for part in (each.said, *each.rest)))
        for each in read_backs
    }
    by_word: defaultdict[str, list[ReadBack]] = defaultdict(list)
    for each in read_backs:
        for word in words[id(each)]:
            by_word[word].append(each)
    found: dict[int, tuple[Said, ...]] = {}
    for place, each in enumerate(said):
        if not _may_change(each) or id(each) in taken:
            continue
        changed = _named(each, terms[place], by_word)
        if changed is None or id(changed.said) not in agreed:
            continue
        new = terms[place] - words[id(changed)]
        replies = [*takewhile(lambda other, seq=each.seq: other.seq == seq + 1, said[place + 1 :])]
        shared = sum(not _is_number(word) for word in terms[place] - new)
        is_change = bool(new) and _changes(each, changed.said, shared=shared)
        if replies and is_change and not any(other.is_users or other.stance == "asked" for other in replies):
            found[id(changed.said)] = (*found.get(id(changed.said), ()), each, *replies[:MOST_REPLIES])
    return found


def _may_change(each: Said) -> bool:
    return each.is_users and each.stance in ("own", "asked") and len(each.fact.value) <= MOST_CHARACTERS


def _named(each: Said, terms: frozenset[str], by_word: Mapping[str, Sequence[ReadBack]]) -> ReadBack | None:
    """The read-back of which a statement has the most words, if they are enough; none if another one has as many."""
    words = [word for word in terms if not _is_number(word)]
    times: defaultdict[int, int] = defaultdict(int)
    known: dict[int, ReadBack] = {}
    for word in words:
        for back in by_word.get(word, ()):
            if back.said.seq - each.seq <= NEAR and back.said.seq != each.seq + 1:
                times[id(back)] += 1
                known[id(back)] = back
    most = max(times.values(), default=0)
    best = [back for back, count in times.items() if count == most]
    if most < max(LEAST_NAMED, NAMED_SHARE * len(words)) or len(best) != 1:
        return None
    answer = known[best[0]].answer
    is_of_same = answer is not None and answer.seq < each.seq and answer.name == each.name
    return known[best[0]] if is_of_same else None


def _changes(each: Said, agreed: Said, *, shared: int) -> bool:
    """Whether a statement gives another number of what was agreed, or, if it asks nothing, wants something in words
    that a pack knows, or names the thing by so many words that it is about more than its name.
    """
    if gives_another_number(agreed.fact.value, each.fact.value):
        return True
    wants = each.fact.category == "DECISION" or begins_to_correct(each.fact.value)
    return each.stance == "own" and (wants or shared >= SURELY_NAMED)


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word))
