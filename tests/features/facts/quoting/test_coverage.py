"""The order in which lines are told: nested, new things first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.coverage import Candidate, told_values

candidates = st.lists(
    st.builds(
        Candidate,
        tokens=st.integers(1, 60),
        weight=st.floats(0.1, 4),
        terms=st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.05, 1), min_size=1, max_size=5),
        source=st.integers(1, 5),
        power=st.floats(0.5, 1),
        again=st.floats(0, 1),
    ),
    max_size=12,
)


@given(candidates)
def test_each_line_has_a_value_and_none_is_negative(given_lines: list[Candidate]) -> None:
    values = told_values(given_lines)
    assert len(values) == len(given_lines)
    assert all(value >= 0 for value in values)


def test_what_was_said_before_is_worth_less() -> None:
    same = Candidate(tokens=10, weight=1.0, terms={"a": 1.0, "b": 1.0}, source=1)
    new = Candidate(tokens=10, weight=0.8, terms={"c": 1.0, "d": 1.0}, source=3)
    first, second, other = told_values([same, same._replace(source=2), new])
    assert first > second
    assert other > second


def test_what_fewer_tokens_say_comes_first() -> None:
    short = Candidate(tokens=5, weight=1.0, terms={"a": 1.0}, source=1)
    long, brief = told_values([short._replace(tokens=50, source=2), short])
    assert brief > long
