"""The lines of a result that say how a call went. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ERROR = re.compile(
    r"\b\w*(?:error|exception|failed|failure|fatal|denied|refused|not found|no such|cannot|conflict)\b(?!\()",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"(?<!\d)\d{1,9} (?:passed|failed|errors?|tests?|files? changed|warnings?|rows?|insertions?)\b"
    r"|\b(?:total|passed|commit|created|wrote|saved|done|accuracy|score|loss|result)\b",
    re.IGNORECASE,
)
_METRIC = re.compile(r"[\w %./-]{2,40}[:=] ?-?\d[\d.,]{0,20} ?\S{0,6}$")


def line_worth(line: str, place: int, count: int) -> float:
    """What one of `count` lines is worth: errors most, then sums, then measures, the last and the first one."""
    worth = 1.0 * (place + 1 == count) + 0.5 * (place == 0)
    worth += 3.0 * (_ERROR.search(line) is not None) + 2.0 * (_SUMMARY.search(line) is not None)
    return worth + 1.5 * (_METRIC.match(line) is not None) + place / count / 100


def fitting_lines(lines: Sequence[str], most: int) -> list[int]:
    """The places of the lines that are worth most and have at most so many characters; at least one."""
    by_worth = sorted(range(len(lines)), key=lambda place: -line_worth(lines[place], place, len(lines)))
    kept: list[int] = []
    for place in by_worth:
        if not kept or len(lines[place]) <= most:
            kept.append(place)
            most -= len(lines[place])
    return sorted(kept)
