"""How common words are: in every script, and the same as the encoding that the table was made of."""

from __future__ import annotations

import gzip
import math
import sys
from array import array
from collections.abc import Iterable, Mapping
from importlib.resources import files

import pytest

from reactor_memory.text.commonness import LEVELS, number_of, rarity
from reactor_memory.tokens import tiktoken_counter

COMMONEST, RAREST = 200, 200_000
"""Ranks of the level 0 and of the last one; a word that is no token at all is beyond it."""
FREE = 0x0E00
"""From this letter on scripts may be written without spaces: their tokens count without one before them."""


@pytest.mark.parametrize(
    ("common", "rare"),
    [
        ("time", "hazelnut"),
        ("und", "schornsteinfeger"),
        ("para", "guardabosques"),
        ("что", "аллергия"),
        ("我们", "蚂蟥"),
    ],
)
def test_common_words_are_less_rare(common: str, rare: str) -> None:
    assert rarity(common) < rarity(rare) <= 1.0


def test_a_word_that_is_no_token_is_rarest() -> None:
    assert rarity("kx4471qz") == 1.0


@pytest.mark.slow
def test_the_table_is_the_one_of_the_encoding() -> None:
    packed = tiktoken_counter._packed("o200k_base.tiktoken.gz")
    assert packed is not None
    ranks = tiktoken_counter._parse_ranks(gzip.decompress(packed))
    assert packed_words(ranks) == files("reactor_memory.text").joinpath("commonness.bin").read_bytes()


def packed_words(ranks: Mapping[bytes, int]) -> bytes:
    """The table for the ranks of an encoding."""
    levels: dict[int, int] = {}
    for word, rank in _words(ranks):
        number = number_of(word)
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
        if len(word) > 1 and word.isalpha() and (text[0] == " " or word[0] >= chr(FREE)):
            yield word.casefold(), rank


def _level(rank: int) -> int:
    scale = math.log(max(rank, COMMONEST) / COMMONEST) / math.log(RAREST / COMMONEST)
    return min(LEVELS - 1, int(scale * LEVELS))
