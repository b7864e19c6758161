"""The day on which something was said, as words of an index.

They are none of the words of a text: a message of 2023 is no message about 2023, and names nothing. Pure.
"""

from __future__ import annotations

import re

from reactor_memory.text.relative_dates import day_of

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MARK = "saidon"
"""What such a word begins with, as no other does."""

_VERBS = ("may", "march")
"""Months that are also verbs: they count beside a number, or behind a word that asks for a time."""

_ASKED = re.compile(
    r"(?<![\w.])(?:(?P<year>(?:19|20)\d\d)(?:-(?P<number>\d\d)(?:-(?P<last>\d\d))?)?(?!\w)"
    r"|(?P<time>\b(?:in|of|on|during|since|until|till|before|after|by|last|this|next|early|late|mid)[\s-]+)?"
    r"(?:(?P<before>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"(?P<month>{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?(?!\w))?(?P<follows>,?\s+(?=(?:19|20)\d\d\b))?)",
    re.IGNORECASE,
)


def day_words(at: int | None) -> str:
    """The day of a moment (microseconds UTC), of which a message without one has none."""
    day = day_of(at)
    return f"{MARK}{day.year} {MARK}{MONTHS[day.month - 1]} {MARK}{day.day}" if day else ""


def named_days(text: str) -> str:
    """The words of the years, months and days that `text` names: ``8 May 2023``, ``May 8th``, ``2023-05-08``."""
    found: dict[str, None] = {}
    for match in _ASKED.finditer(text):
        found |= dict.fromkeys(MARK + word for word in _dates_of(match))
    return " ".join(found)


def _dates_of(match: re.Match[str]) -> list[str]:
    if match["month"]:
        month = next(name for name in MONTHS if name.startswith(match["month"][:3].casefold()))
        days = [str(int(day)) for day in (match["before"], match["after"]) if day]
        is_month = month not in _VERBS or days or match["time"] or match["follows"]
        return [month, *days[:1]] if is_month else []
    number = int(match["number"] or 0)
    named = [MONTHS[number - 1]] if 1 <= number <= len(MONTHS) else []
    return [match["year"], *named, *([str(int(match["last"]))] if named and match["last"] else [])]
