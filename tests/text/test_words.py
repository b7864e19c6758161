"""What a short form leaves out, and what it must never leave out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.words import MAX_CHARACTERS, read_sentences, says_what, squeeze
from tests.scenes.tables import each_row

SOME_TEXT = (
    "I want the Blue Door at 7 pm on March 3rd not never don't please (by the sea) A-48213, No. 5: Let It Be. x@y.de"
    " it's 예약 好的。 the? of this month; \n \u2028 café ,, ( ) Dr. Who"
)
WORDS = st.sampled_from(SOME_TEXT.split(" "))
TEXTS = st.text(max_size=80) | st.lists(WORDS, max_size=25).map(" ".join)


def details(text: str) -> list[str]:
    return [detail for sentence in read_sentences(text) for detail in sentence.details]


@each_row(
    ("text", "short"),
    [
        (
            "Please confirm that you want 3 tickets from Long Beach to the pier on March 7th at 10:15 am.",
            "confirm that you want 3 tickets from Long Beach to pier on March 7th at 10:15 am",
        ),
        ("I am at the Nordic House (Apart Hotel) now.", "I am at Nordic House (Apart Hotel) now"),
        ("It would be the 7th of this month.", "It would be 7th of this month"),
        ("Would you like Let It Be by the Beatles?", "Would you like Let It Be by the Beatles?"),
        ("We meet this week, not the next.", "We meet this week, not the next"),
        ("About the rental: please change the deposit to 79.", "About rental: change deposit to 79"),
        ("I really don't want the mocks.", "I don't want mocks"),
        ("So, okay!", ""),
    ],
)
def test_a_short_form_still_says_who_does_what(text: str, short: str) -> None:
    assert squeeze(text) == short


@each_row(
    ("text", "says"),
    [
        ("I live in Oslo", True),
        ("Book a table for two at eight", True),
        ("Please book a table for 7 people", True),
        ("Play Let It Be", True),
        ("She lives here", True),
        ("Mein Zug geht um 8 Uhr", True),
        ("Me gusta el té", True),
        ("New York City", False),
        ("At half past nine", False),
        ("From 2 pm to 4:30 pm", False),
        ("17 Mill Road", False),
        ("Something in Santa Clara", False),
    ],
)
def test_a_fragment_has_no_verb_and_no_person(text: str, says: bool) -> None:
    assert all(says_what(sentence) == says for sentence in read_sentences(text))


@pytest.mark.parametrize(
    "word", ["not", "never", "no", "without", "unless", "must", "should", "if", "until", "or", "only"]
)
def test_words_that_turn_the_meaning_stay(word: str) -> None:
    assert word in squeeze(f"you would {word} deploy it").split()


@given(TEXTS)
def test_a_short_form_is_the_text_with_words_left_out(text: str) -> None:
    """Each of its pieces stands in the text, in its order."""
    place = 0
    for piece in squeeze(text).replace("?", " ").split():
        found = text.find(piece, place)
        assert found >= place, (piece, text)
        place = found + len(piece)


@given(TEXTS)
def test_no_detail_is_lost(text: str) -> None:
    short = squeeze(text).casefold()
    assert all(detail in short for detail in details(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I meet Dr. Who at 5 pm", ["dr.", "who", "5", "pm"]),
        ("I am here. You are there", []),
        ("reach me: anna@example.com", ["anna@example.com"]),
        ("On Friday I'll pay two pounds", ["friday", "two"]),
        ("please double check your order, a double espresso", ["double"]),
    ],
)
def test_details_are_names_numbers_days_and_addresses(text: str, found: list[str]) -> None:
    assert details(text) == found


@each_row(
    ("text", "sentences"),
    [
        ("Fine. Go on! Why? Ok", ["Fine.", "Go on!", "Why?", "Ok"]),
        ("Ask Dr. Who, e.g. in St. Ives.", ["Ask Dr. Who, e.g. in St. Ives."]),
        ("vom 3. bis 6. Mai", ["vom 3. bis 6.", "Mai"]),
        ("one\ntwo", ["one", "two"]),
        ("好的。明天", ["好的。", "明天"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in read_sentences(text)] == sentences


def test_only_the_beginning_of_a_text_is_read() -> None:
    assert sum(len(sentence.text) for sentence in read_sentences("word " * MAX_CHARACTERS)) <= MAX_CHARACTERS
    assert not re.search("tail", squeeze("word " * MAX_CHARACTERS + "tail"))
