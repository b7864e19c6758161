"""The order in which lines are told: nested, new things first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.coverage import (
    BREADTH,
    LEAST_AGAIN,
    LINE_COST,
    Candidate,
    told_values,
)

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


def worth_now(each: Candidate, rare: Mapping[str, float], told: Counter[str], picked: Counter[int]) -> float:
    said = sum(
        worth * rare[term] * (max(LEAST_AGAIN, each.again ** told[term]) if told[term] else 1.0)
        for term, worth in each.terms.items()
    )
    return each.weight * BREADTH ** picked[each.source] * said**each.power / (each.tokens + LINE_COST)


@given(candidates)
def test_next_line_is_always_the_best_left(given_lines: list[Candidate]) -> None:
    times = Counter(term for each in given_lines for term in each.terms)
    most = math.log(1 + len(given_lines))
    rare = {term: math.log(1 + len(given_lines) / count) / most for term, count in times.items()}
    values = told_values(given_lines)
    told: Counter[str] = Counter()
    picked: Counter[int] = Counter()
    left = dict(enumerate(given_lines))
    least = math.inf
    while left:
        worths = {place: worth_now(each, rare, told, picked) for place, each in left.items()}
        place = max(left, key=lambda place: values[place])
        chosen = max((at for at in left if values[at] == values[place]), key=lambda at: worths[at])
        least = min(least, worths[chosen])
        assert values[chosen] == pytest.approx(least, rel=2e-3)
        assert worths[chosen] >= max(worths.values()) * 0.998
        told.update(left[chosen].terms.keys())
        picked[left.pop(chosen).source] += 1
