"""The table of ratios. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from benchmarks.peers.contender import Store
from benchmarks.peers.plan import Work
from benchmarks.peers.results import Report, Row

OURS = "reactor-memory"

TITLES: Mapping[Work, str] = {
    "append_turn": "append a turn",
    "load_last_20": "load the last 20",
    "load_hierarchical": "hierarchical load in 4,000 tokens; others: last 200, trimmed",
    "load_200_trim": "last 200, trimmed to 4,000 tokens",
    "cold_load": "open, then load the last 20",
    "concurrent_32": "32 sessions at once: load 20, append a turn",
}

STORES: Mapping[Store, str] = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

_ANYBODY = ""

GOALS: Mapping[tuple[Work, Store, str], float] = {
    ("append_turn", "sqlite", _ANYBODY): 1.0,
    ("append_turn", "postgres", _ANYBODY): 1.0,
    ("load_last_20", "sqlite", "openai-agents SQLiteSession"): 2.0,
    ("load_last_20", "postgres", "openai-agents SQLAlchemySession"): 5.0,
    ("load_hierarchical", "sqlite", "openai-agents SQLiteSession"): 3.0,
    ("concurrent_32", "sqlite", _ANYBODY): 4.0,
    ("concurrent_32", "postgres", _ANYBODY): 6.0,
}
"""The least ratio that we want to reach, at every size."""


def goal_of(work: Work, store: Store, contender: str) -> float | None:
    return GOALS.get((work, store, contender), GOALS.get((work, store, _ANYBODY)))


def is_missed(rows: Iterable[Row], goal: float | None) -> bool:
    return goal is not None and any(row.ratio < goal for row in rows)


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Markdown. Of ours the medians, of the others how many times as much time they take (as many turns we do)."""
    rows = list(rows)
    sizes = sorted({row.size for row in rows})
    yield _line("work", "store", "library", *(f"{size:,}" for size in sizes), "goal", "")
    yield _line(*["---"] * 3, *["--:"] * (len(sizes) + 1), "---")
    for work, title in TITLES.items():
        for store, store_name in STORES.items():
            group = [row for row in rows if (row.work, row.store) == (work, store)]
            if group:
                yield from _group(group, sizes, title, store_name)


def surroundings(report: Report) -> str:
    """What the numbers were measured with, in one line."""
    server = [f"PostgreSQL {report.postgres}"] if report.postgres else []
    packages = [f"{name} {number}" for name, number in sorted(report.versions.items())]
    return ", ".join([f"CPython {report.python}", f"{report.cores} cores", *server, *packages])


def _group(group: list[Row], sizes: list[int], title: str, store: str) -> Iterator[str]:
    ours = _by_size(row for row in group if row.contender == OURS)
    yield _line(title, store, "**reactor-memory**", *(_own_cell(ours.get(size, [])) for size in sizes), "", "")
    names = dict.fromkeys(row.contender for row in group if row.contender != OURS)
    for name in sorted(names, key=lambda name: _worst(group, name)):
        found = [row for row in group if row.contender == name]
        goal = goal_of(found[0].work, found[0].store, name)
        verdict = "" if goal is None else "missed" if is_missed(found, goal) else "met"
        cells = (_ratio_cell(rows) for size in sizes for rows in [_by_size(found).get(size, [])])
        yield _line("", "", name, *cells, "" if goal is None else f"{goal:g}", verdict)


def _worst(group: Iterable[Row], name: str) -> float:
    """The ratio of the size where it comes nearest to us: the best peers stand first."""
    return min(row.ratio for row in group if row.contender == name)


def _by_size(rows: Iterable[Row]) -> dict[int, list[Row]]:
    sizes: dict[int, list[Row]] = {}
    for row in rows:
        sizes.setdefault(row.size, []).append(row)
    return sizes


def _own_cell(rows: list[Row]) -> str:
    """Ours is measured beside every family: the median of those runs."""
    if not rows:
        return ""
    rates = [row.turns_per_second for row in rows if row.turns_per_second is not None]
    if rates:
        return f"{median(rates):,.0f} turns/s"
    return f"{median(row.median_us for row in rows):,.0f} us"


def _ratio_cell(rows: list[Row]) -> str:
    if not rows:
        return ""
    ratio = rows[0].ratio
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
