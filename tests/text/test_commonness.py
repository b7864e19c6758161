"""How common words are: in every script, and the same as the encoding that the table was made of."""

from __future__ import annotations

import gzip
from importlib.resources import files

import pytest

from reactor_memory.text.commonness import packed_words, rarity
from reactor_memory.tokens import tiktoken_counter


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
