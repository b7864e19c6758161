"""Sentences and leaves of JSON: what everything that points into a text agrees on."""

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.spans import MAX_LEAVES, Leaf, arguments_of, decode, leaves, sentences
from tests.scenes.tables import each_row


@each_row(
    ("text", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("one\ntwo\n\nthree", ["one", "two", "three"]),
        ("At 3.50 a piece, see a.b.c today", ["At 3.50 a piece, see a.b.c today"]),
        ("Dr. Han and Mr. Lee met. They left.", ["Dr. Han and Mr. Lee met.", "They left."]),
        ("今日は。明日は？", ["今日は。", "明日は？"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@given(st.text())
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_leaves_stand_in_the_order_in_which_they_were_written() -> None:
    value = {"b": [{"x": 1}, "two\nlines"], "a": {"deep": True}, "none": None, "empty": ""}
    assert list(leaves(value)) == [Leaf("b.0.x", "1"), Leaf("b.1", "two lines"), Leaf("a.deep", "true")]


def test_the_number_of_leaves_is_bounded() -> None:
    assert sum(1 for _ in leaves(list(range(MAX_LEAVES + 10)))) == MAX_LEAVES


def test_numbers_stay_as_written() -> None:
    assert decode('{"price": 4.50, "id": 12345678901234567890123}') == {
        "price": "4.50",
        "id": "12345678901234567890123",
    }


@each_row("text", ["", "text", '"text"', "12", "{", "[1,", "[" * 100_000])
def test_what_is_no_json_object_or_array_is_none(text: str) -> None:
    assert decode(text) is None


def test_malformed_arguments_stay_text() -> None:
    assert arguments_of('{"a": 1}') == {"a": "1"}
    assert arguments_of('{"a": ') == '{"a": '
