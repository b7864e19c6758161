"""What the model read back of earlier messages, and what the user answered: that is what was agreed. Pure.

No words of a language are needed: most of a read-back was said before, in several messages, and what answers it says
little. Language packs tell whether an answer accepts or corrects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.features.facts.quoting.language_packs import (
    agrees,
    begins_to_agree,
    begins_to_correct,
    corrects,
    numbers_in,
    takes_back,
)
from reactor_memory.features.facts.quoting.log_records import Made, Said
from reactor_memory.features.facts.quoting.term_worth import weighed_terms
from reactor_memory.text.asking import asks
from reactor_memory.text.caches import memo

AGREED, ACCEPTED, AGREED_AND_DONE = 1.6, 1.0, 0.3
"""The weights of what was read back, of what was accepted without that, and of what a call did afterwards."""

NO_CALLS = 1.3
"""What is agreed is worth so much more where no call records anything."""

NEAR = 14
"""Messages back to which a statement may refer."""

SOON_DONE = 6
LEAST_COMMON, COMMON_SHARE = 8, 0.08
"""A term in more statements, and in a larger share of them, is said all the time."""

LEAST_RESTATED = 3
RESTATED_SHARE, SURELY_RESTATED, HALF = 0.6, 4, 0.5
STRONG, INFORMATIVE = 0.85, 0.6
SHORT_WORDS, SHORT_CHARACTERS = 6, 40


class ReadBack(NamedTuple):
    """What the model read back, and what the user said next."""

    said: Said
    weight: float
    answer: Said | None
    rest: tuple[Said, ...] = ()
    asks: bool = False


class Agreements(NamedTuple):
    """The weights of read-backs or of what answers them, the read-backs that were accepted, and all their answers."""

    weights: Mapping[int, float]
    agreed: frozenset[int]
    settled: frozenset[int]


def agreements(read_backs: Sequence[ReadBack]) -> tuple[Agreements, Mapping[int, Said]]:
    """What was agreed; and of what the user answered otherwise in short words, the answers with their questions."""
    weights: dict[int, float] = {}
    agreed: set[int] = set()
    settled: set[int] = set()
    answers: dict[int, Said] = {}
    for each in read_backs:
        if each.answer is not None and agrees(each.answer.fact.value):
            agreed.add(id(each.said))
            settled.add(id(each.answer))
        elif each.answer is not None and _answers(each.answer, asked=each.asks):
            answers[id(each.answer)] = each.said
            weights[id(each.answer)] = each.weight
            continue
        weights[id(each.said)] = each.weight
    return Agreements(weights, frozenset(agreed), frozenset(settled)), answers


def _answers(answer: Said, *, asked: bool) -> bool:
    """Whether what a user says next is about what was read back: short words that answer a question, or that say little
    alone, or a correction.
    """
    return (is_short(answer) and (asked or needs_more(answer))) or begins_to_correct(answer.fact.value)


def accepts(answer: Said, question: Said | None) -> bool:
    """Whether a user says yes to a question of the model that names what is agreed: however often that yes is said, it
    says something else to each.
    """
    if question is None or question.is_users or not (answer.is_users and begins_to_agree(answer.fact.value)):
        return False
    return len(_informative(question.fact.value)) >= LEAST_RESTATED


def read_backs(said: Sequence[Said], terms: Sequence[frozenset[str]], made: Sequence[Made]) -> Sequence[ReadBack]:
    """What the model read back of earlier messages, with what the user said next. Most of what a read-back says was
    said before, by more than the message right before it. `terms`: the telling ones of each statement.
    """
    found: list[ReadBack] = []
    for start, end in _runs_of_model(said):
        told = frozenset[str]().union(*terms[start:end])
        seq = said[start].seq
        known: dict[str, int] = {}
        of_users: set[str] = set()
        for place in range(max(0, start - 2 * NEAR), start):
            if seq - said[place].seq <= NEAR and (again := terms[place] & told):
                for term in again:
                    known.setdefault(term, said[place].seq)
                if said[place].is_users:
                    of_users |= again
        after = said[end] if end < len(said) else None
        answer = after if after is not None and after.is_users and after.seq <= seq + 2 else None
        is_reply = start > 0 and said[start - 1].is_users and asks(said[start - 1].fact.value)
        restated = _Restated(len(told), len(known), len(of_users), len({*known.values()}))
        weight = _read_back_weight(restated, answer, is_reply=is_reply)
        if weight:
            rest = [place for place in range(start + 1, end) if terms[place] & known.keys()]
            weight = AGREED_AND_DONE if _is_done(told, seq, made) else weight if made else NO_CALLS * weight
            found.append(
                ReadBack(
                    said[start], weight, answer, tuple(said[place] for place in rest), said[end - 1].stance == "asked"
                )
            )
    return found


def telling_terms(said: Sequence[Said]) -> list[frozenset[str]]:
    """The terms of each statement without those that are said all the time: they tell no matter from another."""
    terms = [_informative(each.fact.value) for each in said]
    times = Counter(term for each in terms for term in each)
    most = max(LEAST_COMMON, COMMON_SHARE * len(said))
    common = {term for term, count in times.items() if count > most}
    return [each - common for each in terms]


def _runs_of_model(said: Sequence[Said]) -> Iterator[tuple[int, int]]:
    """Where the statements of each message of the model begin and end."""
    start = 0
    while start < len(said):
        end = start + 1
        while end < len(said) and said[end].seq == said[start].seq:
            end += 1
        if not said[start].is_users and said[start].stance != "pasted":
            yield start, end
        start = end


class _Restated(NamedTuple):
    """How many terms a statement has, how many were said before, how many by users, and in how many messages."""

    terms: int
    known: int
    of_users: int
    messages: int


def _read_back_weight(restated: _Restated, answer: Said | None, *, is_reply: bool) -> float:
    """What a statement is worth for what it says again, 0 if that is nothing. The less it repeats, the more its answer
    must show it: to new matters nobody answers with a bare word. What replies to a question repeats its words, and
    was meant so where the user accepts it.
    """
    terms, known, of_users, messages = restated
    if known >= LEAST_RESTATED and known >= HALF * terms and min(of_users, messages) >= SURELY_RESTATED:
        return AGREED
    if terms < LEAST_RESTATED:
        return 0.0
    accepted = answer is not None and begins_to_agree(answer.fact.value)
    is_most = known >= max(LEAST_RESTATED, RESTATED_SHARE * terms) and of_users >= 2 and messages >= 2
    if is_reply and not (accepted and is_most):
        return 0.0
    if answer is None:
        return AGREED if is_most else 0.0
    if accepted:
        return AGREED if known >= max(LEAST_RESTATED, HALF * terms) else ACCEPTED if known >= 2 else 0.0
    return AGREED if is_most and answer.stance != "asked" and needs_more(answer) else 0.0


def _is_done(terms: frozenset[str], seq: int, made: Sequence[Made]) -> bool:
    after = (call for call in made if seq < call.seq <= seq + SOON_DONE and call.role == "act")
    given = (call.given for call in after)
    return any(
        2 * len(terms & _informative(" ".join(fact.value for fact in facts))) >= len(facts) > 0 for facts in given
    )


@memo(maxsize=8192)
def _informative(text: str) -> frozenset[str]:
    """The terms that tell one matter from another, numbers in words as digits."""
    told = (term for term, worth in weighed_terms(text).items() if worth >= INFORMATIVE or any(map(str.isdigit, term)))
    return frozenset(told) | numbers_in(text)


def needs_more(each: Said) -> bool:
    """Whether short words say little alone: they take back, correct a number, or have no rare word."""
    text = each.fact.value
    terms = weighed_terms(text).items()
    rare = (term for term, worth in terms if worth >= STRONG and not any(map(str.isdigit, term)))
    is_number = any(map(str.isdigit, text)) and corrects(text)
    return is_short(each) and (takes_back(text) or is_number or not any(rare))


def is_short(each: Said) -> bool:
    text = each.fact.value
    return len(text) <= SHORT_CHARACTERS and len(text.split()) <= SHORT_WORDS
