"""What is cleared is not told, and stays in the ledger."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.withheld_facts import ledger_without_cleared
from reactor_memory.features.facts.working_state import StateItem, fact_of
from reactor_memory.features.recall.indexed_ranges import outside
from reactor_memory.models import BranchRange
from reactor_memory.models.ledger import Fact, FactCorrection, Ledger
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


def test_items_that_rest_on_cleared_messages_are_not_told() -> None:
    items = [fact_of(StateItem(f"{last}a", "open", "the rest", first, last)) for first, last in ((2, 9), (6, 9))]
    left = ledger_without_cleared(replace(LEDGER, facts=tuple(items)), [(1, 3)])
    assert left.facts == (items[1],)


def test_item_of_several_turns_goes_with_the_words_taken_back() -> None:
    quoted = [
        Fact(
            anchor=f"the user #{seq}",
            key=f"quote.own.{seq}",
            value=value,
            source_seq=seq,
            span=(0, len(value)),
            said_by="user",
            salience=50,
            verified=True,
        )
        for seq, value in ((1, "Please book a hotel in Porto."), (5, "My sister Ana comes along."))
    ]
    item = fact_of(StateItem("5a", "open", "book a hotel in Porto", 1, 5))
    taken = FactCorrection(anchor=quoted[0].anchor, key=quoted[0].key, value=None, seq=9, source_seq=1)
    assert amended((*quoted, item), [taken]) == (quoted[1],)
    other = FactCorrection(anchor=quoted[1].anchor, key=quoted[1].key, value=None, seq=9, source_seq=5)
    assert amended((*quoted, item), [other]) == (quoted[0], item)
