"""The results of a benchmark as one page: a curve for each work, and every number in tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from reactor_memory.cli.bench_view import background, mean, microseconds, milliseconds, times
from reactor_memory.evaluation.bench.results import GROWTH, Result, Run
from reactor_memory.evaluation.charts import Line, Scale, key_of, line_chart
from reactor_memory.evaluation.markup import Markup, joined, tag
from reactor_memory.evaluation.pages import cell_of, head_cell, numbers_table, page

TITLE = "What a turn costs"

SERIES: Mapping[str, Callable[[Result], float | None]] = {
    "library": lambda row: row.median_us,
    "bare driver": lambda row: row.raw_median_us,
    "no thread": lambda row: row.sync_sqlite3_median_us,
}
"""The curves of a work, in the order of their styles."""

CALLS: Mapping[str, Callable[[Result], str]] = {
    "messages": lambda row: f"{row.size:,}",
    "median µs": lambda row: microseconds(row.median_us),
    "p99 µs": lambda row: microseconds(row.p99_us),
    "bare driver µs": lambda row: microseconds(row.raw_median_us),
    "its p99 µs": lambda row: microseconds(row.raw_p99_us),
    "ratio": lambda row: times(row.ratio_to_raw),
    "no thread µs": lambda row: microseconds(row.sync_sqlite3_median_us),
    "rows": lambda row: mean(row.rows_read),
    "statements": lambda row: mean(row.queries),
    "facts": lambda row: mean(row.facts),
    "memory tokens": lambda row: mean(row.memory_tokens),
    "calls": lambda row: f"{row.calls:,}",
}
CROWDS: Mapping[str, Callable[[Result], str]] = {
    "strategy": lambda row: row.strategy,
    "background work": background,
    "turns/s": lambda row: mean(row.turns_per_second),
    "bare driver turns/s": lambda row: mean(row.raw_turns_per_second),
    "ratio": lambda row: times(row.ratio_to_raw),
    "p99 ms": lambda row: milliseconds(row.p99_us),
    "its p99 ms": lambda row: milliseconds(row.raw_p99_us),
}
WORDS = ("strategy", "background work")

EXPLANATION = (
    ("bare driver", "the same rows, read and written without a library in the same process, call by call in turn"),
    ("ratio", "of the medians, less is better; of turns a second, more is better"),
    ("no thread", "the bare driver called on the thread of the event loop, which it blocks"),
    ("rows, statements", "what the driver carried for one call of the library"),
)


def bench_page(run: Run) -> str:
    """The whole page."""
    calls = [row for row in run.results if row.turns_per_second is None]
    crowds = [row for row in run.results if row.turns_per_second is not None]
    body = tag(
        "main",
        tag("h1", f"{TITLE}: {run.store}"),
        tag("p", _summary(run)),
        tag("ul", *(tag("li", key_of(style), name) for style, name in enumerate(SERIES)), class_="legend"),
        *(_work(work, list(rows)) for work, rows in groupby(sorted(calls, key=_of_work), key=_of_work)),
        *([_many(crowds)] if crowds else []),
        tag("dl", *(joined(tag("dt", term), tag("dd", meaning)) for term, meaning in (*EXPLANATION, *_growth(run)))),
    )
    return page(TITLE, tag("body", body))


def _of_work(row: Result) -> str:
    return row.work


def _summary(run: Run) -> str:
    hop = "" if run.empty_hop_us is None else f" A call that does nothing takes {run.empty_hop_us:,.0f} µs."
    return f"{run.date}; {', '.join(f'{key} {value}' for key, value in {**run.machine, **run.versions}.items())}.{hop}"


def _growth(run: Run) -> Iterator[tuple[str, str]]:
    for work, (short, long) in GROWTH.items():
        ratio = run.growth.get(work)
        if ratio is not None:
            yield work, f"the median grows {ratio:.2f} times from {short:,} to {long:,} messages"


def _work(work: str, rows: Sequence[Result]) -> Markup:
    return tag("section", tag("h2", work), _plot(work, rows), _table(work, CALLS, rows))


def _plot(work: str, rows: Sequence[Result]) -> Markup:
    """Medians against the lengths of the sessions."""
    highest = max(value for row in rows for number in SERIES.values() if (value := number(row)) is not None)

    def share_text(share: float) -> str:
        return f"{share * highest:,.0f} µs"

    scale = Scale(share_text, share_text, "messages of the session", "messages")
    lines = list(_lines(rows, highest))
    ends = " ".join(f"{line.name}: {share_text(line.end)} at the end." for line in lines)
    chart = line_chart(lines, name=work, title=f"{work}: median µs by messages", description=ends, scale=scale)
    return tag("div", tag("figure", chart), class_="plots")


def _lines(rows: Sequence[Result], highest: float) -> Iterator[Line]:
    for style, (name, number) in enumerate(SERIES.items()):
        shares: dict[int | None, float] = {
            row.size: value / highest for row in rows if (value := number(row)) is not None
        }
        if shares:
            yield Line(name=name, style=style, shares=shares)


def _many(rows: Sequence[Result]) -> Markup:
    return tag("section", tag("h2", "32 sessions at once"), _table("A load and an append each", CROWDS, rows))


def _table(caption: str, columns: Mapping[str, Callable[[Result], str]], rows: Sequence[Result]) -> Markup:
    head = tag("tr", *(head_cell(name, word=name in WORDS) for name in columns))
    body = (tag("tr", *(cell_of(cell(row), word=name in WORDS) for name, cell in columns.items())) for row in rows)
    return numbers_table(caption, head, body)
