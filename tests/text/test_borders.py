"""A text is cut between what a reader takes for characters, a word is found on the borders of its script."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.core.log.paging import preview_of, title_from
from reactor_memory.features.chat.columns import excerpt
from reactor_memory.features.facts.plain_text import plain_title
from reactor_memory.features.tiers.portions import shortened
from reactor_memory.text.borders import border_after, border_before, cut, joins
from tests.scenes.tables import each_row


@each_row(
    "clusters",
    [
        ["a", "b"],
        ["e\u0301", "x"],
        ["👨‍👩‍👧", "👍🏽", "❤️"],
        ["🇩🇪", "🇫🇷", "🇯🇵"],
        ["मे", "री", "क्षि", "ण"],
        ["น้ำ", "ตา", "ล"],
        ["\u1112\u1161\u11ab", "\u1100\u1173\u11af"],
        ["한", "글"],
        ["ம்", "நி"],
        ["🏴\U000e0067\U000e0062\U000e007f", "x"],
        ["\r\n", "x"],
        ["ﾊﾟ", "ﾝ"],
    ],
)
def test_no_character_of_a_reader_is_cut(clusters: list[str]) -> None:
    text = "".join(clusters)
    borders = {sum(map(len, clusters[:count])) for count in range(len(clusters) + 1)}
    # A vowel letter behind its consonant, as in Thai, is a character of its own.
    allowed = borders | {place for place in range(len(text)) if text[place] == "า"}
    for place in range(len(text) + 1):
        assert border_before(text, place) == max(each for each in allowed if each <= place)
        assert border_after(text, place) == min(each for each in allowed if each >= place)


@given(st.text(st.characters(), max_size=80), st.integers(-5, 90))
def test_a_cut_is_a_beginning_and_no_longer(text: str, length: int) -> None:
    shown = cut(text, length)
    assert text.startswith(shown)
    assert len(shown) <= max(0, length)
    if len(text) <= length:
        assert shown == text


def test_the_time_does_not_grow_with_a_run_of_marks() -> None:
    start = time.process_time()
    assert cut("a" + "\u0301" * 1_000_000, 900_000)
    assert cut("🇩" * 1_000, 999)
    assert time.process_time() - start < 1


@each_row(
    ("before", "after", "joined"),
    [
        ("1", "3", True),
        ("a", "b", True),
        ("a", " ", False),
        ("", "a", False),
        ("3", "時", False),
        ("東", "京", False),
        ("น", "ก", False),
        ("피", "를", False),
        ("म", "े", True),
        ("s", ".", False),
        ("а", "б", True),
    ],
)
def test_borders_of_words(before: str, after: str, joined: bool) -> None:
    assert joins(before, after) is joined


FAMILY = "👨‍👩‍👧‍👦"


@each_row("length", range(20, 60))
def test_what_is_shown_ends_with_a_whole_character(length: int) -> None:
    text = FAMILY * 40
    notes = f"{FAMILY * 9} {FAMILY}"
    for shown in (preview_of(text), title_from(text) or "", excerpt(text, length), shortened(text, length, len)):
        said = shown.removesuffix("…").removesuffix(" [...]").rstrip()
        assert set(said.replace(FAMILY, "")) <= set(" …[]cut."), shown
    assert plain_title(notes).count("👨") == plain_title(notes).count("👦")
