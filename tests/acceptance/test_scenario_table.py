"""The table of scenarios in `README.md` claims nothing that is not there."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from inspect import getmembers, isfunction
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.scenes.tables import each_row

TABLE = Path(__file__).with_name("README.md")
OURS = ("acceptance/test_origin_scenarios.py", "acceptance/test_origin_under_load.py")
NO_TEST = "—"
COLUMNS = 3


class Row(NamedTuple):
    """A scenario, the text that names its tests, and what is different."""

    scenario: str
    shown_by: str
    remark: str

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.shown_by)


def lines() -> list[str]:
    found = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [line for line in found if not line.startswith(("| given / when / then |", "|---|"))]


def rows() -> list[Row]:
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines()]


def names() -> list[str]:
    return sorted({name for row in rows() for name in row.tests})


def function_of(name: str) -> object:
    """The test that pytest runs under this name, inherited rules of a suite included."""
    path, *parts = name.split("::")
    module = import_module(".".join(("tests", *Path(path).with_suffix("").parts)))
    return reduce(getattr, parts, module)


def test_every_row_has_its_columns() -> None:
    assert len(lines()) > 150
    assert [line for line in lines() if line.count("|") != COLUMNS + 1] == []


def test_every_row_names_test_or_says_why_there_is_none() -> None:
    for row in rows():
        assert row.scenario
        assert (row.shown_by == NO_TEST) == (row.tests == []), row
        assert row.tests or row.remark.endswith("."), row


@pytest.mark.slow  # it imports half of the tests once more
@each_row("name", names())
def test_every_named_test_exists(name: str) -> None:
    assert name.rpartition("::")[2].startswith("test_")
    assert isfunction(function_of(name))


@pytest.mark.slow
def test_tests_that_remarks_name_stand_beside_those_of_their_row() -> None:
    for row in rows():
        for name in re.findall(r"`(test_\w+)`", row.remark):
            assert any(isfunction(function_of(f"{test.rpartition('::')[0]}::{name}")) for test in row.tests), row


@pytest.mark.parametrize("path", OURS)
def test_every_ported_scenario_is_in_the_table(path: str) -> None:
    module = import_module(".".join(("tests", *Path(path).with_suffix("").parts)))
    written = {f"{path}::{name}" for name, _ in getmembers(module, isfunction) if name.startswith("test_")}
    assert written
    assert written - set(names()) == set()
