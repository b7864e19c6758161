"""The ledger of a session, and the names that its facts use."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.features.facts.merge import fold
from reactor_memory.features.facts.working_state import MOST_ITEMS, is_state, item_of
from reactor_memory.models import Session
from reactor_memory.models.ledger import Fact, Known, KnownNames, Ledger

if TYPE_CHECKING:
    from reactor_memory.core.ports import SummaryStore

MAX_NAMES = 40
MAX_KEYS = 8
MAX_CHARACTERS = 1_600
"""About 400 tokens: so the cost of a question does not grow with the conversation."""


async def ledger_of(summaries: SummaryStore, session: Session) -> Ledger:
    """The ledger, each fact once; in `full` mode, where there is none, the facts of the summary."""
    ledger = await summaries.read_ledger(session.session_id, session.branch)
    if ledger.segments:
        return replace(ledger, facts=tuple(dict.fromkeys(ledger.facts)))
    summary = await summaries.get_summary(session.session_id)
    return replace(ledger, facts=summary.facts()) if summary else ledger


def names_of(facts: Iterable[Fact]) -> tuple[KnownNames, ...]:
    """The anchors that facts named last, newest first, with their keys. Quotations have no name to use again, and what
    is not verified may be invented.
    """
    keys: dict[str, list[str]] = {}
    named = (fact for fact in facts if fact.verified and not fact.salience and not is_state(fact))
    for fact in sorted(named, key=lambda fact: -fact.source_seq):
        found = keys.setdefault(fact.anchor, [])
        if fact.key not in found and len(found) < MAX_KEYS:
            found.append(fact.key)
    names = [KnownNames(anchor=anchor, keys=tuple(found)) for anchor, found in keys.items()][:MAX_NAMES]
    lengths = accumulate(len(each.anchor) + sum(map(len, each.keys)) for each in names)
    return tuple(names[: sum(1 for _ in takewhile(lambda length: length <= MAX_CHARACTERS, lengths))])


def known_of(facts: Iterable[Fact], named: Iterable[Fact] | None = None) -> Known:
    """What a summarizer is told of `facts`: the working state that holds after them, and the names that they, or
    `named`, use.
    """
    found = tuple(facts)
    worded = fold(fact for fact in found if fact.verified and is_state(fact))
    held = tuple(fact for fact in worded if (item := item_of(fact)) is not None and not item.ended)
    return Known(names=names_of(found if named is None else named), state=held[-MOST_ITEMS:])
