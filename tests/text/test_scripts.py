"""Scripts without spaces between words stand in one table, which every module that asks for them takes."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import reactor_memory
from reactor_memory.text.borders import joins
from reactor_memory.text.scripts import HAN, HANGUL, KANA, SOUTHEAST, UNSPACED
from tests.scenes.tables import each_row

PACKAGE = Path(reactor_memory.__file__).parent
USERS = {
    "text.borders": UNSPACED,
    "text.analyzer": f"{HAN}{KANA}{SOUTHEAST}",
    "features.facts.evidence": UNSPACED,
    "features.facts.verification.claim_words": UNSPACED,
    "features.facts.quoting.series": UNSPACED,
    "features.facts.quoting.language_packs": UNSPACED,
}
SEVERAL = re.compile(r"\\u0e00-\\u0e|\\u1780-\\u17|\\u3400-\\u9fff.*\\u30|\\u30.*\\u3400-\\u9fff")
"""How ranges of several of these scripts begin where they are written down."""


@each_row("sign", list("一々𠀀ひカｶกລមမ"))
def test_signs_of_each_script_stand_by_themselves(sign: str) -> None:
    assert re.fullmatch(f"[{UNSPACED}]", sign)
    assert not joins(sign, sign)


@each_row("sign", list("aéжעقनি한ᄀ1 "))
def test_other_signs_are_of_no_such_script(sign: str) -> None:
    assert not re.fullmatch(f"[{UNSPACED}]", sign)


def test_korean_is_apart() -> None:
    assert re.fullmatch(f"[{HANGUL}]+", "한국ᄀ")


@pytest.mark.parametrize("name", USERS)
def test_every_user_takes_the_table(name: str) -> None:
    module = import_module(f"reactor_memory.{name}")
    assert any(isinstance(each, re.Pattern) and USERS[name] in str(each.pattern) for each in vars(module).values())


def test_no_other_module_writes_them_down() -> None:
    told_apart = {"text/scripts.py", "text/languages.py", "features/facts/quoting/measures.py", "text/analyzer.py"}
    """What tells one of these scripts from another, and the marks that `analyzer` takes for letters."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(SEVERAL.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert found <= told_apart
