"""What a message names, and whether that is known from before."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.gate import MAX_NAMES, Name, fold_text, holds, known, names, outside
from reactor_memory.models.index_requests import IndexAnswer, IndexHit
from reactor_memory.text.analyzer import terms
from tests.scenes.tables import each_row


def named(text: str) -> set[str]:
    return {name.text for name in names(text)}


@each_row(
    ("text", "expected"),
    [
        ("Please book a table at Sushi Ran in San Francisco.", {"Sushi Ran", "San Francisco"}),
        ("Is Lord of the Rings on?", {"Lord of the Rings"}),
        ("Yes please. That sounds good. Book it", set[str]()),
        ("Alice Smith called. Bob did not.", {"Alice Smith"}),
        ("I think I'd like what Bob's friend had", {"Bob"}),
        ('Play "let it be" or “one more time”', {"let it be", "one more time"}),
        ("The one we saved as 'my list' and not the others' one", {"my list"}),
        ("Mail bob@example.org about order 13087 or A-77b1", {"bob@example.org", "13087", "A-77b1"}),
        ("On 2019-03-04 at 7:30, for 2 people", {"2019-03-04", "7:30"}),
        ("WHERE IS MY ORDER AT BLUE DOOR", set[str]()),
        ("the one (Blue Door) [reference X9]", {"Blue Door", "reference X9", "X9"}),
        ("«Голубая дверь» и Иван", {"Голубая дверь", "Иван"}),
        ("", set[str]()),
    ],
)
def test_names(text: str, expected: set[str]) -> None:
    assert named(text) == expected


def test_in_script_without_capitals_every_word_may_be_a_name() -> None:
    assert all(name.is_word for name in names("مطعم الشرق"))
    assert {"مطعم", "شرق"} == named("مطعم الشرق")
    assert "東京" in named("東京の予約")


@given(st.text(max_size=300))
def test_any_text_has_a_bounded_number_of_names_in_it(text: str) -> None:
    found = names(text)
    assert len(found) <= MAX_NAMES
    assert all(name.terms for name in found)
    assert all(name.text in text for name in found if not name.is_word)


def test_what_the_context_shows_is_not_outside() -> None:
    sought = names("Blue Door, Alice Smith and 13087")
    assert outside(sought, ["we met at the  BLUE\ndoor", "code 130871"]) == tuple(
        name for name in sought if name.text in ("Alice Smith", "13087")
    )
    assert outside(sought, ["Alice Smith has 13087", "Blue Door"]) == ()


def test_names_stand_on_word_borders() -> None:
    assert holds(fold_text("room 13, floor"), "13")
    assert not holds(fold_text("room 130"), "13")
    assert holds(fold_text("room 130 and 13"), "13")
    assert holds(fold_text("大東京都"), "東京")


def hit(text: str, seq: int = 1) -> IndexHit:
    return IndexHit(seq=seq, turn=(seq, seq), terms=tuple(terms(text)))


def test_a_name_is_known_when_something_older_holds_it_whole() -> None:
    (name,) = names("at Blue Door")
    for found, expected in (((hit("the blue door"),), True), ((hit("blue"), hit("door")), False)):
        assert known([name], IndexAnswer(found=found, total=100), before=50) is expected
    assert not known([name], IndexAnswer(found=(hit("blue door", 50),), total=100), before=50)


def test_a_word_that_may_be_no_name_must_be_rare() -> None:
    word = Name(text="مطعم", terms=("مطعم",), is_word=True)
    findings = IndexAnswer(found=(hit("مطعم"),), frequencies={"مطعم": 2}, total=100)
    assert known([word], findings, before=50)
    assert not known([word], IndexAnswer(found=findings.found, frequencies={"مطعم": 3}, total=100), before=50)


@each_row(
    "unit, message",
    [
        ("1", " ".join("1" * length for length in range(4, 20))),
        ("1.", "1." * 1999 + "1"),
        ("11.", "11." * 1333 + "1"),
        ("11.", " ".join("11." * length + "1" for length in range(1, 17))),
        ("a1", " ".join("a1" * length for length in range(2, 18))),
        ("1 ", '"' + "1 " * 39 + '1"'),
        ("漢1", " ".join("「" + "漢1" * length + "」" for length in range(1, 17))),
        ("x1111111111111111111 ", " ".join("1" * length for length in range(3, 19))),
    ],
)
def test_names_that_begin_everywhere_cost_one_pass(unit: str, message: str) -> None:
    named = names(message)
    assert named
    shown = [unit * (100_000 // len(unit))]
    begin = time.thread_time()
    outside(named, shown)
    assert time.thread_time() - begin < 0.05


def by_every_place(folded: str, name: str) -> bool:
    wanted = fold_text(name)
    return any(
        folded.startswith(wanted, at)
        and not (folded[at - 1 : at].isalnum() and wanted[0].isascii())
        and not (folded[at + len(wanted) :][:1].isalnum() and wanted[-1].isascii())
        for at in range(len(folded))
    )


PIECES = st.text(st.sampled_from("1a. _é漢字"), max_size=14).map(fold_text)


@given(PIECES, st.lists(PIECES.filter(bool), min_size=1, max_size=5, unique=True))
def test_names_are_held_on_word_borders_whatever_else_is_named(text: str, wanted: list[str]) -> None:
    named = [Name(text=each, terms=(each,)) for each in wanted]
    assert [name.text for name in outside(named, [text])] == [each for each in wanted if not by_every_place(text, each)]
    assert [holds(text, each) for each in wanted] == [by_every_place(text, each) for each in wanted]
