"""Leaves out of memory what is withheld from contexts. The ledger keeps it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reactor_memory.core.context.withheld import Withheld
from reactor_memory.features.facts.amendment_fold import taken_back
from reactor_memory.features.facts.working_state import is_touched
from reactor_memory.models.ledger import Fact, Ledger, PostedSummary, Segment
from reactor_memory.models.seq_ranges import Ranges, is_within


def ledger_without_cleared(ledger: Ledger, cleared: Ranges) -> Ledger:
    """The ledger without what cleared messages state, and without corrections of that."""
    if not cleared:
        return ledger
    return replace(
        ledger,
        segments=tuple(segment_without(segment, Withheld(cleared=tuple(cleared))) for segment in ledger.segments),
        facts=facts_without_cleared(ledger.facts, cleared),
        corrections=tuple(each for each in ledger.corrections if not is_within(each.source_seq, cleared)),
    )


def facts_without_cleared(facts: Iterable[Fact], cleared: Ranges) -> tuple[Fact, ...]:
    return tuple(
        fact
        for fact in facts
        if not is_within(fact.source_seq, cleared) and not any(is_touched(fact, first, last) for first, last in cleared)
    )


def texts_without_taken_back(ledger: Ledger) -> Ledger:
    """The ledger; its narratives and its posted summary say nothing that a person took back."""
    withheld = Withheld(statements=taken_back(ledger.facts, ledger.corrections))
    if not withheld.statements:
        return ledger
    return replace(
        ledger,
        segments=tuple(segment_without(segment, withheld) for segment in ledger.segments),
        posted=posted_without(ledger.posted, withheld),
    )


def segment_without(segment: Segment, withheld: Withheld) -> Segment:
    """The segment. If one of its messages is withheld it has no narrative, which may be about any of them; else what
    its narrative repeats of other messages goes.
    """
    first, last = segment.start_seq, segment.end_seq
    if withheld.touches(first, last):
        return replace(segment, narrative="", headline="")
    narrative, headline = (withheld.without(text, first, last) for text in (segment.narrative, segment.headline))
    return replace(segment, narrative=narrative, headline=headline)


def posted_without(posted: PostedSummary | None, withheld: Withheld) -> PostedSummary | None:
    """A posted summary without the sentences that say what is withheld."""
    return posted and replace(posted, text=withheld.without(posted.text, 1, posted.until_seq))
