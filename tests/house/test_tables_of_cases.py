"""A table as one test runs every row, and fails for each that fails."""

from typing import Any

import pytest

from tests.scenes.tables import each_row


def failures_of(test: Any) -> list[str]:
    with pytest.raises(BaseExceptionGroup) as caught:
        test()
    return [note for failure in caught.value.exceptions for note in failure.__notes__]


def test_every_row_runs_and_those_that_fail_are_named() -> None:
    seen = []

    @each_row("number, text", [(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    def test(number: int, text: str) -> None:
        seen.append(text)
        assert number != 2
        with pytest.raises(ZeroDivisionError):
            1 / (number - 3)

    rows = ({"number": 1, "text": "a"}, {"number": 2, "text": "b"}, {"number": 4, "text": "d"})
    assert failures_of(test) == [f"row: {row}" for row in rows]
    assert seen == ["a", "b", "c", "d"]


def test_tables_above_each_other_are_multiplied() -> None:
    seen = []

    @each_row("one", [1, 2])
    @each_row("other", [(3,), (4,)])
    def test(one: int, other: tuple[int]) -> None:
        seen.append((one, *other))

    test()
    assert seen == [(1, 3), (1, 4), (2, 3), (2, 4)]


@pytest.mark.anyio
@each_row("number", [1, 2])
async def test_what_waits_may_have_rows_and_fixtures(number: int, tmp_path: Any) -> None:
    assert number in (1, 2)
    assert tmp_path.exists()


@pytest.mark.anyio
async def test_what_waits_names_its_rows_too() -> None:
    @each_row("number", [1, 2])
    async def test(number: int) -> None:
        assert number == 1

    with pytest.raises(BaseExceptionGroup) as caught:
        await test()
    assert [failure.__notes__ for failure in caught.value.exceptions] == [["row: {'number': 2}"]]


def test_no_rows_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="no rows"):
        each_row("text", [])
