"""Which lines a memory holds: never more than fit, never fewer in a larger budget, and the same as long as possible."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.line_choice import LOWEST, Room, choose, share_out
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import SETTLED

DONE = SETTLED + 0.06
"""The worth of a call that was made: of its decision, and of one detail."""


def line(value: float, seq: int, tokens: int = 10) -> BlockLine:
    return BlockLine(text=f"line {seq}", tokens=tokens, value=value, source_seqs=(seq,))


def settled(*seqs: int) -> list[BlockLine]:
    return [line(DONE, seq) for seq in seqs]


def details(*seqs: int) -> list[BlockLine]:
    return [line(1.5, seq) for seq in seqs]


blocks = st.lists(
    st.builds(
        line,
        st.sampled_from([0.5, 1.0, 1.5, 2.5, 3.0, 3.3]),
        st.integers(1, 60),
        st.integers(1, 40),
    ),
    max_size=40,
)


def tokens(lines: Sequence[BlockLine], kept: Sequence[int]) -> int:
    return sum(lines[index].tokens for index in kept)


@given(blocks, st.integers(0, 1_500), st.integers(0, 1_000), st.none() | st.tuples(st.floats(0, 4), st.integers(0, 60)))
def test_never_over_budget(lines: list[BlockLine], most: int, more: int, before: tuple[float, int] | None) -> None:
    room = share_out(lines, budget=most + more, most=most)
    choice = choose(lines, room, before)
    assert tokens(lines, choice.kept) <= most
    if any(lines[index].value < SETTLED for index in choice.kept):
        assert tokens(lines, choice.kept) <= room.with_detail


@given(blocks, st.integers(1, 2_000), st.integers(0, 2_000))
def test_for_one_state_a_larger_budget_never_loses_a_line(lines: list[BlockLine], budget: int, more: int) -> None:
    kept = [
        set(choose(lines, share_out(lines, budget=tokens, most=int(0.6 * tokens))).kept)
        for tokens in (budget, budget + more)
    ]
    assert kept[0] <= kept[1]


@given(blocks, st.integers(0, 500))
def test_what_is_shown_ranks_above_what_is_not(lines: list[BlockLine], most: int) -> None:
    choice = choose(lines, Room(most, most, 0))
    shown = {(lines[index].value, lines[index].source_seqs) for index in choice.kept}
    left = {(row.value, row.source_seqs) for index, row in enumerate(lines) if index not in choice.kept}
    assert not shown or not left or min(shown) > max(left)


def test_what_was_done_may_take_all_room_detail_its_share() -> None:
    lines = [*settled(*range(1, 11)), *details(*range(11, 31))]
    room = share_out(lines, budget=250, most=200)
    assert (room.lines, room.with_detail, room.slack) == (200, 150, 75)
    assert choose(lines, room._replace(slack=0)).kept == [*range(10), *range(25, 30)]
    assert choose(lines, room).kept == [*range(10)], "a cut frees more than it must"


def test_remarks_need_much_room_or_an_empty_record() -> None:
    lines = [*settled(1, 2), line(1.0, 3), line(1.4, 4)]
    for budget, kept in ((1_000, [0, 1, 3]), (10_000, [0, 1, 2, 3])):
        assert choose(lines, share_out(lines, budget=budget, most=budget)).kept == kept
    assert choose(lines[2:], share_out(lines[2:], budget=1_000, most=1_000)).kept == [0, 1]


def test_rules_do_not_count_as_record_of_what_was_done() -> None:
    lines = [line(3.6, seq) for seq in range(1, 10)]
    assert share_out(lines, budget=250, most=200).with_detail == 200


def test_where_nothing_is_on_record_detail_may_take_all_room() -> None:
    room = share_out(details(*range(1, 31)), budget=250, most=200)
    assert (room.lines, room.with_detail, room.slack) == (200, 200, 12)


def test_between_two_cuts_lines_are_only_added() -> None:
    before: tuple[float, int] | None = None
    shown: list[list[int]] = []
    for newest in range(1, 60):
        lines = [line(DONE if seq % 5 == 0 else 1.5 + seq % 3 / 10, seq) for seq in range(1, newest + 1)]
        choice = choose(lines, share_out(lines, budget=400, most=300), before)
        before = choice.floor
        shown.append([lines[index].source_seqs[0] for index in choice.kept])
    cuts = [index for index in range(1, len(shown)) if shown[index][: len(shown[index - 1])] != shown[index - 1]]
    assert 1 <= len(cuts) <= 4


def test_settled_line_comes_back_as_soon_as_there_is_room() -> None:
    lines = settled(1, 2, 3)
    tight = choose(lines, Room(20, 20))
    assert tight.kept == [1, 2]
    assert choose(lines, Room(30, 30, 100), tight.floor).kept == [0, 1, 2]


def test_detail_comes_back_only_when_there_is_much_of_it() -> None:
    lines = details(1, 2, 3, 4, 5)
    floor = choose(lines, Room(20, 20)).floor
    assert choose(lines, Room(40, 40, 10), floor).kept == [3, 4]
    assert choose(lines, Room(50, 50, 10), floor) == ([0, 1, 2, 3, 4], LOWEST)
