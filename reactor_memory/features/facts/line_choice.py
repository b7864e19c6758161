"""Which lines of memory are shown in how many tokens. Pure.

The higher a line ranks, the longer it stays: by its value, and of equal value the newer line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from reactor_memory.models.block_lines import BlockLine

Rank: TypeAlias = tuple[float, int]
"""The value of a line and the newest message that it was made from."""

LOWEST: Rank = (0.0, 0)


def rank(line: BlockLine) -> Rank:
    return line.value, line.source_seqs[-1] if line.source_seqs else 0


def newest_lines(lines: Sequence[BlockLine], most: int) -> Sequence[BlockLine]:
    """The last lines that take no more than `most` tokens together."""
    start = len(lines)
    while start and lines[start - 1].tokens <= most:
        start -= 1
        most -= lines[start].tokens
    return lines[start:]


def floor_within(lines: Sequence[BlockLine], most: int) -> Rank:
    """The rank from which on lines take no more than `most` tokens. Nested: what fewer tokens show, more tokens show,
    too.
    """
    used = 0
    for line in sorted(lines, key=rank, reverse=True):
        used += line.tokens
        if used > most:
            value, seq = rank(line)
            return max(LOWEST, (value, seq + 1))
    return LOWEST
