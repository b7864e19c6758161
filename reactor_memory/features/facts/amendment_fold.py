"""Corrections by people, applied to the facts that messages state: pure, and the same for every order of the facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from reactor_memory.models.ledger import Fact, FactCorrection


def amended(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> tuple[Fact, ...]:
    """`facts` with the corrections applied. A correction replaces what messages before it state about its fact, whoever
    said it; a later message about the fact replaces the correction, as it would replace an earlier message.
    """
    if not corrections:
        return tuple(facts)
    newest = newest_of_each(corrections)
    left: list[Fact] = []
    replaced: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        if overrules(newest.get((fact.anchor, fact.key)), fact):
            replaced.setdefault((fact.anchor, fact.key), []).append(fact)
        else:
            left.append(fact)
    said = (_as_fact(each, replaced.get(name, ())) for name, each in newest.items() if each.value is not None)
    return (*left, *said)


def overruled(facts: Iterable[Fact], corrections: Sequence[FactCorrection]) -> dict[Fact, Fact | None]:
    """The `facts` that corrections replaced, each with the corrected value; None: the fact was retracted."""
    known = tuple(facts)
    newest = newest_of_each(corrections)
    said = {(fact.anchor, fact.key): fact for fact in amended(known, corrections) if fact.amended}
    names = ((fact, (fact.anchor, fact.key)) for fact in known)
    return {fact: said.get(name) for fact, name in names if overrules(newest.get(name), fact)}


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
