"""Corrections by people, applied to the facts that messages state: pure, and the same for every order of the facts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reactor_memory.core.context.withheld import Statement, spoken
from reactor_memory.features.facts.quoting.record_keys import is_call
from reactor_memory.features.facts.working_state import is_state
from reactor_memory.models import LARGEST
from reactor_memory.models.ledger import Fact, FactCorrection

LIFTED = ""
"""The value of a mute that was ended. No fact is corrected to it."""


def amended(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> tuple[Fact, ...]:
    """`facts` with the corrections applied. A correction replaces what messages before it state about its fact, whoever
    said it, and every other fact that says the same: a quotation of the sentence, the answer that repeats it. A later
    message about the fact replaces the correction, as it would replace an earlier message.
    """
    if not corrections:
        return tuple(facts)
    known = tuple(facts)
    gone = _gone(known, corrections)
    replaced: dict[tuple[str, str], list[Fact]] = {}
    for fact in gone:
        replaced.setdefault((fact.anchor, fact.key), []).append(fact)
    named, muted = newest_of_each(corrections).items(), muted_names(corrections)
    said = [_as_fact(each, replaced.get(name, ())) for name, each in named if each.value]
    return (*(fact for fact in known if fact not in gone), *(fact for fact in said if not _mutes_of(fact) & muted))


def overruled(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> dict[Fact, Fact | None]:
    """The `facts` that corrections replaced, each with the corrected value; None: it was retracted."""
    known = tuple(facts)
    said = {(fact.anchor, fact.key): fact for fact in amended(known, corrections) if fact.amended}
    return {fact: said.get((each.anchor, each.key)) for fact, each in _gone(known, corrections).items()}


def taken_back(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> tuple[Statement, ...]:
    """The statements of messages that corrections replaced by something else."""
    if not corrections:
        return ()
    known = tuple(facts)
    return tuple(statement for _, statement in _statements(known, _named(known, corrections)))


def _gone(facts: Sequence[Fact], corrections: Sequence[FactCorrection]) -> dict[Fact, FactCorrection]:
    """The facts that corrections replace, each with its correction."""
    gone = _named(facts, corrections)
    stated = sorted(_statements(facts, gone), key=lambda each: each[1].seq)
    if not stated:
        return gone
    seqs, asked = [each.seq for _, each in stated], _asked(facts)
    for fact in [fact for fact in facts if fact not in gone and not fact.amended]:
        turn = bisect_right(asked, fact.span[0] if is_state(fact) else fact.source_seq)
        first = bisect_left(seqs, asked[turn - 1] if turn else 0)
        said = stated[first : bisect_right(seqs, fact.source_seq)]
        told = next(
            (named for named, each in said if _repeats(fact, named, each) and _is_meant(fact, each, gone[named])), None
        )
        if told is not None:
            gone[fact] = gone[told]
    return gone


def _asked(facts: Iterable[Fact]) -> list[int]:
    """The messages of users that state something: so far as facts tell, turns begin with them."""
    return sorted({fact.source_seq for fact in facts if fact.said_by == "user"})


def _named(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> dict[Fact, FactCorrection]:
    """The facts that corrections name, each with its correction; if it is muted, with the mute."""
    newest, muted = newest_of_each(corrections), muted_names(corrections)
    named: dict[Fact, FactCorrection] = {}
    for fact in facts:
        correction = newest.get((fact.anchor, fact.key))
        if muting := _mutes_of(fact) & muted:
            named[fact] = replace(newest[min(muting)], seq=LARGEST)
        elif correction is not None and overrules(correction, fact):
            named[fact] = correction
    return named


def muted_names(corrections: Iterable[FactCorrection]) -> frozenset[tuple[str, str]]:
    """What is muted: anchors, each with no key, and categories as keys without an anchor."""
    newest = newest_of_each(corrections).items()
    return frozenset([name for name, each in newest if not all(name) and each.value is None])


def muted(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> frozenset[Fact]:
    """The `facts` that are muted, and those that say the same."""
    gone = _gone(tuple(facts), corrections) if corrections else {}
    return frozenset([fact for fact, each in gone.items() if not all((each.anchor, each.key))])


def _mutes_of(fact: Fact) -> frozenset[tuple[str, str]]:
    """Under which names it may be muted."""
    return frozenset([(fact.anchor, ""), ("", fact.category)])


def _statements(facts: Sequence[Fact], named: Mapping[Fact, FactCorrection]) -> Iterator[tuple[Fact, Statement]]:
    """What the facts that are `named` by corrections state, unless the correction says the same."""
    asked = _asked(facts)
    for fact, correction in named.items():
        if is_state(fact):
            continue  # a model worded it: what messages say stays
        if fact.verified and (correction.value is None or spoken(correction.value) != spoken(fact.value)):
            later = bisect_right(asked, fact.source_seq)
            yield (
                fact,
                Statement(
                    seq=fact.source_seq,
                    value=fact.value,
                    span=fact.span,
                    answered_seq=asked[later] - 1 if later < len(asked) else LARGEST,
                    until_seq=correction.seq,
                ),
            )


def _repeats(fact: Fact, named: Fact, statement: Statement) -> bool:
    """Whether a fact of another name says what a statement says: in the words of the same message, in an answer, or as
    an item of the working state that rests on it.
    """
    if is_state(fact):
        return statement.is_telling and statement.is_said(fact.value, *fact.span)
    if fact.source_seq == statement.seq and statement.holds(fact.span):
        return True
    if fact.said_by == "tool" or not (fact.salience or fact.anchor == named.anchor):
        return False
    if fact.source_seq == statement.seq:
        return statement.is_telling and statement.stands_in(fact.value)
    return fact.source_seq <= statement.turn[1] and statement.is_telling and statement.is_repeated_in(fact.value)


def _is_meant(fact: Fact, statement: Statement, correction: FactCorrection) -> bool:
    """Whether a correction means what a fact repeats of the statement. A call has parts of its own: of these it means
    those that say what the corrected words leave out, where these are most of the statement, and no part where they
    are something else ("vegan"), for nothing tells which.
    """
    if correction.value is None or not is_call(fact) or statement.stands_in(fact.value):
        return True
    said, now = set(spoken(statement.value).split()), set(spoken(correction.value).split())
    return 2 * len(said & now) >= len(said) and not (said - now).isdisjoint(spoken(fact.value).split())


def newest_of_each(corrections: Iterable[FactCorrection]) -> dict[tuple[str, str], FactCorrection]:
    """The newest statement about each fact."""
    in_order = sorted(corrections, key=lambda each: each.ordinal)
    return {(each.anchor, each.key): each for each in in_order}


def overrules(correction: FactCorrection | None, fact: Fact) -> bool:
    """Whether the correction, which is about this fact, came after the message that states the fact."""
    return correction is not None and not fact.amended and fact.source_seq <= correction.seq


def until(corrections: Iterable[FactCorrection], seq: int) -> tuple[FactCorrection, ...]:
    """The corrections that were made when the session had at most `seq` messages."""
    return tuple(each for each in corrections if each.seq <= seq)


def _precedence(fact: Fact) -> tuple[int, bool, bool, tuple[int, int], str, str, str]:
    """A total order of the statements about one fact."""
    return fact.source_seq, fact.said_by != "tool", not fact.failed, fact.span, fact.value, fact.category, fact.act


def _as_fact(correction: FactCorrection, replaced: Sequence[Fact]) -> Fact:
    """The correction as a fact, with the other fields of the fact that it replaces, if the ledger still has that."""
    fixed = {"value": correction.value or "", "said_by": "user", "failed": False, "verified": True, "amended": True}
    if replaced:
        return replace(max(replaced, key=_precedence), **fixed)
    return Fact(anchor=correction.anchor, key=correction.key, source_seq=correction.source_seq, **fixed)  # pyright: ignore[reportArgumentType]
