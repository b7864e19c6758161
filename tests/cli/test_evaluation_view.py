"""The table of an evaluation."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from reactor_memory.cli.eval_run import Result
from reactor_memory.cli.eval_view import cost, evaluation_view, results_json, shortcomings
from reactor_memory.evaluation.requirements import Requirement
from reactor_memory.evaluation.scores import Scores
from tests.cli.results import result
from tests.scenes.tables import each_row

RESULT = result()


def shown(*results: Result) -> str:
    page = io.StringIO()
    Console(file=page, width=100, markup=False).print(evaluation_view(results))
    return page.getvalue()


def test_a_row_holds_the_numbers() -> None:
    row = next(line for line in shown(RESULT).splitlines() if line.startswith("hierarchical"))
    assert row.split() == [
        "hierarchical",
        "1,000",
        "0.977",
        "0.988",
        "1.000",
        "-",
        "0",
        "0.0123",
        "1.23",
        "5.68",
    ]


def test_loads_that_took_seconds_break_no_row() -> None:
    page = shown(result(attributable=0.977, probes=2_814, violations=12, cost=12.34, p50_us=987_654, p99_us=12_345_678))
    row = next(line for line in page.splitlines() if line.startswith("hierarchical"))
    assert row.split()[-2:] == ["988", "12,346"]


def test_small_costs_break_no_name() -> None:
    page = shown(result(attributable=0.977, violations=12, cost=0.000467, p50_us=987_654, p99_us=12_345_678))
    assert page.count("hierarchical") == 2


def test_how_it_reads_is_a_table_of_its_own() -> None:
    page = shown(result(legible=0.9, fill=0.8, junk=0.01))
    rows = [line.split() for line in page.splitlines() if line.startswith("hierarchical")]
    assert rows[1] == ["hierarchical", "1,000", "81", "0.900", "0.800", "-", "0.010", "0.500"]


def test_each_way_of_replaying_a_file_has_its_table() -> None:
    page = shown(RESULT, result(variant="text-only"))
    assert "f.jsonl · tools · questions off" in page
    assert "f.jsonl · text-only · questions off" in page
    assert page.count("attributable") == 2


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("problems", ("order: wrong",), "broken: order: wrong"),
        ("behind", 3, "3 contexts had a memory that was behind: summarizing failed"),
    ],
)
def test_what_went_wrong_is_said(field: str, value: object, line: str) -> None:
    assert line not in shown(RESULT)
    assert line in shown(result(**{field: value}))


def test_two_replays_that_were_the_same_are_told() -> None:
    line = "replayed twice, once with delays: the same contexts"
    assert line in shown(result(deterministic=True))
    assert line not in shown(result(deterministic=True), result(deterministic=False))
    assert line not in shown(RESULT)


def test_programs_get_every_digit() -> None:
    (row,) = json.loads(results_json([RESULT]))["results"]
    assert row["survival"] == 0.98765
    assert row["prefix_reuse"] is None
    assert row["deterministic"] is None


@each_row(
    ("value", "text"), [(0, "0.00"), (0.000123456, "0.000123"), (0.5, "0.500"), (9.876, "9.88"), (1234.5, "1,234.50")]
)
def test_costs_have_three_digits_that_say_something(value: float, text: str) -> None:
    assert cost(value) == text


def test_rows_below_a_bound_and_unequal_replays_are_named() -> None:
    rows = [result(deterministic=True), result(budget=None, strategy="full-context", deterministic=False)]
    bounds = ["attributable>=0.9", "survival@1000>=0.99", "violations@7<=0", "prefix_reuse<=1"]
    assert list(shortcomings(rows, map(Requirement.parse, bounds))) == [
        "not deterministic: f.jsonl · tools · questions off · full-context · no budget",
        "required: survival@1000 >= 0.99; f.jsonl · tools · questions off · hierarchical · 1,000 tokens has 0.98765",
        "required: violations@7 <= 0; there is no such row",
        "required: prefix_reuse <= 1; f.jsonl · tools · questions off · hierarchical · 1,000 tokens has None",
        "required: prefix_reuse <= 1; f.jsonl · tools · questions off · full-context · no budget has None",
    ]


def test_each_kind_of_detail_has_its_row() -> None:
    rule = Scores(probes=4, attributable=0.5, survival=0.75, evidence_recall=0.25, any_gold=0.5, all_gold=0.125)
    moved = Scores(probes=9, survival=0.5, corrected=9, stale=2)
    page = shown(result(corrected=9, stale=2, by_kind={"rule": rule, "corrected": moved}))
    rows = [line.split() for line in page.splitlines() if line.startswith("hierarchical")]
    assert rows[2:] == [
        ["hierarchical", "rule", "1,000", "4", "0.500", "0.750", "-", "0.250", "0.500", "0.125"],
        ["hierarchical", "corrected", "1,000", "9", "-", "0.500", "2", "of", "9", "-", "-", "-"],
        ["hierarchical", "all", "1,000", "81", "0.977", "0.988", "2", "of", "9", "-", "-", "-"],
    ]
    assert "kind of detail" not in shown(RESULT)
    evidence = shown(result(evidence_recall=0.5, any_gold=0.75, all_gold=0.25))
    assert ["hierarchical", "all", "1,000", "81", "0.977", "0.988", "-", "0.500", "0.750", "0.250"] in [
        line.split() for line in evidence.splitlines()
    ]
