"""How common a word is in all the text that tokenizers were made from, for every script. Pure.

Merges of a byte pair encoding are learned in the order of frequency, so the rank of a word that is one token tells how
common it is. ``commonness.bin`` holds the words of the encoding ``o200k_base`` as numbers: 28 bits of a hash, then 4 of
the level of the rank. It is 0.3 MB, read once, and independent of the tokenizer that a session counts with.
Its test makes it anew.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from functools import cache
from importlib.resources import files

from reactor_memory.text.caches import memo
from reactor_memory.text.stems import unaccented

LEVELS = 16


@memo(maxsize=32_768)
def rarity(word: str) -> float:
    """From 0 for the commonest words to 1 for words that are no token. `word` in lower case, or a pair of characters of
    a script without spaces.
    """
    packed = number_of(word)
    table = _table()
    at = bisect_left(table, packed)
    return (table[at] & LEVELS - 1) / LEVELS if at < len(table) and table[at] >> 4 == packed >> 4 else 1.0


def number_of(word: str) -> int:
    """Where a word stands in the table, without its level."""
    return zlib.crc32(unaccented(word).encode(errors="replace")) & ~(LEVELS - 1)


@cache
def _table() -> array[int]:
    table = array("I", files("reactor_memory.text").joinpath("commonness.bin").read_bytes())
    if sys.byteorder == "big":
        table.byteswap()
    return table
