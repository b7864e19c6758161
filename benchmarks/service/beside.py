"""``python -m benchmarks.service.beside``: requests, one after the other, beside a bare handler of the same bytes.

Blocks of requests follow one another in a new order each round. Of each work: microseconds of the processor that the
process of the server used a request, and of the clock as the client sees it, the least and the median of the blocks.
Background work is off where no memory is named: what it uses would be counted to the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import psutil

from benchmarks.service.load import Connection, Request, ask
from benchmarks.service.running import (
    Running,
    appends,
    cpu_seconds,
    database,
    long_conversation,
    new_conversation,
    newest,
    service,
)

ROOT = Path(__file__).parents[2]
CONTEXT, INLINE, BARE = "context of 20", "context of 20, read on the loop", "bare handler"
HOT = "context of 20, hot, on the loop"
APPEND, REMEMBERED = "append", "append, memory made beside"

NEWEST = {
    "HISTORY__STRATEGY": "take_last",
    "HISTORY__MAX_CONVERSATION_TURNS": "10",
    "SUMMARY__ENABLED": "false",
    "BACKGROUND__ENABLED": "false",
}
"""Contexts are the newest 20 messages, and appends leave no work."""


class Work(NamedTuple):
    name: str
    process: psutil.Process
    port: int
    request: Request


class Taken(NamedTuple):
    """Microseconds a request: of the processor of the server, and of the clock."""

    processor: float
    clock: float


async def measured(store: str, rounds: int, calls: int, postgres_url: str = "") -> Mapping[str, Sequence[Taken]]:
    """What each block took, by the name of its work."""
    async with (
        database(store, postgres_url) as url,
        service(url, NEWEST) as plain,
        service(url, NEWEST | {"STORE__INLINE_LOADS": "auto"}) as inline,
        service(url, NEWEST | {"STORE__INLINE_LOADS": "auto", "STORE__HOT_BYTES": "8000000"}) as hot,
        database("sqlite", "") as other,
        service(other) as remembering,
        _works(plain, inline, hot, remembering) as works,
    ):
        taken: dict[str, list[Taken]] = {work.name: [] for work in works}
        for number in range(-1, rounds):
            for work in random.sample(works, len(works)):
                found = await _block(work, calls if number >= 0 else 20)
                if number >= 0:
                    taken[work.name].append(found)
        return taken


@asynccontextmanager
async def _works(plain: Running, inline: Running, hot: Running, remembering: Running) -> AsyncGenerator[list[Work]]:
    conversation = await long_conversation(plain, fresh=False)
    appended, remembered = await new_conversation(plain), await new_conversation(remembering)
    with _bare(await ask(plain.port, newest(plain, conversation))) as (process, port):
        yield [
            Work(CONTEXT, plain.process, plain.port, lambda: newest(plain, conversation)),
            Work(INLINE, inline.process, inline.port, lambda: newest(inline, conversation)),
            Work(HOT, hot.process, hot.port, lambda: newest(hot, conversation)),
            Work(BARE, process, port, lambda: newest(plain, conversation)),
            Work(APPEND, plain.process, plain.port, appends(plain, appended)),
            Work(REMEMBERED, remembering.process, remembering.port, appends(remembering, remembered)),
        ]


@contextmanager
def _bare(body: bytes) -> Generator[tuple[psutil.Process, int]]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "body")
        file.write_bytes(body)
        command = [sys.executable, "-m", "benchmarks.service.bare", str(file)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                yield psutil.Process(process.pid), int(process.stdout.readline())
            finally:
                process.terminate()


async def _block(work: Work, calls: int) -> Taken:
    requests = [work.request() for _ in range(calls)]
    async with Connection(work.port) as connection:  # one that is kept would be closed while others are measured
        used, began = cpu_seconds(work.process), perf_counter()
        for each in requests:
            await connection.ask(each)
        clock = perf_counter() - began
        return Taken(1e6 * (cpu_seconds(work.process) - used) / calls, 1e6 * clock / calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--postgres-url", default="")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=200)
    asked = parser.parse_args()
    taken = asyncio.run(measured(asked.store, asked.rounds, asked.calls, asked.postgres_url))
    print(f"{'us a request':30} processor   median     clock   median")
    for name, blocks in taken.items():
        processor, clock = ([each[place] for each in blocks] for place in range(2))
        print(f"{name:30} {min(processor):9.0f} {median(processor):8.0f} {min(clock):9.0f} {median(clock):8.0f}")


if __name__ == "__main__":
    main()
