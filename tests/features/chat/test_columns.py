"""Previews are cut where a reader sees a border between two characters."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.chat.columns import columns, count, excerpt
from tests.scenes.tables import each_row

JOINED = st.sampled_from(["é", "e\u0301", "👩‍👩‍👧", "👍🏽", "🇩🇪", "नि", "中", "a", " ", "\n"])


@each_row(
    ("text", "characters", "shown"),
    [
        ("short", 5, "short"),
        ("two\n  lines", 20, "two lines"),
        ("a longer text", 9, "a longer…"),
        ("日本語の文章です", 5, "日本語の…"),
        ("abcde\u0301fg", 6, "abcd…"),
        ("ab👩‍👩‍👧cd", 5, "ab…"),
        ("ab👍🏽cd", 4, "ab…"),
        ("abc🇩🇪d", 5, "abc…"),
        ("a" + "\u0301" * 50, 10, "a" + "\u0301" * 8 + "…"),
    ],
)
def test_an_excerpt_is_the_beginning_on_one_line(text: str, characters: int, shown: str) -> None:
    assert excerpt(text, characters) == shown


@given(st.lists(JOINED, max_size=40).map("".join), st.integers(min_value=12, max_value=40))
def test_no_character_of_an_excerpt_is_cut_in_two(text: str, characters: int) -> None:
    line = " ".join(text.split())
    shown = excerpt(text, characters)
    assert len(shown) <= characters
    if shown != line:
        left_out = line[len(shown.removesuffix("…")) :].lstrip()
        assert line.startswith(shown.removesuffix("…"))
        assert not unicodedata.category(left_out[0]).startswith("M")
        assert not left_out.startswith(("\u200d", "🏽"))
        assert not shown.endswith("\u200d…")


def test_numbers_and_columns() -> None:
    assert [count(1, "message"), count(1234, "message")] == ["1 message", "1,234 messages"]
    assert columns([("a", "1"), ("long", "2"), ("b", "")]) == "a     1\nlong  2\nb"
