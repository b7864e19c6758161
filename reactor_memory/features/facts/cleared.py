"""What memory leaves untold of messages that were cleared: it stays in the ledger, and comes back with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reactor_memory.core.log.archived_ranges import Ranges, is_within, overlaps
from reactor_memory.models import Fact, Ledger, Segment


def told(ledger: Ledger, cleared: Ranges) -> Ledger:
    """The ledger without what its cleared messages say, and without what people said of that."""
    if not cleared:
        return ledger
    return replace(
        ledger,
        segments=tuple(told_segment(segment, cleared) for segment in ledger.segments),
        facts=told_facts(ledger.facts, cleared),
        corrections=tuple(each for each in ledger.corrections if not is_within(each.source_seq, cleared)),
    )


def told_segment(segment: Segment, cleared: Ranges) -> Segment:
    """The segment; without its prose, which may tell of any of its messages, if one of these was cleared."""
    is_touched = overlaps((segment.start_seq, segment.end_seq), cleared)
    return replace(segment, narrative="", headline="") if is_touched else segment


def told_facts(facts: Iterable[Fact], cleared: Ranges) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if not is_within(fact.source_seq, cleared))
