"""Relative times in a text ("last Tuesday") as the dates that they meant on the day when it was said. Pure. English."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from reactor_memory.text.moments import moment_of
from reactor_memory.text.words import MONTHS

MOST_DATES = 2
"""So many times of one text get their date."""

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DAYS_AWAY = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_DAYS_OF = {"day": 1, "week": 7}
_RELATIVE = re.compile(
    r"\b(?:(?P<near>yesterday|today|tonight|tomorrow|last night)"
    rf"|(?P<which>last|this past|next|this coming) (?P<day>{'|'.join(_WEEKDAYS)})"
    r"|(?P<side>last|next) (?P<span>week|weekend|month|year)"
    rf"|(?<![.,])(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)}) (?P<unit>day|week|month|year)s? ago)\b(?!['’])",
    re.IGNORECASE,
)
_DATED = re.compile(rf"[\s,(]{{0,3}}(?:the )?(?:\d|(?:on )?(?:{'|'.join(MONTHS)})\b)", re.IGNORECASE)
_SAID_ON = re.compile(r"\.said_(\d{1,2})_([a-z]{3,9})_(\d{4})(?:\.\d+)?$")


class Place(NamedTuple):
    """Where a relative time ends in a text, and the date that it meant."""

    stop: int
    date: str


def relative_times(text: str, said_on: date) -> list[Place]:
    """The first relative times of a text that do not have their date beside them."""
    found: list[Place] = []
    for match in _RELATIVE.finditer(text):
        meant = None if _DATED.match(text, match.end()) else _meant(match, said_on)
        if meant is not None:
            found.append(Place(match.end(), meant))
    return found[:MOST_DATES]


def day_of(microseconds: int | None) -> date | None:
    """The day, UTC, of a time in microseconds since the epoch; None if there is none, or no calendar has it."""
    moment = None if microseconds is None else moment_of(microseconds)
    return moment and moment.date()


def key_said_on(key: str, day: date) -> str:
    """`key` of what was said on that day."""
    return f"{key}.said_{day.day}_{MONTHS[day.month - 1]}_{day.year}"


def said_on(key: str) -> date | None:
    """The day in a key that `key_said_on` made."""
    found = _SAID_ON.search(key)
    if found is None or found.group(2) not in MONTHS:
        return None
    try:
        return date(int(found.group(3)), MONTHS.index(found.group(2)) + 1, int(found.group(1)))
    except ValueError:
        return None


def _meant(match: re.Match[str], day: date) -> str | None:
    told = {name: value.lower() for name, value in match.groupdict().items() if value}
    try:
        if "near" in told:
            return _day(day + timedelta(days=_DAYS_AWAY[told["near"]]))
        if "day" in told:
            return _day(_weekday(day, _WEEKDAYS.index(told["day"]), forward=told["which"] in ("next", "this coming")))
        if "span" in told:
            return _span(day, told["span"], 1 if told["side"] == "next" else -1)
        return _ago(day, told["count"], told["unit"])
    except (OverflowError, ValueError):
        return None


def _weekday(day: date, weekday: int, *, forward: bool) -> date:
    """The nearest such day after or before this one."""
    away = (weekday - day.weekday()) % 7 or 7 if forward else -((day.weekday() - weekday) % 7 or 7)
    return day + timedelta(days=away)


def _span(day: date, span: str, side: int) -> str:
    monday = day - timedelta(days=day.weekday()) + timedelta(days=7 * side)
    if span == "week":
        return f"week of {_day(monday)}"
    if span == "weekend":
        coming = side > 0
        return _day(_weekday(day, 5, forward=coming))
    return _month(day, side) if span == "month" else str(day.year + side)


def _ago(day: date, count: str, unit: str) -> str:
    number = _NUMBERS.index(count) + 1 if count in _NUMBERS else int(count)
    if unit in _DAYS_OF:
        return _day(day - timedelta(days=number * _DAYS_OF[unit]))
    return _month(day, -number) if unit == "month" else str(day.year - number)


def _day(day: date) -> str:
    return f"{day.day} {_name(day)} {day.year}"


def _month(day: date, months: int) -> str:
    index = day.year * 12 + day.month - 1 + months
    return f"{MONTHS[index % 12].capitalize()} {index // 12}"


def _name(day: date) -> str:
    return MONTHS[day.month - 1].capitalize()
