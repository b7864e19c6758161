"""The names, paths and numbers of a text: what a later step of a turn may need of an earlier result. Pure."""

from __future__ import annotations

import re

MOST_CHARACTERS = 60_000
"""So much of the beginning and of the end of a text is read: the middle of a megabyte is not shown either."""

LONGEST_VALUE = 120
"""Longer runs are encoded data, no names."""

_EDGES = ".:-/#~\\@+$%"
_VALUE = re.compile(
    r"(?<![\w./\\:@#~+$%-])(?=[\w./\\:@#~+$%-]*(?:\d|[a-z][A-Z]|\w[_/\\@.:]\w)|[A-Z]{3})[\w./\\:@#~+$%-]{2,}"
)


def values_of(text: str) -> list[str]:
    """The values in their order, each once: what has a digit, an inner sign of a name or a path, or capitals."""
    if len(text) > 2 * MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}\n{text[-MOST_CHARACTERS:]}"
    found = (each.strip(_EDGES) for each in _VALUE.findall(text))
    return list(dict.fromkeys([each for each in found if 2 <= len(each) <= LONGEST_VALUE]))
