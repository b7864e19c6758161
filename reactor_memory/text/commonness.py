"""How common a word is in all the text that tokenizers were made from, for every script. Pure.

Merges of a byte pair encoding are learned in the order of frequency, so the rank of a word that is one token tells how
common it is. ``commonness.bin`` holds the words of the encoding ``o200k_base`` as numbers: 28 bits of a hash, then 4 of
the level of the rank. It is 0.3 MB, read once, and independent of the tokenizer that a session counts with.
"""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from reactor_memory.text.caches import memo
from reactor_memory.text.stems import unaccented

LEVELS = 16
COMMONEST, RAREST = 200, 200_000
"""Ranks of the level 0 and of the last one; a word that is no token at all is beyond it."""

_FREE = 0x0E00
"""From this letter on scripts may be written without spaces: their tokens count without one before them."""


@memo(maxsize=32_768)
def rarity(word: str) -> float:
    """From 0 for the commonest words to 1 for words that are no token. `word` in lower case, or a pair of characters of
    a script without spaces.
    """
    packed = _number(word)
    table = _table()
    at = bisect_left(table, packed)
    return (table[at] & LEVELS - 1) / LEVELS if at < len(table) and table[at] >> 4 == packed >> 4 else 1.0


def packed_words(ranks: Mapping[bytes, int]) -> bytes:
    """The table for the ranks of an encoding."""
    levels: dict[int, int] = {}
    for word, rank in _words(ranks):
        number = _number(word)
        levels[number] = min(levels.get(number, LEVELS), _level(rank))
    table = array("I", sorted(number | level for number, level in levels.items() if level < LEVELS))
    if sys.byteorder == "big":
        table.byteswap()
    return table.tobytes()


def _words(ranks: Mapping[bytes, int]) -> Iterable[tuple[str, int]]:
    for token, rank in ranks.items():
        try:
            text = token.decode()
        except UnicodeDecodeError:
            continue
        word = text.strip()
        if len(word) > 1 and word.isalpha() and (text[0] == " " or word[0] >= chr(_FREE)):
            yield word.casefold(), rank


def _level(rank: int) -> int:
    scale = math.log(max(rank, COMMONEST) / COMMONEST) / math.log(RAREST / COMMONEST)
    return min(LEVELS - 1, int(scale * LEVELS))


def _number(word: str) -> int:
    return zlib.crc32(unaccented(word).encode(errors="replace")) & ~(LEVELS - 1)


@cache
def _table() -> array[int]:
    table = array("I", files("reactor_memory.text").joinpath("commonness.bin").read_bytes())
    if sys.byteorder == "big":
        table.byteswap()
    return table
