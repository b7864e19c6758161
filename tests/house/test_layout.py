"""Tests lie where the package has what they test, and their names can be read at a glance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.picture import CHECKOUT, PACKAGE

TESTS = CHECKOUT / "tests"

OF_THE_WHOLE = {"acceptance", "conformance", "docs", "house", "installed", "llm", "proofs"}
BESIDE_THE_PACKAGE = {"benchmarks", "doubles", "sample_plugin", "scenes"}

OF_AN_ADAPTER = {"core", "story"}
"""Below tests/adapters: with no framework at all, and with one after another."""

MOST_WORDS = 10

_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def folders() -> Iterator[Path]:
    """Of tests of a part of the package, relative to `tests`."""
    for path in sorted({path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}):
        if path.parts and path.parts[0] not in OF_THE_WHOLE | BESIDE_THE_PACKAGE:
            yield path


def is_of_the_package(folder: Path) -> bool:
    """A part is a folder, or a module that has several files of tests."""
    if folder.parts[0] == "adapters" and folder.name in OF_AN_ADAPTER:
        return True
    return (PACKAGE / folder / "__init__.py").exists() or (PACKAGE / folder).with_suffix(".py").exists()


def words_of(name: str) -> list[str]:
    return [word for word in name.split("_") if word][1:]


def names() -> Iterator[tuple[Path, str]]:
    for path in (*TESTS.rglob("*.py"), *(PACKAGE / "testing").rglob("*.py")):
        for name in _TEST.findall(path.read_text(encoding="utf-8")):
            yield path.relative_to(CHECKOUT), name


def test_a_folder_of_tests_is_a_folder_of_the_package() -> None:
    found = list(folders())
    assert Path("features/facts") in found
    assert [str(folder) for folder in found if not is_of_the_package(folder)] == []


def test_a_name_has_ten_words_at_most() -> None:
    found = list(names())
    assert len(found) > 3000
    assert [(str(path), name) for path, name in found if len(words_of(name)) > MOST_WORDS] == []
