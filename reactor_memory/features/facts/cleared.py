"""Leaves out of memory what cleared messages state. The ledger keeps it, for when they are restored. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reactor_memory.core.log.archived_ranges import Ranges, is_within, overlaps
from reactor_memory.models.ledger import Fact, Ledger, Segment


def ledger_without_cleared(ledger: Ledger, cleared: Ranges) -> Ledger:
    """The ledger without what cleared messages state, and without corrections of that."""
    if not cleared:
        return ledger
    return replace(
        ledger,
        segments=tuple(segment_without_cleared(segment, cleared) for segment in ledger.segments),
        facts=facts_without_cleared(ledger.facts, cleared),
        corrections=tuple(each for each in ledger.corrections if not is_within(each.source_seq, cleared)),
    )


def segment_without_cleared(segment: Segment, cleared: Ranges) -> Segment:
    """The segment; if one of its messages was cleared, without its narrative, which may be about any of them."""
    is_touched = overlaps((segment.start_seq, segment.end_seq), cleared)
    return replace(segment, narrative="", headline="") if is_touched else segment


def facts_without_cleared(facts: Iterable[Fact], cleared: Ranges) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if not is_within(fact.source_seq, cleared))
