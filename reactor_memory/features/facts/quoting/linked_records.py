"""Records of a log with what belongs to them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from reactor_memory.features.facts.quoting.log_records import Made, Said
from reactor_memory.models.ledger import Fact

T = TypeVar("T", Said, Made)


class Change(NamedTuple):
    """What a value was before a call."""

    fact: Fact
    before: Fact


class Linked(NamedTuple, Generic[T]):
    """A record with what belongs to it. `times`: how often the same was called. `is_new`: its result names something
    in prose that was named nowhere before. `then`: short words of the same speaker after it. `series`: those before it
    that differ in one word. `question`: which it answers. `rest`: further sentences of what was read back.
    `is_read_back`: it says again what was said before, or answers that; `is_agreed`: and the user accepted it.
    `after`: later calls about the thing that the call made. `tried`: the same call right before it, with one other
    number. `failures`: the same call before it, that failed. `comment`: what the model said of a call without a result.
    `retraction`: what the user took the call back with.
    `names`: of ids among its arguments, each with the field that names it.
    `unchanged`: fields that say what was known before. `remark`: ends its line.
    """

    record: T
    weight: float
    times: int = 1
    is_new: bool = False
    then: tuple[Said, ...] = ()
    series: tuple[Said, ...] = ()
    question: Said | None = None
    rest: tuple[Said, ...] = ()
    is_read_back: bool = False
    is_agreed: bool = False
    changes: tuple[Change, ...] = ()
    unchanged: frozenset[Fact] = frozenset()
    after: tuple[Made, ...] = ()
    tried: tuple[Made, ...] = ()
    failures: tuple[Made, ...] = ()
    comment: Said | None = None
    retraction: Said | None = None
    names: Mapping[Fact, Fact] = {}
    told: frozenset[Fact] = frozenset()
    remark: str = ""


class LinkedRecords(NamedTuple):
    said: Sequence[Linked[Said]]
    made: Sequence[Linked[Made]]
