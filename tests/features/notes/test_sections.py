"""Sections of a Markdown text: found by their headers, changed without touching anything else."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reactor_memory.features.notes.sections import (
    AmbiguousSectionError,
    BrokenStructureError,
    NoSuchSectionError,
    Section,
    addresses,
    find,
    joined,
    prepended,
    removed,
    replaced,
    sections,
    with_new,
)
from tests.scenes.tables import each_row

NOTES = """\
Always answer in French.

# Likes
tea

## Food
figs

## Drinks ##
wine

# Dislikes
## Food
nuts
"""


def titles(text: str) -> list[str]:
    return [section.title for section in sections(text)]


def text_of(text: str, header: str) -> str:
    section = find(text, header)
    return text[section.start : section.end]


class TestHeaders:
    @each_row(
        ("line", "level", "title"),
        [
            ("# Food", 1, "Food"),
            ("###### Food", 6, "Food"),
            ("   ## Food", 2, "Food"),
            ("##\tFood", 2, "Food"),
            ("## Food ##", 2, "Food"),
            ("## Food ########  ", 2, "Food"),
            ("## Food##", 2, "Food##"),
            ("## C #", 2, "C"),
            ("## C\\#", 2, "C\\#"),
            ("##   Food   and \t drink ", 2, "Food and drink"),
            ("## #1", 2, "#1"),
            ("##", 2, ""),
            ("## ##", 2, ""),
            ("## cafe\u0301", 2, "caf\u00e9"),
        ],
    )
    def test_what_is_one(self, line: str, level: int, title: str) -> None:
        for ending in ("", "\n", "\r\n"):
            (section,) = sections(f"{line}{ending}")
            assert (section.level, section.title) == (level, title)

    @each_row(
        "line",
        ["#Food", "####### Food", "    # Food", "\t# Food", "\\# Food", "> # Food", "- # Food", "Food #", "Food\n==="],
    )
    def test_what_is_none(self, line: str) -> None:
        assert sections(line) == ()

    @each_row(
        "code",
        [
            "```\n# no\n```\n",
            "~~~\n# no\n~~~\n",
            "```python\n# no\n```\n",
            "````\n```\n# no\n````\n",
            "```\n~~~\n# no\n```\n",
            "```\n    ```\n# no\n```\n",
            "``` a\n``` b\n# no\n```\n",
            "  ```\n# no\n   ```  \n",
            "~~~ a`b\n# no\n~~~~\n",
        ],
    )
    def test_code_holds_none(self, code: str) -> None:
        assert titles(f"{code}# yes\n") == ["yes"]

    @pytest.mark.parametrize("text", ["``` a`b\n# yes\n", "``\n# yes\n``\n", "    ```\n# yes\n"])
    def test_what_begins_no_code(self, text: str) -> None:
        assert titles(text) == ["yes"]

    def test_open_code_goes_to_the_end(self) -> None:
        assert titles("# yes\n```\n# no\n# no\n") == ["yes"]

    def test_a_section_holds_those_below_it(self) -> None:
        assert text_of(NOTES, "Likes") == NOTES[NOTES.index("# Likes") : NOTES.index("# Dislikes")]
        assert text_of(NOTES, "Drinks") == "## Drinks ##\nwine\n\n"
        assert text_of(NOTES, "Dislikes") == "# Dislikes\n## Food\nnuts\n"

    def test_a_level_may_be_left_out(self) -> None:
        text = "# A\n### B\n## C\n### D\n"
        assert [section.path for section in sections(text)] == [("A",), ("A", "B"), ("A", "C"), ("A", "C", "D")]


class TestFinding:
    @each_row(
        "header",
        ["Drinks", "  drinks ", "## Drinks", "## DRINKS ##", "Likes > Drinks", "likes > drinks", "Drinks [1]"],
    )
    def test_ways_to_name_one(self, header: str) -> None:
        assert find(NOTES, header).title == "Drinks"

    @pytest.mark.parametrize("header", ["Food [2]", "Dislikes > Food", "## Dislikes > Food", "dislikes > food"])
    def test_ways_to_name_one_of_several(self, header: str) -> None:
        assert text_of(NOTES, header) == "## Food\nnuts\n"

    @each_row("header", ["# Drinks", "Drink", "Likes > Dislikes", "Food [3]", "Food [0]", "Likes >", ""])
    def test_what_is_not_there_names_what_is(self, header: str) -> None:
        with pytest.raises(NoSuchSectionError) as error:
            find(NOTES, header)
        assert error.value.headers == ("Likes", "Likes > Food", "Drinks", "Dislikes", "Dislikes > Food")

    def test_several_are_told_apart(self) -> None:
        with pytest.raises(AmbiguousSectionError) as error:
            find(NOTES, "food")
        assert error.value.headers == ("Likes > Food", "Dislikes > Food")
        with pytest.raises(AmbiguousSectionError) as error:
            find("# A\n# A\n# B\n", "A")
        assert error.value.headers == ("A [1]", "A [2]")

    def test_the_same_letters_come_before_other_letters(self) -> None:
        text = "# food\n1\n# Food\n2\n"
        assert text_of(text, "Food") == "# Food\n2\n"
        with pytest.raises(AmbiguousSectionError):
            find(text, "FOOD")

    def test_titles_are_compared_as_they_look(self) -> None:
        assert find("## cafe\u0301\n", "caf\u00e9").title == find("## caf\u00e9\n", "cafe\u0301").title
        assert find("## Stra\u00dfe\n", "STRASSE")

    def test_a_title_that_looks_like_an_address_comes_first(self) -> None:
        text = "# A\n## B\n# A > B\n# C [2]\n# C\n# C\n"
        assert find(text, "A > B").level == 1
        assert find(text, "C [2]").title == "C [2]"
        assert find(text, "C [1]").title == "C"

    def test_the_list_of_headers_is_bounded(self) -> None:
        with pytest.raises(NoSuchSectionError) as error:
            find("# same\n" * 600, "other")
        assert error.value.headers == tuple(f"same [{number}]" for number in range(1, 31))


class TestReplacing:
    def test_the_header_stays_and_what_follows_it_goes(self) -> None:
        expected = NOTES.replace("tea\n\n## Food\nfigs\n\n## Drinks ##\nwine\n", "coffee\n")
        assert replaced(NOTES, "likes", "coffee") == expected

    def test_the_last_section(self) -> None:
        assert replaced(NOTES, "Dislikes > Food", "eggs") == NOTES.replace("nuts\n", "eggs")

    @pytest.mark.parametrize("content", ["## Drinks\nbeer", "\n\n# drinks ##\nbeer", "beer"])
    def test_a_header_in_the_content_is_not_doubled(self, content: str) -> None:
        assert replaced(NOTES, "Drinks", content) == NOTES.replace("wine", "beer")

    def test_nothing_empties_the_section(self) -> None:
        assert replaced(NOTES, "Drinks", "") == NOTES.replace("wine\n", "")
        assert replaced("# A", "A", "") == "# A"

    def test_a_header_without_a_line_end(self) -> None:
        assert replaced("# A", "A", "text") == "# A\ntext"

    def test_the_line_ends_of_the_text_are_used(self) -> None:
        assert replaced("# A\r\nold\r\n# B\r\n", "A", "new") == "# A\r\nnew\r\n\r\n# B\r\n"

    def test_content_that_would_swallow_what_follows(self) -> None:
        with pytest.raises(BrokenStructureError):
            replaced(NOTES, "Food [1]", "```\nopen")
        assert replaced(NOTES, "Food [2]", "```\nopen").endswith("```\nopen")


class TestRemoving:
    def test_one_blank_line_is_left(self) -> None:
        text = "before\n\n\n# A\na\n\n\n# B\nb\n"
        assert removed(text, "A") == "before\n\n# B\nb\n"

    def test_with_what_lies_in_it(self) -> None:
        assert removed(NOTES, "Likes") == "Always answer in French.\n\n# Dislikes\n## Food\nnuts\n"

    def test_the_first_the_last_and_the_only_one(self) -> None:
        text = "# A\na\n\n# B\nb\n\n"
        assert removed(text, "A") == "# B\nb\n\n"
        assert removed(text, "B") == "# A\na\n"
        assert removed("\n# A\na\n", "A") == ""


class TestAdding:
    @each_row(("first", "second"), [("a", "b"), ("a\n", "b"), ("a\n\n\n", "b"), ("a", "\n\n b"), ("a\n", " \n\nb")])
    def test_one_blank_line_between(self, first: str, second: str) -> None:
        assert re.fullmatch(r"a\n\n ?b", joined(first, second))

    def test_an_empty_text_adds_nothing(self) -> None:
        assert (joined("", "b\n"), joined("a\n", ""), joined("", "", "-")) == ("b\n", "a\n", "")
        assert joined("\n\n", "b") == "b"

    def test_with_a_separator(self) -> None:
        assert joined("Old notes. ", "More.", "") == "Old notes. More."
        assert joined("a\n", "b", " | ") == "a\n | b"

    def test_before_what_there_is(self) -> None:
        assert prepended("# A\n", "first") == "first\n\n# A\n"
        assert prepended("\n\n\n\n\n\n# A\n", "## H") == "## H\n\n# A\n"
        assert prepended("# A\n", "first\n", "") == "first\n# A\n"
        for content, separator in (("```", None), ("first", "")):
            with pytest.raises(BrokenStructureError):
                prepended("# A\n", content, separator)

    def test_a_new_section(self) -> None:
        assert with_new("# A\na\n", "Food", "figs") == "# A\na\n\n## Food\nfigs"
        assert with_new("", "### Food", "### food\nfigs") == "### Food\nfigs"

    @each_row("header", ["A > B", "C #", "##", " ", "# #"])
    def test_a_header_that_could_not_be_found_again(self, header: str) -> None:
        with pytest.raises(BrokenStructureError):
            with_new("", header, "x")

    def test_a_new_section_that_brings_its_own_double(self) -> None:
        with pytest.raises(BrokenStructureError):
            with_new("", "Food", "figs\n## Food\n")

    def test_a_new_section_behind_open_code(self) -> None:
        with pytest.raises(BrokenStructureError):
            with_new("```\ncode", "Food", "figs")


TITLES = ("Food", "food", "Travel", "Caf\u00e9", "To do", "A b")
LINES = st.sampled_from(
    ["", " ", "text", "  indented", "- item", "#tag", "===", "`code`", "\u2028", "    # code", "\x0b", "> # quoted"]
)
HEADERS = st.builds(lambda level, title: f"{'#' * level} {title}", st.integers(1, 4), st.sampled_from(TITLES))
FENCED = st.sampled_from(["```\n# in code\n```", "~~~ x\n## Food\n\n~~~~"])
NEWLINES = st.sampled_from(["\n", "\r\n"])


@st.composite
def markdown(draw: st.DrawFn) -> str:
    newline = draw(NEWLINES)
    lines = draw(st.lists(st.one_of(LINES, HEADERS, HEADERS, FENCED), max_size=12))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", newline)


def blocks(text: str) -> list[str]:
    """The text cut before every header."""
    cuts = [0, *(section.start for section in sections(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def trimmed(text: str) -> str:
    """Without the blank lines at its end: those beside a change may change."""
    return text.rstrip(" \t\r\n")


def filled(blocks: list[str]) -> list[str]:
    return [trimmed(block) for block in blocks if trimmed(block)]


@st.composite
def with_a_section(draw: st.DrawFn) -> tuple[str, str, Section]:
    """A text, a section of it, and the header that names it."""
    text = draw(markdown())
    known = sections(text)
    assume(known)
    section = draw(st.sampled_from(known))
    named = addresses(known, [section])
    assume(named)
    return text, named[0], section


@given(st.text(alphabet="#`~ \tab\r\n>[1]\u0301", max_size=60))
def test_any_text_is_the_sum_of_its_blocks(text: str) -> None:
    assert "".join(blocks(text)) == text
    for section in sections(text):
        assert 0 <= section.start < section.body <= section.end <= len(text)
        assert section.path[-1] == unicodedata.normalize("NFC", section.title)


@given(markdown())
def test_an_address_finds_its_section(text: str) -> None:
    known = sections(text)
    for section in known:
        (address,) = addresses(known, [section])
        assert find(text, address) == section


CONTENT = st.sampled_from(["MARK", "MARK\n", "\nMARK\n\n", "- MARK\n- b", "```\n# MARK\n```", "MARK\n\n#### Below\nx"])


@given(with_a_section(), CONTENT)
def test_a_replaced_section_is_there_once_and_others_are_unchanged(
    chosen: tuple[str, str, Section], content: str
) -> None:
    text, header, section = chosen
    after = replaced(text, header, content)
    assert after.count("MARK") == 1
    assert content in after
    assert after.startswith(text[: section.body])
    assert after.endswith(text[section.end :])
    if not (section.level == 4 and "####" in content):
        assert replaced(after, header, content) == after


@given(with_a_section())
def test_a_removed_section_takes_nothing_along(chosen: tuple[str, str, Section]) -> None:
    text, header, section = chosen
    after = removed(text, header)
    kept = blocks(text[: section.start]) + blocks(text[section.end :])
    assert filled(blocks(after)) == filled(kept)
    assert after.endswith(text[section.end :])


@given(with_a_section())
def test_removing_and_adding_a_section_again_touches_nothing_else(chosen: tuple[str, str, Section]) -> None:
    text, header, section = chosen
    assume(text[section.end :] == "")
    again = joined(removed(text, header), text[section.start :])
    assert filled(blocks(again)) == filled(blocks(text))


@given(markdown(), markdown())
def test_joined_texts_keep_both(first: str, second: str) -> None:
    whole = joined(first, second)
    begin, end = trimmed(first), re.sub(r"\A([ \t\r]*\n)*([ \t\r]*\Z)?", "", second)
    assert whole.startswith(begin)
    assert whole.endswith(end)
    if begin and end:
        assert re.fullmatch(r"[ \t]*(\r?\n){2}", whole[len(begin) : len(whole) - len(end)])
    assert joined(first, second, "") == first + second


@given(markdown(), markdown(), st.sampled_from([None, "", "\n"]))
def test_what_is_put_before_a_text_leaves_its_sections_alone(text: str, content: str, separator: str | None) -> None:
    try:
        whole = prepended(text, content, separator)
    except BrokenStructureError:
        return
    ours, all_of_it = sections(text), sections(whole)
    assert [section.title for section in all_of_it[len(all_of_it) - len(ours) :]] == [each.title for each in ours]
    if not any(mark in content for mark in ("```", "~~~")) and separator is None:
        assert len(all_of_it) == len(ours) + len(sections(content))


@given(markdown(), st.sampled_from(["plain", "# A\ntext", "## B\n", "```\ncode\n```"]))
def test_whole_content_can_always_be_put_before_a_text(text: str, content: str) -> None:
    assert prepended(text, content).startswith(content.rstrip("\n"))
