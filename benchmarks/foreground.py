"""What turns and loads lose to memory that is made beside them: nobody who talks may queue behind background work.

``python -m benchmarks.foreground [--rounds N]``

32 sessions, each eight times a load in 4,000 tokens and an append, as fast as they can; every 5 ms one load of a
session of 1,000 messages beside them. Three ways, each on its own copy of one file, in a random order each round:
nobody makes memory, this process makes it while it serves, `reactor-memory worker` does. In so few turns each session
has one or two segments to make, and none waits for one. Turns a second, and the median and 99th percentile of the
loads beside, by the clock: only on a quiet machine do they say much.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from benchmarks import turn_costs
from benchmarks.turn_costs import BUDGET, CROWD, TURN, USER
from reactor_memory import Memory, open_memory
from reactor_memory.evaluation.bench.bench_sessions import session_of

ROOT = Path(__file__).parents[1]
NOBODY, PROCESS, WORKER = "nobody", "this process", "a worker"
WAYS = NOBODY, PROCESS, WORKER
TURNS = 8
BESIDE, EVERY_SECONDS = "beside", 0.005


class Slice(NamedTuple):
    """Turns a second of all sessions, and seconds of each load beside them."""

    rate: float
    loads: Sequence[float]


class Summary(NamedTuple):
    """Medians of the rounds: turns a second, milliseconds of a load beside."""

    rate: float
    median_ms: float
    p99_ms: float


async def fill(file: Path) -> None:
    said = turn_costs.sample()
    async with open_memory(turn_costs.settings(file)) as memory:
        await turn_costs.save_all(memory, BESIDE, list(session_of(said, 1000, seed=1)))
        for number in range(CROWD):
            await turn_costs.save_all(memory, f"crowd-{number}", list(session_of(said, 100, seed=number)))
        await memory.drain()


def measured(rounds: int) -> Mapping[str, Summary]:
    slices: dict[str, list[Slice]] = {way: [] for way in WAYS}
    with TemporaryDirectory() as folder:
        filled = Path(folder, "filled.db")
        asyncio.run(fill(filled))
        for _ in range(rounds):
            for way in random.sample(WAYS, len(WAYS)):
                file = Path(folder, "copy.db")
                shutil.copyfile(filled, file)
                slices[way].append(asyncio.run(_slice(file, way)))
                for each in Path(folder).glob("copy.db*"):
                    each.unlink()
    return {way: _summary(found) for way, found in slices.items()}


def _summary(slices: Sequence[Slice]) -> Summary:
    loads = [1e3 * taken for each in slices for taken in each.loads]
    return Summary(median(each.rate for each in slices), median(loads), quantiles(loads, n=100)[-1])


async def _slice(file: Path, way: str) -> Slice:
    async with _memory(file, way) as memory:
        await _turn(memory, "first")
        beside = asyncio.create_task(_loads(memory, loads := list[float]()))
        began = perf_counter()
        await asyncio.gather(*(_turns(memory, f"crowd-{number}") for number in range(CROWD)))
        seconds = perf_counter() - began
        beside.cancel()
        return Slice(CROWD * TURNS / seconds, loads)


async def _turns(memory: Memory, session: str) -> None:
    for _ in range(TURNS):
        await _turn(memory, session)


async def _turn(memory: Memory, session: str) -> None:
    await memory.load_history(session, user_id=USER, budget=BUDGET, query="")
    await memory.save_history(session, TURN, user_id=USER)


async def _loads(memory: Memory, taken: list[float]) -> None:
    while True:
        began = perf_counter()
        await memory.load_history(BESIDE, user_id=USER, budget=BUDGET, query="")
        taken.append(perf_counter() - began)
        await asyncio.sleep(EVERY_SECONDS)


@asynccontextmanager
async def _memory(file: Path, way: str) -> AsyncGenerator[Memory]:
    settings = turn_costs.settings(file, background={"enabled": way == PROCESS, "close_grace_seconds": 1})
    async with open_memory(settings) as memory:
        if way != WORKER:
            yield memory
            return
        with _worker(file):
            await asyncio.sleep(2)  # until it works
            yield memory


@contextmanager
def _worker(file: Path) -> Generator[None]:
    command = [sys.executable, "-m", "reactor_memory", "worker", "--store", f"sqlite:///{file}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=file.parent, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    found = measured(parser.parse_args().rounds)
    alone = found[NOBODY]
    print(f"{'memory is made by':20} {'turns/s':>8} {'share':>6} {'load ms':>8} {'p99':>8} {'times':>6}")
    for way, (rate, middle, p99) in found.items():
        print(f"{way:20} {rate:8.0f} {rate / alone.rate:6.2f} {middle:8.1f} {p99:8.1f} {p99 / alone.p99_ms:6.2f}")


if __name__ == "__main__":
    main()
