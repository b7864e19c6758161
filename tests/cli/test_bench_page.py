"""The page of a benchmark and its table: whatever is missing in a run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from reactor_memory.cli.bench_page import bench_page
from reactor_memory.cli.bench_view import bench_view, mean
from reactor_memory.evaluation.bench.results import Filling, Result, Run, growth


def row(**values: Any) -> Result:
    usual = {"work": "load_last_20", "store": "sqlite", "size": 100, "strategy": "take_last", "calls": 3}
    return Result(**{**usual, "median_us": 40.0, "p99_us": 80.0, **values})


def run_of(*results: Result, **values: Any) -> Run:
    usual: dict[str, Any] = {"store": "sqlite", "date": "2026-02-02", "machine": {"cores": "2"}, "versions": {}}
    return Run(results=results, growth=growth(results), **{**usual, **values})


FULL = run_of(
    row(raw_median_us=20.0, raw_p99_us=30.0, ratio_to_raw=2.0, sync_sqlite3_median_us=10.0, rows_read=22, queries=4.2),
    row(size=100_000, median_us=60.0, raw_median_us=20.0, ratio_to_raw=3.0, facts=1234, memory_tokens=567),
    row(
        work="concurrent_32", strategy="hierarchical", turns_per_second=900, raw_turns_per_second=1800, background=True
    ),
    empty_hop_us=25.0,
    filling=Filling(messages=9, messages_per_second=8, summarized_messages=7, summarized_messages_per_second=6),
)
SPARSE = run_of(row(), store="memory")
ONLY_A_CROWD = run_of(row(work="concurrent_32", turns_per_second=900, background=False))


def shown(run: Run) -> str:
    console = Console(file=StringIO(), width=100, highlight=False)
    console.print(bench_view(run))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("run", [FULL, SPARSE, ONLY_A_CROWD])
def test_a_page_is_well_formed_and_loads_nothing(run: Run) -> None:
    page = bench_page(run)
    body = page[page.index("<body") : page.index("</html>")]
    assert ElementTree.fromstring(body).find("main") is not None
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|\ssrc=|\shref=|url\(|@import", page)


def test_a_page_draws_each_side_and_tells_every_number() -> None:
    page = bench_page(FULL)
    assert [name for name in ("library", "bare driver", "no thread") if f"{name}, 100 messages: " in page] == [
        *("library", "bare driver", "no thread")
    ]
    assert "library, 100,000 messages: 60 µs" in page
    for text in ("1,234", "567", "2.00", "this process", "the median grows 1.50 times from 100 to 100,000 messages"):
        assert text in page


def test_names_never_become_elements() -> None:
    page = bench_page(run_of(row(), versions={"store": "<script>alert(1)</script>"}))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_table_tells_what_is_known_and_strikes_what_is_not() -> None:
    full, sparse = shown(FULL), shown(SPARSE)
    assert "load_last_20: from 100 to 100,000 messages the median grows 1.50 times" in full
    assert "a call of the driver that does nothing: 25 us" in full
    assert "summarized 7 messages, 6 a second" in full
    assert "0.5" not in sparse
    assert sparse.count(" - ") >= 5
    assert "32 sessions" not in sparse
    assert "one call" not in shown(ONLY_A_CROWD)


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (4.0, "4"), (4.2, "4.2"), (1234.0, "1,234")])
def test_means_have_as_few_digits_as_say_it(value: float | None, text: str) -> None:
    assert mean(value) == text
