"""Bounds on the numbers of an evaluation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from reactor_memory.evaluation.requirements import MEASURES, Requirement
from reactor_memory.evaluation.session_replay import Outcome
from tests.scenes.tables import each_row


def row(**measures: Any) -> Any:
    return SimpleNamespace(**{"budget": 1000, "survival": 0.5, "violations": 0, **measures})


@each_row(
    ("text", "survival", "is_met"),
    [
        ("survival>=0.5", 0.5, True),
        ("survival>=0.51", 0.5, False),
        ("survival <= 0.5", 0.5, True),
        ("survival<=0.4", 0.5, False),
        ("survival@1000>=0.5", 0.5, True),
        ("survival>=0", None, False),
        ("survival<=1", None, False),
    ],
)
def test_a_bound_is_kept_or_not(text: str, survival: float | None, is_met: bool) -> None:
    assert Requirement.parse(text).is_met(row(survival=survival)) is is_met


def test_a_bound_concerns_its_budget() -> None:
    every, one = Requirement.parse("violations<=0"), Requirement.parse("violations@2000<=0")
    assert [every.concerns(row(budget=budget)) for budget in (1000, 2000, None)] == [True, True, True]
    assert [one.concerns(row(budget=budget)) for budget in (1000, 2000, None)] == [False, True, False]


@each_row(
    "text", ["", "survival", "survival=1", "survival>0.5", "survival@x>=1", "colour>=1", "survival>=-1", "survival>=1x"]
)
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match="write MEASURE>=NUMBER or MEASURE@BUDGET<=NUMBER; measures: attributable, survival, "
    ):
        Requirement.parse(text)


def test_a_bound_reads_as_it_was_written() -> None:
    assert str(Requirement.parse("survival@1000 >=0.980")) == "survival@1000 >= 0.98"
    assert str(Requirement.parse("violations<=0")) == "violations <= 0"


def test_every_measure_is_one_of_the_results() -> None:
    assert set(MEASURES) <= {field.name for field in msgspec.structs.fields(Outcome)}
