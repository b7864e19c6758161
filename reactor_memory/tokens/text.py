"""Text made safe for tokenizers that are written for well-behaved text."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_SPACE = 100_000
"""Characters of white space in a row that every tokenizer gets through."""

_LONG_SPACE = re.compile(rf"(?<!\s)\s{{{LONGEST_SPACE},}}+")
"""Tried only where white space begins: counting the rest of a run from each of its characters took seconds."""


def digestible(text: str) -> Iterator[str]:
    """`text` in pieces without a longer run of white space than `LONGEST_SPACE`; nearly always one piece.

    tiktoken aborts with a panic that is no `Exception` after a million blanks in a row, which one pasted file is
    enough for. Cutting inside such a run changes the sum of the counts by a few tokens per cut.
    """
    start = 0
    if len(text) > LONGEST_SPACE:
        for run in _LONG_SPACE.finditer(text):
            for end in range(run.start() + LONGEST_SPACE, run.end() + 1, LONGEST_SPACE):
                yield text[start:end]
                start = end
    yield text[start:]


def without_lone_surrogates(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, and pairs of them joined: as tiktoken reads it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
