"""When a message brings something back by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.gate import (
    MAX_IDENTIFIERS,
    MOST_ALIKE,
    Verdict,
    identifiers,
    is_worth_moving,
    not_shown,
    verdict,
)
from reactor_memory.models.index_requests import IndexHit, Passage


def hit(score: float, *words: str) -> IndexHit:
    return IndexHit(passage=Passage(seq=1, start=0, end_seq=1, end=1, tokens=1, terms=words), score=score)


def decided(
    hidden: Sequence[IndexHit],
    visible: Sequence[IndexHit] = (),
    *,
    asks: bool = True,
    named: dict[str, tuple[str, ...]] | None = None,
    shown: Sequence[str] = (),
) -> Verdict:
    weights = {"floor": 6.0, "walrus": 6.0, "kx-4471": 6.0}
    return verdict(asks=asks, named=named or {}, hidden=hidden, visible=visible, shown=shown, weights=weights)


def test_a_question_is_answered_by_what_is_about_as_good() -> None:
    assert decided([hit(5, "floor")]) == "question"
    assert decided([hit(5, "floor")], [hit(8, "floor")]) == "question"
    assert decided([hit(5, "floor")], [hit(9, "floor")]) == "shown already"
    assert decided([]) == "nothing found"


WEIGHTS = {"floor": 6.0, "walrus": 6.0, "kx-4471": 6.0}


def test_the_window_gives_way_to_what_answers_better() -> None:
    assert is_worth_moving([hit(9, "floor", "walrus")], [hit(5, "floor")], WEIGHTS)
    assert not is_worth_moving([hit(8.9, "floor", "walrus")], [hit(5, "floor")], WEIGHTS)
    assert is_worth_moving([hit(1, "floor", "walrus")], [], WEIGHTS)
    assert not is_worth_moving([], [hit(5, "floor")], WEIGHTS)


def test_the_window_gives_way_to_most_of_a_question() -> None:
    assert not is_worth_moving([hit(9, "floor")], [], WEIGHTS)
    assert is_worth_moving([hit(9, "floor"), hit(8, "walrus", "floor")], [], WEIGHTS)
    alike = IndexHit(passage=Passage(seq=1, start=0, end_seq=1, end=1, tokens=1), score=9, similarity=8)
    assert is_worth_moving([alike], [], WEIGHTS)


def test_the_window_gives_way_to_few_passages_that_stand_out() -> None:
    many, few = ([hit(10 - n / 10, "floor", "walrus") for n in range(count)] for count in (MOST_ALIKE + 1, MOST_ALIKE))
    assert is_worth_moving(few, [], WEIGHTS)
    assert not is_worth_moving(many, [], WEIGHTS)
    assert is_worth_moving([*few, hit(7, "floor", "walrus")], [], WEIGHTS)


def test_too_little_of_a_question_is_no_answer() -> None:
    assert decided([hit(5)]) == "weak"
    assert decided([hit(5, "floor")], asks=False) == "weak"


def test_an_identifier_fires_where_only_something_older_holds_it() -> None:
    named = {"KX-4471": ("kx-4471",)}
    assert decided([hit(1, "kx-4471")], asks=False, named=named) == "identifier"
    assert decided([hit(1, "kx-4471")], asks=False, named=named, shown=["your order kx-4471 is here"]) == "weak"
    assert decided([hit(1, "floor")], asks=False, named=named) == "weak"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("look at KX-4471 please", ("KX-4471",)),
        ("order 13087", ("13087",)),
        ("in src/app.py and main.go", ("src/app.py", "main.go")),
        ("call read_file or readFile", ("read_file", "readFile")),
        ("write to ann@example.org, see https://example.org/a", ("ann@example.org", "https://example.org/a")),
        ("at 7 pm with 12 people", ()),
        ("on the 13th at 5pm, 20km from the 21st and 30min", ()),
        ("gate 12b or A4b, flight LH7", ("A4b", "LH7")),
        ("meeting new people...they came. We left.Then it rained", ()),
        ("Ann Walrus and the Blue Door", ()),
        ("yes. No, thanks... well/", ()),
    ],
)
def test_identifiers_name_one_thing(text: str, found: tuple[str, ...]) -> None:
    assert identifiers(text) == found


@given(st.text(max_size=400))
def test_identifiers_stand_in_the_text_each_once(text: str) -> None:
    found = identifiers(text)
    assert all(word in text for word in found)
    assert len(set(found)) == len(found) <= MAX_IDENTIFIERS


def test_what_is_shown_in_any_case_is_shown() -> None:
    assert not_shown(["KX-4471", "B-2"], ["nothing", "kx-4471"]) == ["B-2"]
