"""The results of an evaluation as one page: curves of what is attributable, and every number in tables.

Pure. The page needs nothing else, loads nothing and runs nothing. The same results give the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from reactor_memory.cli.eval_run import Result
from reactor_memory.cli.eval_view import cost
from reactor_memory.evaluation.charts import Line, key_of, line_chart
from reactor_memory.evaluation.markup import Markup, joined, tag
from reactor_memory.evaluation.pages import cell_of, head_cell, numbers_table, page

Styles: TypeAlias = Mapping[str, int]
Cell: TypeAlias = Callable[[Result], str]

COLUMNS: Mapping[str, Cell] = {
    "strategy": lambda row: row.strategy,
    "budget": lambda row: _budget(row.budget),
    "attributable": lambda row: _share(row.attributable),
    "survival": lambda row: _share(row.survival),
    "legible": lambda row: _share(row.legible),
    "fill": lambda row: _share(row.fill),
    "told": lambda row: _share(row.told),
    "junk": lambda row: _share(row.junk),
    "probes": lambda row: f"{row.probes:,}",
    "reading": lambda row: _number(row.read_amplification),
    "reuse": lambda row: _share(row.prefix_reuse),
    "weighted": lambda row: _share(row.prefix_reuse_weighted),
    "broken": lambda row: f"{row.violations:,}",
    "cost": lambda row: cost(row.cost),
    "of it summaries": lambda row: cost(row.summary_cost),
    "p50 µs": lambda row: f"{row.p50_us:,}",
    "p99 µs": lambda row: f"{row.p99_us:,}",
    "same twice": lambda row: {None: "–", True: "yes", False: "no"}[row.deterministic],
    "digest": lambda row: row.digest[:12],
}
WORDS = ("strategy", "same twice", "digest")
"""Columns that hold no numbers."""

EXPLANATION = (
    ("attributable", "share of the probes whose answer stands there so that a reader can tell what it is of"),
    ("survival", "share of the probes whose answer stands in one unit of the context"),
    ("legible", "share of the lines of memory that keep what a statement needs"),
    ("fill", "share of the budget that a context made anew uses while it leaves something out"),
    ("told", "share of the evidence of which one unit holds most of the words"),
    ("junk", "share of the lines of memory that say next to nothing"),
    ("reading", "tokens given to the summarizer, by the tokens of the sessions"),
    ("reuse", "how much of a context the one of the turn before began with, mean over turns"),
    ("weighted", "the same, of all tokens together"),
    ("broken", "rules that contexts broke"),
    ("cost", "replaying the file once, at the prices of the settings; summaries as if a model had written them"),
    ("p50, p99", "time of a load in microseconds"),
)


def evaluation_page(results: Sequence[Result]) -> str:
    """The whole page. Every name in it is escaped."""
    styles = {name: number for number, name in enumerate(dict.fromkeys(row.strategy for row in results))}
    body = tag(
        "body",
        tag(
            "main",
            tag("h1", "What contexts keep"),
            tag("p", _summary(results)),
            tag("ul", *(tag("li", key_of(style), name) for name, style in styles.items()), class_="legend"),
            *(_file(number, rows, styles) for number, rows in enumerate(_groups(results, lambda row: row.file))),
            tag("dl", *(joined(tag("dt", term), tag("dd", meaning)) for term, meaning in EXPLANATION)),
        ),
    )
    return page("What contexts keep", body)


def _summary(results: Sequence[Result]) -> str:
    files, broken = len({row.file for row in results}), sum(row.violations for row in results)
    return (
        f"Sessions of {files} {'file' if files == 1 else 'files'} were replayed turn by turn; at the end of each, the "
        f"details that it had settled were looked for in the context. Broken rules: {broken:,}."
    )


def _file(number: int, rows: Sequence[Result], styles: Styles) -> Markup:
    ways = list(_groups(rows, lambda row: (row.variant, row.questions)))
    return tag(
        "section",
        tag("h2", rows[0].file),
        tag(
            "div",
            *(_plot(f"plot-{number}-{each}", way, styles) for each, way in enumerate(ways)),
            class_="plots",
        ),
        *(_numbers(way) for way in ways),
    )


def _plot(name: str, rows: Sequence[Result], styles: Styles) -> Markup:
    """What is attributable against budget, and the same as a table."""
    lines = list(_lines(rows, styles))
    title = f"{_way(rows[0])}: attributable by budget"
    if not lines:
        return tag("figure", tag("h3", _way(rows[0])), tag("p", "These sessions hold no probe to look for."))
    chart = line_chart(lines, name=name, title=title, description=" ".join(map(_series_text, lines)))
    return tag("figure", tag("h3", _way(rows[0])), chart, _shares_table(lines))


def _lines(rows: Sequence[Result], styles: Styles) -> Iterator[Line]:
    for strategy, style in styles.items():
        shares = {
            row.budget: row.attributable for row in rows if row.strategy == strategy and row.attributable is not None
        }
        if shares:
            yield Line(name=strategy, style=style, shares=shares)


def _series_text(line: Line) -> str:
    shares = [f"{share:.1%} at {budget:,}" for budget, share in line.points] or [f"{line.end:.1%} without a budget"]
    return f"{line.name}: {', '.join(shares)}."


def _shares_table(lines: Sequence[Line]) -> Markup:
    budgets = sorted({budget for line in lines for budget in line.shares}, key=lambda budget: budget or float("inf"))
    head = tag("tr", _head("strategy"), *(_head(_budget(budget)) for budget in budgets))
    body = (
        tag(
            "tr",
            tag("th", line.name, scope="row", class_="word"),
            *(cell_of(_share(line.shares.get(b))) for b in budgets),
        )
        for line in lines
    )
    return numbers_table("Attributable by tokens of the context", head, body)


def _numbers(rows: Sequence[Result]) -> Markup:
    head = tag("tr", *map(_head, COLUMNS))
    return numbers_table(_way(rows[0]), head, map(_row, rows))


def _row(row: Result) -> Markup:
    cells = [
        tag("th", cell(row), scope="row", class_="word")
        if name == "strategy"
        else cell_of(cell(row), word=name in WORDS)
        for name, cell in COLUMNS.items()
    ]
    return tag("tr", *cells, **({"class_": "bad"} if row.violations or row.deterministic is False else {}))


def _head(name: str) -> Markup:
    return head_cell(name, word=name in WORDS)


def _groups(rows: Sequence[Result], key: Callable[[Result], object]) -> Iterator[list[Result]]:
    """The rows with the same key, which stand together."""
    return (list(group) for _, group in groupby(rows, key))


def _way(row: Result) -> str:
    return f"{row.variant} · questions {row.questions}"


def _budget(budget: int | None) -> str:
    return "none" if budget is None else f"{budget:,}"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
