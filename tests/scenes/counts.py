"""What a proof tried, so that the end of a run can say how much that was."""

from __future__ import annotations

from collections import Counter

counts: Counter[str] = Counter()
"""Since the last test ended, in the words of whoever counts."""


def count(what: str, number: int = 1) -> None:
    counts[what] += number
