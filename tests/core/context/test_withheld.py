"""What is withheld is found in texts by its words, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.core.context.withheld import NOTHING_WITHHELD, Statement, Withheld

WINDOW_SEAT = Statement(seq=5, value="window seat", answered_seq=6, until_seq=20)
PHONE = Statement(seq=5, value="555-0101", answered_seq=6, until_seq=20)


@pytest.mark.parametrize(
    ("value", "text", "is_said"),
    [
        ("555-0101", "Call 555 0101 now", True),
        ("555-0101", "Call 555-01012 now", False),
        ("window seat", "A Window\n seat, please", True),
        ("window seat", "the seat by the window of the train to Rome tonight", False),
        ("梅の港", "暗号は梅の港です", True),
        ("Straße 12", "the STRASSE 12", True),
        ("¡!", "anything", False),
    ],
)
def test_words_count_and_what_stands_between_them_does_not(value: str, text: str, is_said: bool) -> None:
    said = Statement(seq=5, value=value, answered_seq=6)
    assert said.stands_in(text) is is_said


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ("Noted: the blue boat for trip 10", True),
        ("assistant: Blue boat it is", True),
        ("Thanks, I will look for harbours with free berths and tell you tonight", False),
        ("Yes", False),
    ],
)
def test_answers_with_hardly_a_word_of_their_own_repeat_it(text: str, is_repeated: bool) -> None:
    said = Withheld(statements=(Statement(seq=5, value="I decided on the blue boat for trip 10", answered_seq=6),))
    assert said.is_said(text, 6, 6) is is_repeated


def test_other_things_may_have_the_same_value_outside_the_turn() -> None:
    withheld = Withheld(statements=(WINDOW_SEAT,))
    assert [withheld.is_said("a window seat", seq, seq) for seq in (4, 5, 6, 7, 20, 21)] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def test_number_is_the_same_wherever_it_was_said_until_then() -> None:
    withheld = Withheld(statements=(PHONE,))
    assert [withheld.is_said("call 555-0101", seq, seq) for seq in (1, 5, 20, 21)] == [True, True, True, False]


def test_sentences_go_and_their_neighbours_stay() -> None:
    text = "They met. The number is 555-0101! Dr. Ash came.\nOrders: 3."
    assert Withheld(statements=(PHONE,)).without(text, 1, 9) == "They met. Dr. Ash came.\nOrders: 3."
    assert Withheld(statements=(PHONE,)).without("Call 555\n0101", 1, 9) == ""
    assert NOTHING_WITHHELD.without(text, 1, 9) == text


def test_messages_cleared_and_messages_of_statements_are_passed_over() -> None:
    withheld = Withheld(cleared=((1, 3),), statements=(PHONE, WINDOW_SEAT, Statement(seq=4, value="x")))
    assert withheld.ranges == ((1, 5),)
    assert [withheld.touches(first, last) for first, last in ((5, 9), (6, 9))] == [True, False]


@given(st.lists(st.text(max_size=20), max_size=4).map("\n".join), st.text(min_size=1, max_size=12))
def test_nothing_left_of_a_text_says_it(text: str, value: str) -> None:
    withheld = Withheld(statements=(Statement(seq=1, value=value, answered_seq=1),))
    left = withheld.without(text, 1, 1)
    assert not withheld.statements[0].stands_in(left)
    if left == "" or left == text:
        return
    assert all(line in text for line in left.split())
