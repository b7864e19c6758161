"""One word is one term, however it is written."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.analyzer import FUNCTION_WORDS, MAX_TERM_CHARACTERS, stem, terms
from tests.scenes.tables import each_row


@each_row(
    ("one", "other"),
    [
        ("reservations", "Reserved"),
        ("cities", "city"),
        ("boxes", "box"),
        ("stopped", "stopping"),
        ("times", "time"),
        ("Café", "CAFE"),
        ("ReserveTable", "reserve table"),
        ("party_size", "party size"),
        ("ＡＢＣ１", "abc1"),
        ("Straße", "STRASSE"),
        ("Mcdonald's", "McDonald's".replace("D", "d")),
    ],
)
def test_forms_of_one_word(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@each_row("word", ["bus", "this", "class", "red", "sing", "king", "13087", "a1s", "news", "sees", "eeeee"])
def test_short_words_and_ids_keep_what_they_are(word: str) -> None:
    assert len(stem(word)) >= min(3, len(word))
    assert stem(word)[:2] == word[:2]
    if any(character.isdigit() for character in word):
        assert stem(word) == word


def test_scripts_without_spaces_give_pairs() -> None:
    assert terms("東京タワーA") == ["東京", "京タ", "タワ", "ワー", "a"]
    assert terms("茶") == ["茶"]
    assert set(terms("東京")) <= set(terms("大東京都"))


def test_every_version_of_python_gives_the_same_terms() -> None:
    """Their Unicode tables differ. The digest was made alike by 3.11, 3.12 and 3.13."""
    places = (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 97))
    text = " ".join(f"a{chr(place)}b{chr(place)}" for place in places)
    assert (
        sha256(" ".join(terms(text)).encode()).hexdigest()
        == "b429f0cb213b1d6a0c8711d1118d4c2fefddcd8c89841a95b4c5d7bf166c1692"
    )


def test_new_ideographs_are_letters_and_new_scripts_separate_words() -> None:
    assert terms("\U00031350\u4eac\U0002ebf0") == ["\U00031350\u4eac", "\u4eac\U0002ebf0"]
    assert terms("one\U00011f04two") == ["one", "two"]


def test_function_words_are_left_out_of_a_query_only() -> None:
    assert terms("What is the time?") == ["what", "is", "the", "tim"]
    assert terms("What is the time?", without=FUNCTION_WORDS) == ["tim"]


@given(st.text(max_size=200))
def test_a_term_is_one_word_for_every_index(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM_CHARACTERS
        assert all(character.isalnum() or "\U00020000" <= character <= "\U0003ffff" for character in term)


@given(st.lists(st.sampled_from(["table", "Tables", "booked", "booking", "at", "7:30", "東京"]), max_size=8))
def test_a_text_has_the_terms_of_its_words(words: list[str]) -> None:
    assert terms(" ".join(words)) == [term for word in words for term in terms(word)]
