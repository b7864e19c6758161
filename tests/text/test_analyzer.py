"""One word is one term, however it is written."""

from __future__ import annotations

import time
import unicodedata
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.analyzer import (
    MAX_TERM_CHARACTERS,
    WHOLE,
    beginnings,
    present,
    query_words,
    terms,
)
from reactor_memory.text.caches import forget_texts
from tests.scenes.tables import each_row


@each_row(
    ("one", "other"),
    [
        ("reservations", "Reserved"),
        ("cities", "city"),
        ("boxes", "box"),
        ("stopped", "stopping"),
        ("times", "time"),
        ("Café", "CAFÉ"),
        ("ＡＢＣ１", "abc1"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ﾄﾏﾄ", "とまと"),
        ("١٢٣", "123"),
        ("मेज़", "मेज"),
        ("سَيَّارَة", "سيارة"),
        ("שָׁלוֹם", "שלום"),
        ("co\u00adoperate", "cooperate"),
    ],
)
def test_forms_of_one_word(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@each_row("word", ["bus", "red", "king", "13087", "a1s", "eeeee", "7"])
def test_short_words_and_ids_keep_what_they_are(word: str) -> None:
    assert terms(word) == [word]


def test_scripts_without_spaces_give_pairs() -> None:
    assert terms("東京タワーA") == ["東京", "東", "京", "たわ", "わー", "a"]
    assert terms("茶") == ["茶"]
    assert set(terms("東京")) <= set(terms("大東京都"))


def test_marks_stay_with_their_letters() -> None:
    assert terms("मेरी किताब", "mr") == ["मेरी", "किताब"]
    assert terms("వంట") == ["వంట"]


def test_a_compound_has_parts_and_a_whole_form() -> None:
    assert terms("KX-4471") == ["kx", "4471", f"{WHOLE}kx4471"]
    assert terms("party_size") == ["parti", "size", f"{WHOLE}partysize"]
    assert terms("src/textCuts.py") == ["src", "text", "cut", "py", f"{WHOLE}srctextcutspy", f"{WHOLE}textcutspy"]
    assert terms("iPhone을")[:3] == ["i", "phone", f"{WHOLE}iphone"]


def test_a_query_word_of_no_language_has_all_its_stems() -> None:
    [word] = query_words("Häuser")
    assert {*terms("Häuser", "de"), *terms("Häuser", "en")} <= set(word.terms)
    assert [word.terms[0] for word in query_words("wo sind die Häuser")] == ["haus"]


def test_function_words_are_left_out_of_a_query_only() -> None:
    assert terms("What is the time?") == ["what", "is", "the", "time"]
    assert [word.beginning for word in query_words("What is the time?")] == ["time"]
    assert [word.beginning for word in query_words("the")] == ["the"]
    assert [word.terms for word in query_words("我的车在哪里")] == [("车",)]


def test_two_forms_of_a_word_are_one_of_a_query() -> None:
    [word] = query_words("animation and animated, animated and animation")
    assert word.terms[0] == "anim"
    assert {term.removeprefix(WHOLE) for term in word.terms[1:]} == {"animation", "animated"}


def test_what_texts_hold_is_searched_for() -> None:
    words = query_words("Häuser Boiler KX-4471")
    held = present(words, {"haus": 2, "kx": 1})
    assert held == ["haus", "boil", "kx", "4471"]


def test_what_no_text_holds_is_tried_as_a_beginning() -> None:
    [word] = query_words("reservat")
    assert beginnings(word)[0] == "reservat*"
    assert "reserv" in beginnings(word)
    assert beginnings(query_words("ri")[0]) == ()


@pytest.mark.slow
def test_every_version_of_python_gives_the_same_terms() -> None:
    """Their Unicode tables differ."""
    places = (*range(0x3400), *range(0x3400, 0xD800, 97), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 97))
    text = " ".join(f"a{chr(place)}b" for place in places)
    assert (
        sha256(" ".join(terms(text, "en")).encode()).hexdigest()
        == "7ce164be108d213564e11a4b0ecee08b9ddd18caf32868ca0f15a2529bab5458"
    )


def test_new_ideographs_are_letters_and_new_scripts_separate_words() -> None:
    assert terms("\U00031350\u4eac")[0] == "\U00031350\u4eac"
    assert terms("one\U00011f04two") == ["one", "two"]


ANY_TEXT = st.text(st.characters(), max_size=200)
"""Lone surrogates included."""


@each_row(
    "text", ["a." * 2000, "a@b." * 1000, ".".join(f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(600))]
)
def test_a_word_of_thousands_of_parts_takes_no_time(text: str) -> None:
    query_words(text)  # the stemmers load
    begin = time.process_time()
    query_words(text)
    assert time.process_time() - begin < 0.15


@given(ANY_TEXT)
def test_a_term_is_one_word_for_every_index(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM_CHARACTERS
        assert not any(character.isspace() or character in "'\"\\*()|&!:<>" for character in term)
        assert not term[0].isupper() or term[0].casefold() == term[0]  # Cherokee is folded to its capitals


@given(ANY_TEXT)
def test_a_text_with_a_letter_has_terms(text: str) -> None:
    if any(character.isalpha() for character in text):
        assert terms(text)
        assert query_words(text)


@given(ANY_TEXT)
def test_both_normal_forms_have_the_same_terms(text: str) -> None:
    assert terms(unicodedata.normalize("NFC", text)) == terms(unicodedata.normalize("NFD", text))


@given(st.text(max_size=60))
def test_a_text_is_found_by_itself(text: str) -> None:
    held = set(terms(text))
    for word in query_words(text):
        assert held.intersection(word.terms) or word.terms[0].startswith(WHOLE)


@given(st.lists(st.sampled_from(["table", "Tables", "booked", "booking", "at", "7:30", "東京"]), max_size=8))
def test_a_text_has_the_terms_of_its_words(words: list[str]) -> None:
    assert terms(" ".join(words)) == [term for word in words for term in terms(word)]


@each_row("unit", ["a", "a-", "aB", "一", "é", "x/", "\u0301", "ㄱ", "-", "ы"])
def test_the_time_grows_with_the_text(unit: str) -> None:
    def taken(times: int) -> float:
        forget_texts()
        start = time.process_time()
        terms(unit * times)
        return time.process_time() - start

    assert taken(40_000) < 30 * max(taken(4_000), 0.001)
