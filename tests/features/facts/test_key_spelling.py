"""Names of other scripts in keys."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.evidence import clean_key
from reactor_memory.features.facts.key_spelling import read_again, spelled


@pytest.mark.parametrize("name", ["价格", "dopłata", "कीमत", "가격", "цена", "السعر", "naïve", "a2é9"])
def test_a_name_is_read_as_it_was_written(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_]+", spelled(name))
    assert read_again(spelled(name)) == name
    assert read_again(clean_key(f"reply.field.2.{name}").rpartition(".")[2]) == name


@pytest.mark.parametrize("name", ["price", "xn_", "xn_!_n", "note", "k_12ab34cd", "xn_99999999999_n"])
def test_what_was_not_spelled_stays_as_it_is(name: str) -> None:
    assert read_again(name) == name


def test_signs_between_words_are_underscores() -> None:
    assert read_again(spelled("Prix de l'été")) == "prix_de_l_été"


def test_a_name_that_folds_to_ascii_is_no_spelling() -> None:
    assert spelled("\u017f") == "s"


@given(st.text(alphabet=st.characters(categories=["Ll", "Lo", "Nd"]), min_size=1, max_size=8))
def test_names_stay_apart_and_whole(name: str) -> None:
    told = unicodedata.normalize("NFC", name.casefold())
    assert name.isascii() or read_again(clean_key(spelled(name))) == told


def test_a_name_too_long_for_a_key_is_no_label() -> None:
    assert "xn_" not in clean_key("价格" * 30)
