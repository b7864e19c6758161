"""The seven operations as a function of the text: what they do, and what they refuse."""

import pytest

from reactor_memory.features.notes.changes import OPERATIONS, Change, RefusedChangeError, changed
from tests.scenes.tables import each_row

TEXT = "# Likes\ntea\n\n## Food\nfigs\n\n# Dislikes\n## Food\nnuts\n"


def after(text: str, operation: str, **given: object) -> str:
    return changed(text, Change(operation=operation, **given))  # pyright: ignore[reportArgumentType]


def refusal(text: str, operation: str, **given: object) -> tuple[str, str]:
    with pytest.raises(RefusedChangeError) as refused:
        after(text, operation, **given)
    return refused.value.status, str(refused.value)


class TestWhatTheyDo:
    def test_read_changes_nothing(self) -> None:
        assert after(TEXT, "read") == TEXT

    def test_overwrite(self) -> None:
        assert after(TEXT, "overwrite", content="new") == "new"
        assert after(TEXT, "overwrite", content="") == ""

    def test_append_and_prepend(self) -> None:
        assert after("old", "append", content="new") == "old\n\nnew"
        assert after("old", "prepend", content="new") == "new\n\nold"

    def test_append_to_nothing_is_overwrite(self) -> None:
        assert after("", "append", content="new\n") == "new\n"

    def test_with_a_separator(self) -> None:
        assert after("Old notes. ", "append", content="New.", separator="") == "Old notes. New."
        assert after("b", "prepend", content="a", separator=" - ") == "a - b"

    def test_sections(self) -> None:
        assert after(TEXT, "replace_section_by_header", section_header="Likes > Food", content="dates") == (
            TEXT.replace("figs", "dates")
        )
        assert after(TEXT, "delete_section_by_header", section_header="Dislikes") == "# Likes\ntea\n\n## Food\nfigs\n"

    def test_a_missing_section_is_made_when_asked_for(self) -> None:
        made = after(TEXT, "replace_section_by_header", section_header="Travel", content="sea", create_if_missing=True)
        assert made == TEXT + "\n## Travel\nsea"

    def test_a_section_that_is_there_is_not_made_again(self) -> None:
        text = after(TEXT, "replace_section_by_header", section_header="Likes", content="x", create_if_missing=True)
        assert text.count("# Likes") == 1

    def test_delete_all_notes(self) -> None:
        assert after(TEXT, "delete_all_notes") == ""
        assert after("", "delete_all_notes") == ""


class TestWhatTheyRefuse:
    def test_an_unknown_operation(self) -> None:
        status, problem = refusal(TEXT, "erase")
        assert status == "invalid"
        assert all(operation in problem for operation in OPERATIONS)

    @pytest.mark.parametrize("operation", ["overwrite", "append", "prepend", "replace_section_by_header"])
    def test_missing_content(self, operation: str) -> None:
        status, problem = refusal(TEXT, operation, section_header="Likes")
        assert (status, problem.split(":")[0]) == ("invalid", "content")

    @pytest.mark.parametrize("operation", ["append", "prepend"])
    def test_blank_content(self, operation: str) -> None:
        assert refusal(TEXT, operation, content=" \n")[1].startswith("content: is blank")

    @each_row("operation", ["replace_section_by_header", "delete_section_by_header"])
    @each_row("header", [None, "", " \n"])
    def test_missing_header(self, operation: str, header: str | None) -> None:
        status, problem = refusal(TEXT, operation, content="x", section_header=header)
        assert (status, problem.split(":")[0]) == ("invalid", "section_header")

    def test_a_header_that_is_not_there_names_those_that_are(self) -> None:
        status, problem = refusal(TEXT, "delete_section_by_header", section_header="Travel")
        assert status == "not_found"
        assert problem.endswith("there are: Likes; Likes > Food; Dislikes; Dislikes > Food")
        assert refusal("", "delete_section_by_header", section_header="Travel")[0] == "not_found"

    def test_a_header_of_several(self) -> None:
        status, problem = refusal(TEXT, "delete_section_by_header", section_header="Food")
        assert status == "ambiguous"
        assert problem.endswith("name one of: Likes > Food; Dislikes > Food")

    @each_row("text", ["a\0b", "a\ud800b"])
    @each_row("field", ["content", "section_header", "separator"])
    def test_what_no_store_can_keep(self, text: str, field: str) -> None:
        status, problem = refusal(TEXT, "append", **({"content": "x"} | {field: text}))
        assert (status, problem.split(":")[0]) == ("invalid", field)

    def test_what_would_swallow_other_sections(self) -> None:
        assert refusal(TEXT, "prepend", content="```")[0] == "invalid"
        assert refusal(TEXT, "replace_section_by_header", section_header="Likes", content="~~~\nx")[0] == "invalid"
