"""Trimming by tokens for libraries that have none: what a careful user of them writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

M = TypeVar("M")

OVERHEAD = 4
"""Tokens that a provider adds for each message; the default of ours."""

count_tokens = TiktokenCounter("o200k_base").count
"""tiktoken with ranks that are installed, so that nobody reaches for the network. All contenders count with it."""


def newest_that_fit(
    messages: Sequence[M], text_of: Callable[[M], str], budget: int, count: Callable[[str], int] = count_tokens
) -> Sequence[M]:
    """The longest end of `messages` within `budget` tokens. Counts no message beyond the first that does not fit."""
    start, left = len(messages), budget
    while start > 0:
        left -= count(text_of(messages[start - 1])) + OVERHEAD
        if left < 0:
            break
        start -= 1
    return messages[start:]
