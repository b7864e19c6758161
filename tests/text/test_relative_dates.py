"""Relative times and the dates that they meant."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.relative_dates import day_of, key_said_on, relative_times, said_on
from tests.scenes.tables import each_row

THURSDAY = date(2023, 7, 20)


@each_row(
    ("text", "dated"),
    [
        ("we met last Tuesday", "we met last Tuesday (18 July 2023)"),
        ("we meet next Thursday", "we meet next Thursday (27 July 2023)"),
        ("Yesterday I ran", "Yesterday (19 July 2023) I ran"),
        ("a race tomorrow and tonight", "a race tomorrow (21 July 2023) and tonight (20 July 2023)"),
        ("we moved last week", "we moved last week (week of 10 July 2023)"),
        ("we hike next weekend", "we hike next weekend (22 July 2023)"),
        ("it began last month", "it began last month (June 2023)"),
        ("we wed two years ago", "we wed two years ago (2021)"),
        ("I quit 3 weeks ago", "I quit 3 weeks ago (29 June 2023)"),
        ("it was eight months ago", "it was eight months ago (November 2022)"),
        ("last Tuesday, July 18, it rained", "last Tuesday, July 18, it rained"),
        ("yesterday's soup", "yesterday's soup"),
        ("at last we met", "at last we met"),
    ],
)
def test_a_relative_time_gets_the_date_that_it_meant(text: str, dated: str) -> None:
    for place in reversed(relative_times(text, THURSDAY)):
        text = f"{text[: place.stop]} ({place.date}){text[place.stop :]}"
    assert text == dated


@pytest.mark.parametrize("text", ["99 years ago", "2 years ago", "yesterday"])
def test_a_date_before_the_calendar_is_none(text: str) -> None:
    assert relative_times(text, date.min) == [] or "-" in relative_times(text, date.min)[0].date


@given(st.dates())
def test_a_key_keeps_the_day_on_which_something_was_said(day: date) -> None:
    key = key_said_on("date", day)
    assert said_on(key) == (day if day.year >= 1000 else None)
    assert said_on(f"{key}.2") == said_on(key)


@pytest.mark.parametrize("key", ["date", "date.2", "date.said_31_february_2023", "date.said_1_mars_2023"])
def test_other_keys_keep_none(key: str) -> None:
    assert said_on(key) is None


def test_a_day_is_that_of_utc() -> None:
    assert day_of(1_689_811_199_000_000) == date(2023, 7, 19)
    assert day_of(1_689_811_200_000_000) == THURSDAY
