"""Where sentences end, and which of their words are details."""

import pytest

from reactor_memory.text.words import MAX_CHARACTERS, read_sentences
from tests.scenes.tables import each_row


def details(text: str) -> list[str]:
    return [detail for sentence in read_sentences(text) for detail in sentence.details]


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
