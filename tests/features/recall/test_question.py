"""When a message brings something back by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.recall.question import (
    MAX_IDENTIFIERS,
    MOST_ALIKE,
    Verdict,
    holds_enough,
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
    asked: Sequence[str] = (),
    is_fresh: bool = False,
) -> Verdict:
    return verdict(
        asks=asks,
        named=named or {},
        hidden=hidden,
        visible=visible,
        shown=shown,
        weights={"floor": 6.0, "walrus": 6.0, "kx-4471": 6.0},
        asked=asked,
        is_fresh=is_fresh,
    )


def test_a_question_is_answered_by_what_is_about_as_good() -> None:
    assert decided([hit(5, "floor")]) == "question"
    assert decided([hit(5, "floor", "walrus")], [hit(8, "floor")]) == "question"
    assert decided([hit(5, "floor", "walrus")], [hit(9, "floor")]) == "shown already"
    assert decided([]) == "nothing found"


def test_words_that_stand_in_what_is_shown_answer_nothing() -> None:
    assert decided([hit(8.9, "floor", "walrus")], [hit(5, "floor", "walrus")]) == "shown already"
    assert decided([hit(9, "floor", "walrus")], [hit(5, "floor", "walrus")]) == "question"
    assert decided([hit(5, "floor", "walrus")], [hit(5, "floor")]) == "question"


def test_results_with_the_words_of_a_shown_one_come_back() -> None:
    result = replace(hit(5, "floor", "walrus").passage, call_seq=1)
    shown = hit(5, "floor", "walrus")
    assert decided([IndexHit(passage=result, score=5)], [shown]) == "question"
    assert decided([IndexHit(passage=result, score=2.9)], [shown]) == "shown already"


def test_a_small_part_of_a_question_has_to_stand_out() -> None:
    assert decided([hit(6.1, "floor")], [hit(5)]) == "question"
    assert decided([hit(5.9, "floor")], [hit(5)]) == "weak"
    assert decided([hit(5.9, "floor"), hit(5, "floor", "walrus")], [hit(5)]) == "question"


def test_words_around_the_sentence_that_asks_answer_nothing() -> None:
    assert decided([hit(9, "floor", "walrus")], [hit(1)], asked=["kx-4471"]) == "weak"
    assert decided([hit(9, "floor", "walrus")], [hit(1)], asked=["floor"]) == "question"
    assert decided([hit(9, "floor", "walrus")], [hit(1)], asked=["unknown"]) == "question"


def test_what_nobody_said_before_has_to_stand_out() -> None:
    assert decided([hit(5, "floor")], is_fresh=True) == "weak"
    assert decided([hit(5, "floor", "walrus")], is_fresh=True) == "question"
    assert decided([hit(8, "floor", "walrus")], [hit(5, "floor")], is_fresh=True) == "weak"


def test_what_means_the_same_needs_no_words() -> None:
    alike = IndexHit(passage=Passage(seq=1, start=0, end_seq=1, end=1, tokens=1), score=9, similarity=8)
    assert decided([alike], [hit(9, "floor")], is_fresh=True) == "question"


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


def test_a_query_takes_nothing_for_what_holds_little_of_it() -> None:
    assert holds_enough([hit(1), hit(1, "floor", "walrus")], WEIGHTS)
    assert not holds_enough([hit(9)], WEIGHTS)
    assert not holds_enough([], WEIGHTS)
    alike = IndexHit(passage=Passage(seq=1, start=0, end_seq=1, end=1, tokens=1), score=9, similarity=8)
    assert holds_enough([alike], WEIGHTS)


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
