"""How callers name a fact, or what is to be pinned or explained."""

from __future__ import annotations

from reactor_memory.core.validation import check_position
from reactor_memory.errors import InvalidInputError
from reactor_memory.models import PinTarget


def checked_fact_name(fact: object) -> tuple[str, str]:
    match fact:
        case (str(anchor), str(key)):
            return anchor, key
        case _:
            raise InvalidInputError("fact", "must be the anchor and the key of a fact: (fact.anchor, fact.key)")


def checked_target(seq: int | None, fact: tuple[str, str] | None) -> PinTarget:
    """A message or a fact, whichever is given. Raises `InvalidInputError` for none and for both."""
    if (seq is None) == (fact is None):
        raise InvalidInputError("seq", "give either seq or fact, and only one of them")
    if seq is not None:
        check_position("seq", seq, least=1)
        return seq
    return checked_fact_name(fact)
