"""Which lines a memory holds: never more than fit, and never fewer in a larger budget."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.line_choice import LOWEST, floor_within, newest_lines, rank
from reactor_memory.models.block_lines import BlockLine


def line(value: float, seq: int, tokens: int = 10) -> BlockLine:
    return BlockLine(text=f"line {seq}", tokens=tokens, value=value, source_seqs=(seq,))


blocks = st.lists(
    st.builds(line, st.sampled_from([0.5, 1.0, 1.5, 2.5, 3.0, 3.3]), st.integers(1, 60), st.integers(1, 40)),
    max_size=40,
    unique_by=rank,
)


def kept(lines: Sequence[BlockLine], most: int) -> list[BlockLine]:
    floor = floor_within(lines, most)
    return [each for each in lines if rank(each) >= floor]


@given(blocks, st.integers(0, 1_500), st.integers(0, 1_000))
def test_lines_fit_and_a_larger_budget_never_loses_one(lines: list[BlockLine], most: int, more: int) -> None:
    shown = kept(lines, most)
    assert sum(each.tokens for each in shown) <= most
    assert {each.text for each in shown} <= {each.text for each in kept(lines, most + more)}


@given(blocks)
def test_where_all_fit_the_lowest_rank_will_do(lines: list[BlockLine]) -> None:
    assert floor_within(lines, sum(each.tokens for each in lines)) == LOWEST


def test_of_lines_of_one_value_the_newer_ones_stay() -> None:
    assert [each.source_seqs for each in kept([line(1.5, seq) for seq in (1, 2, 3)], 25)] == [(2,), (3,)]


def test_the_newest_lines_are_those_that_fit_from_the_end() -> None:
    lines = [line(1.0, 1, 5), line(1.0, 2, 50), line(1.0, 3, 5)]
    assert newest_lines(lines, 20) == lines[2:]
