"""The page of an evaluation: complete by itself, harmless whatever the files are called, readable without colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.cli.eval_page import COLUMNS, evaluation_page
from reactor_memory.evaluation.charts import BOTTOM, HEIGHT, LABEL_HEIGHT, Line, apart, line_chart
from reactor_memory.evaluation.markup import Markup, joined, tag
from tests.cli.results import result
from tests.scenes.tables import each_row

HOSTILE = [
    "<script>alert(1)</script>.jsonl",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</title></svg></style><iframe src=//x>",
    "]]>&lt;b&gt;<!--",
    "a\u202eb\x00\x1b[2J\udc80.jsonl",
]
VOID = {"meta"}


class Reader(HTMLParser):
    """The elements of a page, which must be closed in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(**fields: Any) -> str:
    rows = [result(budget=budget, **fields) for budget in (1000, 2000)]
    return evaluation_page([*rows, result(strategy="full-context", budget=None, attributable=1.0, **fields)])


def test_a_page_needs_nothing_else_and_runs_nothing() -> None:
    page = page_of()
    names = {name for name, _ in Reader(page).elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "use", "image", "base", "form"}
    assert not re.search(r"https?:|url\(|@import|\bsrc=|\bhref=|\bon\w+=", page)
    assert "default-src 'none'" in page


@each_row("name", HOSTILE)
@each_row("field", ["file", "strategy", "variant"])
def test_no_name_becomes_markup(field: str, name: str) -> None:
    page = evaluation_page([result(**{field: name}, budget=budget) for budget in (1000, 2000)])
    hostile, plain = Reader(page), Reader(evaluation_page([result(budget=budget) for budget in (1000, 2000)]))
    assert hostile.open == []
    assert [(tag, set(attributes)) for tag, attributes in hostile.elements] == [
        (tag, set(attributes)) for tag, attributes in plain.elements
    ]
    page.encode()
    assert not set(page) & set("\x00\x1b\u202e")


def test_every_file_and_way_has_a_described_plot_and_table() -> None:
    rows = [
        result(file=file, variant=variant, questions=questions)
        for file in ("a", "b")
        for variant in ("tools", "text-only")
        for questions in ("off", "query")
    ]
    page = evaluation_page(rows)
    elements = Reader(page).elements
    plots = [attributes for name, attributes in elements if name == "svg" and attributes.get("role") == "img"]
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(plots) == 8
    assert len(set(ids)) == len(ids) == 16
    assert {name for plot in plots for name in (plot["aria-labelledby"] or "").split()} == set(ids)
    assert page.count("<caption>Attributable by tokens of the context</caption>") == 8


def test_every_number_is_in_a_table() -> None:
    row = result(prefix_reuse=0.4321, cost=0.777, summary_cost=0.111, p50_us=4711, p99_us=4712, deterministic=True)
    text = Reader(evaluation_page([row])).text
    for shown in ("97.7%", "98.8%", "43.2%", "50.0%", "0.777", "0.111", "4,711", "4,712", "yes", "d" * 12, *COLUMNS):
        assert shown in text


def test_what_went_wrong_stands_out() -> None:
    assert 'class="bad"' not in page_of()
    assert 'class="bad"' in page_of(violations=1)
    assert 'class="bad"' in page_of(deterministic=False)


def test_sessions_without_probes_have_no_plot() -> None:
    page = evaluation_page([result(attributable=None)])
    assert 'role="img"' not in page
    assert "hold no probe" in page


def test_the_same_results_give_the_same_page() -> None:
    assert page_of() == page_of()


# The chart


def chart(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(line_chart(lines, name="c", title="t", description="d"))


def test_a_chart_is_drawn_where_the_shares_are() -> None:
    line = Line(name="x", style=0, shares={1000: 0.0, 2000: 0.5, 4000: 1.0})
    path = next(each for each in chart(line).iter("path") if "line" in (each.get("class") or ""))
    points = [tuple(map(float, point.split())) for point in (path.get("d") or "")[1:].split("L")]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert y0 == HEIGHT - BOTTOM
    assert [each.text for each in chart(line).iter("title")][1:] == [
        "x, 1,000 tokens: 0.0%",
        "x, 2,000 tokens: 50.0%",
        "x, 4,000 tokens: 100.0%",
    ]


def test_a_share_without_a_budget_is_a_level_line() -> None:
    (path,) = chart(Line(name="x", style=0, shares={None: 0.5})).iter("path")
    assert re.fullmatch(r"M44 [\d.]+H350", path.get("d") or "")


def test_one_budget_is_a_point() -> None:
    drawn = chart(Line(name="x", style=0, shares={1000: 0.5}))
    assert [each.text for each in drawn.iter("text")][-2:] == ["tokens of the context", "x"]


@given(st.lists(st.floats(0, HEIGHT - BOTTOM), max_size=8))
def test_names_never_lie_on_each_other_or_on_the_axis(heights: list[float]) -> None:
    placed = apart(sorted(heights))
    assert len(placed) == len(heights)
    assert all(after - before >= LABEL_HEIGHT - 1e-6 for before, after in pairwise(placed))
    assert all(height <= HEIGHT - BOTTOM for height in placed)


@given(st.text(), st.text())
def test_text_never_becomes_an_element(text: str, attribute: str) -> None:
    read = Reader(tag("p", text, title=attribute))
    assert [name for name, _ in read.elements] == ["p"]
    assert set(read.elements[0][1]) == {"title"}


def test_markup_is_not_escaped_twice() -> None:
    assert joined(tag("b", "<"), "&") == "<b>&lt;</b>&amp;"
    assert isinstance(joined("a"), Markup)
