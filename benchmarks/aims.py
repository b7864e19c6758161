"""What is measured beside what is aimed at, in one table: a work, its cost, what it is compared with, and their ratio.

``python -m benchmarks.aims [--file FILE] [--rounds N]``

Processor time of the process, the least of N blocks. Works that are compared follow one another by turns, in a new
order each round, so that whatever slows the machine slows them alike. FILE (`benchmarks.turn_costs` says what is in
it) is made unless it is there, which takes a minute; the rest takes three of processor time. Rows of `SQLiteSession`
need openai-agents. Turns and loads beside background work are by the clock: they hold on a quiet machine only.
`make bench-service` measures many requests at once, `make bench` PostgreSQL, `make bench-peers` other libraries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from benchmarks import foreground, start_up, turn_costs
from benchmarks.service import beside
from benchmarks.turn_costs import BUDGET, NEWEST, PLAIN, REMEMBERED, SHORT, USER
from reactor_memory import Memory, Message, open_memory
from reactor_memory.database import sqlite_transactions

ROOT = Path(__file__).parents[1]
IMPORTED = 2_000, 22_000
"""Messages of two files: what more the longer one takes is the import itself, without its start."""


class Row(NamedTuple):
    work: str
    ours: float
    unit: str
    beside: str = ""
    reference: float | None = None
    aim: float | None = None
    bound: Literal["<=", ">="] = "<="
    of: Literal["ratio", "times", "ours"] = "ratio"
    """The aim is of ours / reference, of reference / ours, or of what was measured."""

    @property
    def figure(self) -> float:
        if self.of == "ours" or self.reference is None:
            return self.ours
        return self.ours / self.reference if self.of == "ratio" else self.reference / self.ours

    def __str__(self) -> str:
        beside = f"{self.beside} {self.reference:,.0f}" if self.reference is not None else self.beside
        figure = f"{self.figure:,.2f}" if self.reference is not None and self.of != "ours" else ""
        met = self.aim is None or (self.figure <= self.aim if self.bound == "<=" else self.figure >= self.aim)
        aim = "" if self.aim is None else f"{self.bound} {self.aim:,g}"
        result = "" if self.aim is None else "met" if met else "missed"
        ours = f"{self.ours:,.1f}" if self.ours < 100 else f"{self.ours:,.0f}"
        return f"{self.work:56} {ours:>8} {self.unit:10} {beside:24} {figure:>6} {aim:>9} {result}"


# Turns


async def turns(file: Path, rounds: int) -> Iterator[Row]:
    least: dict[tuple[str, str], float] = {}
    async with turn_costs.opened_works(file) as works:
        wanted = [work for work in works if work.part != "instructions"]
        for part in dict.fromkeys(work.part for work in wanted):
            taken = await turn_costs.measured([work for work in wanted if work.part == part], rounds)
            least |= {(work.part, work.name): min(times)[0] for work, times in taken.items()}
    return _turn_rows(least)


def _turn_rows(least: Mapping[tuple[str, str], float]) -> Iterator[Row]:
    def row(part: str, beside: str, aim: float, of: Literal["ratio", "times"], name: str = "ours") -> Iterator[Row]:
        if reference := least.get((part, beside)):
            title = part if name == "ours" else f"{part}: {name}"
            against = beside.removeprefix(f"{name}, ")
            yield Row(title, least[part, name], "us", against, reference, aim, "<=" if of == "ratio" else ">=", of)

    yield from row("load 20", "bare", 0.4, "ratio")
    yield from row("load 20", "closure", 1.0, "ratio")
    yield from row("load 20", "SQLiteSession", 2.5, "times")
    yield from row("load 20", "bare", 0.1, "ratio", turn_costs.HOT)
    yield from row("load 20", "SQLiteSession", 10.0, "times", turn_costs.HOT)
    yield from row("load in 4,000", "closure", 1.3, "ratio")
    yield from row("load in 4,000", "closure", 1.3, "ratio", turn_costs.HOT)
    for (part, name), cost in least.items():
        if part == "a turn's load" and f", {SHORT} messages" not in name:
            yield Row(f"{part}: {name}", cost / 1e3, "ms", aim=3.0, of="ours")
            yield from row(part, f"{name}, {SHORT} messages", 1.1, "ratio", name)
    yield from row("append", "closure", 1.4, "ratio")
    yield from row("append", "SQLiteSession", 1.0, "times")
    yield from row("append", "closure", 1.4, "ratio", "ours, with a key")
    yield from row("32 sessions", "closure", 0.85, "times")
    yield from row("32 sessions", "closure", 0.85, "times", turn_costs.HOT)
    yield from row("32 sessions", "SQLiteSession", 3.5, "times")


# Statements


@asynccontextmanager
async def counting(file: Path, **sections: Any) -> AsyncGenerator[tuple[Memory, list[str]]]:
    """A memory, and the statements that its connections run, in one way to their thread each time."""
    carried: list[str] = []
    driver: Any = sqlite_transactions.sqlite3
    connect = driver.connect

    def noting(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.set_trace_callback(carried.append)
        return connection

    driver.connect = noting
    try:
        async with open_memory(turn_costs.settings(file, **sections)) as memory:
            yield memory, carried
    finally:
        driver.connect = connect


async def statements(file: Path) -> list[Row]:
    rows: list[Row] = []
    async with counting(file, **NEWEST) as (memory, carried):
        for name in ("load 20", "append"):
            for _ in range(2):  # the first save stores more than a turn
                carried.clear()
                if name == "load 20":
                    await memory.load_history(PLAIN, user_id=USER)
                else:
                    await memory.save_history("counted", turn_costs.TURN, user_id=USER)
            rows.append(Row(f"statements of {name}, begin and end included", len(carried), ""))
    async with counting(file, background={"enabled": False}) as (memory, carried):
        await memory.load_history(REMEMBERED, user_id=USER, budget=BUDGET)
        carried.clear()
        await memory.load_history(REMEMBERED, user_id=USER, budget=BUDGET)
    return [*rows, Row("statements of load in 4,000", len(carried), "")]


# Starting, importing, keeping


def starting(folder: Path, runs: int) -> Iterator[Row]:
    file = folder / "warm.db"
    asyncio.run(start_up.load_once(file, save=True))
    with asyncio.Runner() as runner:
        warm = start_up.least(
            lambda _: nullcontext(runner.run(start_up.load_once(file, save=False))), 4 * runs, time.process_time
        )
    yield Row("open, load, close", warm, "ms", aim=8.0, of="ours")
    cold = start_up.least(lambda run: start_up.cold(folder, run), runs, start_up.processor_of_children)
    yield Row("cold process to the first turn", cold, "ms", aim=700.0, of="ours")


def importing(folder: Path) -> Row:
    seconds = [_import_seconds(folder, messages) for messages in IMPORTED]
    per_second = (IMPORTED[1] - IMPORTED[0]) / (seconds[1] - seconds[0])
    return Row("import of JSONL", per_second, "messages/s", aim=25_000.0, bound=">=", of="ours")


def _import_seconds(folder: Path, messages: int) -> float:
    """The least of two runs."""
    file = folder / f"{messages}.jsonl"
    texts = enumerate(turn_costs.pieces(turn_costs.sample(), messages, 100))
    said = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in texts]
    lines = [json.dumps({"id": f"s{at}", "messages": said[at : at + 500]}) for at in range(0, messages, 500)]
    file.write_text("\n".join(lines) + "\n")
    taken: list[float] = []
    for run in range(2):
        target = f"sqlite:///{folder / f'{messages}-{run}.db'}"
        before = start_up.processor_of_children()
        command = [sys.executable, "-m", "reactor_memory", "import", str(file), "--store", target, "--no-memory"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        taken.append(start_up.processor_of_children() - before)
    return min(taken)


def keeping(file: Path) -> Iterator[Row]:
    """What a session with its memory and its index takes, by what it is kept in, of the session that is remembered."""
    with TemporaryDirectory() as folder:
        alone = Path(folder, "alone.db")
        asyncio.run(_copied_session(file, alone))
        with closing(sqlite3.connect(alone)) as connection:
            messages, characters = connection.execute(
                "SELECT COUNT(*), SUM(stored) FROM (SELECT LENGTH(CAST(content AS BLOB)) AS stored FROM messages)"
            ).fetchone()
            sizes = connection.execute("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC").fetchall()
    total = sum(size for _, size in sizes) / messages
    title = f"disk a message of {characters / messages:.0f} bytes"
    yield Row(title, total, "bytes", aim=500.0, of="ours")
    for name, size in sizes[:8]:
        yield Row(f"  {name}", size / messages, "bytes")


async def _copied_session(file: Path, alone: Path) -> None:
    async with (
        open_memory(turn_costs.settings(file, background={"enabled": False})) as source,
        open_memory(turn_costs.settings(alone)) as target,
    ):
        batch: list[Message] = []
        async for message in source.stream_messages(REMEMBERED, user_id=USER):
            batch.append(message)
            if len(batch) == turn_costs.BATCH:
                await target.save_history(REMEMBERED, batch, user_id=USER)
                batch.clear()
        await target.drain()


# Requests, and work beside turns


async def requests(rounds: int) -> list[Row]:
    taken = await beside.measured("sqlite", rounds, calls=100)
    least = {name: min(block.processor for block in blocks) for name, blocks in taken.items()}
    bare = least[beside.BARE]
    return [
        Row("HTTP, append", least[beside.APPEND] / 1e3, "ms", aim=1.2, of="ours"),
        Row("HTTP, append, memory made beside", least[beside.REMEMBERED] / 1e3, "ms"),
        *(
            Row(f"HTTP, {name}", least[name], "us", "bare handler", bare, 0.3, ">=", "times")
            for name in (beside.CONTEXT, beside.INLINE, beside.HOT)
        ),
    ]


def working(rounds: int) -> Iterator[Row]:
    found = foreground.measured(rounds)
    alone = found[foreground.NOBODY]
    for way, share in ((foreground.PROCESS, 0.3), (foreground.WORKER, 0.5)):
        title = f"32 sessions, memory made by {way}"
        yield Row(f"{title}: turns", found[way].rate, "a second", "without", alone.rate, share, ">=", "ratio")
        yield Row(f"{title}: p99 of a load", found[way].p99_ms, "ms", "without", alone.p99_ms, 2.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = (asked.file or Path(folder, "turns.db")).absolute()
        if not file.exists():
            asyncio.run(turn_costs.fill(file, 10_000))
        print(f"{'work':56} {'ours':>8} {'':10} {'beside':24} {'ratio':>6} {'aim':>9}")
        for rows in (
            asyncio.run(turns(file, asked.rounds)),
            asyncio.run(statements(file)),
            starting(Path(folder), runs=5),
            [importing(Path(folder))],
            keeping(file),
            asyncio.run(requests(asked.rounds)),
            working(asked.rounds),
        ):
            for row in rows:
                print(row, flush=True)


if __name__ == "__main__":
    main()
