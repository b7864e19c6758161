"""What is cleared is not told, and stays in the ledger."""

from __future__ import annotations

from reactor_memory.features.facts.withheld_facts import ledger_without_cleared
from reactor_memory.features.recall.indexed_ranges import outside
from reactor_memory.models import BranchRange
from reactor_memory.models.ledger import FactCorrection, Ledger
from reactor_memory.models.seq_ranges import is_inside, is_within, overlaps
from reactor_memory.testing.summary_recording import fact, segment

LEDGER = Ledger(
    segments=(segment("s", 1, 4), segment("s", 5, 8), segment("s", 9, 12)),
    facts=tuple(fact(seq) for seq in range(1, 13)),
    corrections=tuple(
        FactCorrection(anchor="user", key="key", value="tea", seq=12, source_seq=source) for source in (4, 6)
    ),
)


def test_without_anything_cleared_the_ledger_is_told_as_it_is() -> None:
    assert ledger_without_cleared(LEDGER, ()) is LEDGER


def test_nothing_of_cleared_messages_is_told_and_borders_stay() -> None:
    left = ledger_without_cleared(LEDGER, [(1, 5), (12, 20)])
    assert [each.source_seq for each in left.facts] == [6, 7, 8, 9, 10, 11]
    assert [(each.start_seq, each.end_seq) for each in left.segments] == [(1, 4), (5, 8), (9, 12)]
    assert {(each.narrative, each.headline) for each in left.segments} == {("", "")}
    assert [each.source_seq for each in left.corrections] == [6]
    assert ledger_without_cleared(LEDGER, [(1, 4)]).segments[1:] == LEDGER.segments[1:]


def test_runs_are_compared_with_their_ends_included() -> None:
    assert [is_within(seq, [(2, 3)]) for seq in (1, 2, 3, 4)] == [False, True, True, False]
    assert [overlaps(run, [(4, 6)]) for run in ((1, 3), (1, 4), (6, 9), (7, 9))] == [False, True, True, False]
    assert [is_inside(run, [(4, 6)]) for run in ((4, 6), (3, 6), (4, 7))] == [True, False, False]


def test_parts_of_a_branch_without_what_is_cleared() -> None:
    def part(owner: str, start: int, end: int) -> BranchRange:
        return BranchRange(conversation_id=owner, start_seq=start, end_seq=end)

    parts = (part("s", 1, 6), part("s~f", 7, 9))
    assert outside(parts, ()) == parts
    assert outside(parts, [(1, 9)]) == ()
    assert outside(parts, [(3, 4), (6, 7)]) == (part("s", 1, 2), part("s", 5, 5), part("s~f", 8, 9))
