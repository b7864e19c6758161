"""A block of quotations goes on from the one before: its beginning stays, what is new stands behind it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.continued_block import chosen_block, grown_block
from reactor_memory.models.block_lines import BlockLine, Layout

TITLE, DAY = (BlockLine(text=text, tokens=3, value=9.0) for text in ("trips (to; day):", "2 May:"))
ROOM = 1_000


def row(seq: int, value: float = 1.0) -> BlockLine:
    return BlockLine(text=f"+ Hvar {seq}", tokens=10, value=value, source_seqs=(seq,))


def said(seq: int, value: float = 1.0, tokens: int = 10) -> BlockLine:
    return BlockLine(text=f'"kite {seq}"', tokens=tokens, value=value, source_seqs=(seq,))


def more(seq: int, value: float = 1.0) -> BlockLine:
    return BlockLine(text=f" (wind {seq})", tokens=5, value=value, source_seqs=(seq,))


def texts(lines: Sequence[BlockLine]) -> list[str]:
    return [line.text for line in lines]


def after(lines: Sequence[BlockLine], offered: Sequence[BlockLine], most: int = ROOM) -> list[str]:
    return texts(grown_block(offered, most, Layout(seq=9, window_start_seq=9, fact_lines=lines)).lines)


lines = st.lists(st.tuples(st.integers(1, 40), st.floats(0, 3), st.integers(1, 60)), max_size=30).map(
    lambda found: [DAY, *(said(*each) for each in {each[0]: each for each in sorted(found)}.values())]
)


def test_no_heading_stands_over_nothing() -> None:
    other = DAY.__class__(text="3 May:", tokens=3, value=9.0)
    assert texts(chosen_block([], ROOM).lines) == []
    assert texts(chosen_block([DAY], ROOM).lines) == []
    assert texts(chosen_block([DAY, other, said(1)], ROOM).lines) == ["3 May:", '"kite 1"']


def test_what_is_new_stands_behind_what_is_shown() -> None:
    before = chosen_block([TITLE, row(1), DAY, said(2)], ROOM).lines
    assert after(before, [TITLE, row(1), row(3), DAY, said(2), said(4)]) == [
        *texts(before),
        *("trips (to; day):", "+ Hvar 3", "2 May:", '"kite 4"'),
    ]


def test_a_statement_without_a_day_stands_under_no_title() -> None:
    before = chosen_block([TITLE, row(1), said(2)], ROOM).lines
    assert after(before, [TITLE, row(1), row(3), said(2), said(4)])[3:] == ["trips (to; day):", "+ Hvar 3", '"kite 4"']


def test_a_line_that_holds_no_more_goes() -> None:
    before = chosen_block([DAY, said(1), said(2), said(3)], ROOM).lines
    assert after(before, [DAY, said(1), said(3)]) == ["2 May:", '"kite 1"', '"kite 3"']


def test_what_is_shown_without_its_end_stays_so() -> None:
    before = chosen_block([DAY, said(1), said(2)], ROOM).lines
    assert after(before, [DAY, said(1), more(1), said(2)]) == texts(before)


def test_a_line_goes_only_for_one_worth_much_more() -> None:
    before = chosen_block([DAY, said(1), said(2)], ROOM).lines
    room = sum(line.tokens for line in before)
    assert after(before, [DAY, said(1), said(2), said(3, 1.2)], room) == texts(before)
    assert after(before, [DAY, said(1), said(2), said(3, 1.3)], room) == ["2 May:", '"kite 2"', '"kite 3"']


def test_outdated_lines_take_no_room_of_what_is_worth_more() -> None:
    """The block is full, with lines at its beginning that are worth little by now: a new one that is worth more than
    they are is shown, whatever else holds.
    """
    before = [DAY, *(said(seq, 0.1) for seq in range(1, 5)), *(said(seq, 2.0) for seq in range(5, 100))]
    room = sum(line.tokens for line in before)
    assert '"kite 100"' in after(before, [*before, said(100, 1.0, tokens=30)], room)


def test_a_few_outdated_lines_may_stay_at_the_beginning() -> None:
    worth = {seq: 2 - seq / 100 for seq in range(1, 100)}
    before = chosen_block([DAY, *(said(*each) for each in worth.items())], ROOM).lines
    worth |= {1: 0.1, 2: 0.1, **dict.fromkeys(range(100, 104), 1.5)}
    found = after(before, [DAY, *(said(*each) for each in worth.items())])
    assert found[:90] == texts(before)[:90]
    assert found[-2:] == ['"kite 102"', '"kite 103"']
    worth |= dict.fromkeys(range(3, 9), 0.1) | dict.fromkeys(range(104, 109), 1.5)
    found = after(before, [DAY, *(said(*each) for each in worth.items())])
    assert [f'"kite {seq}"' in found for seq in (1, 8, 108)] == [False, False, True]


@given(lines, lines, st.integers(20, 1_500))
def test_it_never_takes_more_than_its_room(first: list[BlockLine], then: list[BlockLine], most: int) -> None:
    before = chosen_block(first, most).lines
    found = grown_block(then, most, Layout(seq=9, window_start_seq=9, fact_lines=before)).lines
    for block in (before, found):
        assert sum(line.tokens for line in block if line.source_seqs) <= most
        assert len(set(texts(block))) == len(block)


@given(lines, st.integers(20, 1_500))
def test_the_same_lines_make_the_same_block(offered: list[BlockLine], most: int) -> None:
    before = chosen_block(offered, most).lines
    found = after(before, offered, most)
    assert found[: len(before)] == texts(before)


def test_a_block_is_sorted_anew_before_many_headings_stand_twice() -> None:
    title = BlockLine(text="flights (to; day):", tokens=9, value=9.0)
    offered = [title, *map(row, range(1, 8)), DAY, *map(said, range(20, 27))]
    some = [line for line in offered if not line.source_seqs or line.source_seqs[0] % 2]
    before = chosen_block(some, ROOM).lines
    assert after(before, offered, 160) == texts(offered)
    assert after(before, offered) != texts(offered)
