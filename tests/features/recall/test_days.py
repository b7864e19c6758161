"""The day of a message is found by the words of a question, and by no others."""

from __future__ import annotations

import pytest

from reactor_memory.features.recall.days import day_words, named_days

MAY_8_2023 = 1_683_550_000_000_000


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 8 May", "may 8"),
        ("on May 8th, 2023", "may 8 2023"),
        ("since 2023-05-08", "2023 may 8"),
        ("the 3rd of March", "march 3"),
        ("in may?", "may"),
        ("May, 2023", "may 2023"),
        ("Sep. 2019", "september 2019"),
        ("2023-13-08", "2023"),
        ("may I go", ""),
        ("they march", ""),
        ("the mayor decided in 20 days", ""),
        ("order 2023456, room 1.1999, 12/05", ""),
    ],
)
def test_days_of_a_question(text: str, days: str) -> None:
    assert named_days(text) == " ".join(f"saidon{word}" for word in days.split())


def test_the_day_of_a_message() -> None:
    assert day_words(MAY_8_2023) == named_days("2023-05-08") == "saidon2023 saidonmay saidon8"
    assert day_words(None) == day_words(2**70) == ""
