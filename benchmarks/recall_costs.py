"""What recall takes: processor time of loads that ask and that do not, and of indexing; and the bytes of its index.

usage: python -m benchmarks.recall_costs [MESSAGES ...]
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

from reactor_memory import Memory, Settings, open_memory
from reactor_memory.features.recall.indexer import Indexer
from reactor_memory.models.leases import Lease

BUDGET = 4_000
CALLS = 40
MESSAGE_BYTES = 660
BATCH = 100
USER, SESSION = "u", "s"
TABLES = ("recall_passages", "recall_terms_data", "recall_terms_idx")
SYLLABLES = ("ba", "den", "cor", "lis", "mun", "tra", "vel", "sho", "pim", "nor", "gal", "ter")


def vocabulary(chance: random.Random) -> list[str]:
    return ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(3_000)]


def text(number: int, words: list[str], chance: random.Random) -> str:
    said = " ".join(chance.choices(words, weights=range(len(words), 0, -1), k=120))
    return f"item A-{number:06} {said}"[:MESSAGE_BYTES]


def loads(messages: int, chance: random.Random) -> Mapping[str, Callable[[], dict[str, str]]]:
    def old() -> str:
        return f"A-{chance.randrange(max(1, messages // 2)):06}"

    return {
        "no recall": lambda: {"message": "Thanks, that is fine by me.", "query": ""},
        "a message that asks nothing": lambda: {"message": "Thanks, that is fine by me."},
        "a message that asks": lambda: {"message": f"What was written in item {old()} about the ba?"},
        "a message that names something unknown": lambda: {"message": f"Please cancel B-{chance.randrange(10**6)}."},
        "a query": lambda: {"query": f"item {old()}"},
    }


def timed(times: list[float], catch_up: Callable[[Indexer, Lease], Awaitable[bool]]) -> Any:
    """`catch_up` that notes its processor time: nothing else runs meanwhile, the session is drained."""

    async def noted(indexer: Indexer, lease: Lease) -> bool:
        started = process_time()
        done = await catch_up(indexer, lease)
        times.append(1_000 * (process_time() - started))
        return done

    return noted


async def filled(memory: Memory, messages: int, chance: random.Random) -> None:
    words = vocabulary(chance)
    for start in range(0, messages, BATCH):
        said = [
            {"role": ("user", "assistant")[n % 2], "content": text(n, words, chance)}
            for n in range(start, min(start + BATCH, messages))
        ]
        await memory.save_history(SESSION, said, user_id=USER)
    await memory.drain()


async def measure(messages: int) -> None:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        indexing: list[float] = []
        with patch.object(Indexer, "catch_up", timed(indexing, Indexer.catch_up)):
            async with open_memory(Settings(store={"url": f"sqlite:///{path}", "timeout_seconds": 60})) as memory:
                await filled(memory, messages, chance)
        print(f"{messages:>7} messages  {'indexing':<40} {sum(indexing) / messages:6.2f} ms a message")
        async with open_memory(Settings(store={"url": f"sqlite:///{path}"}, background={"enabled": False})) as memory:
            for name, load in loads(messages, chance).items():
                times: list[float] = []
                for _ in range(CALLS):
                    started = process_time()
                    await memory.load_history(SESSION, user_id=USER, budget=BUDGET, **load())  # type: ignore[arg-type]
                    times.append(1_000 * (process_time() - started))
                print(f"{messages:>7} messages  {name:<40} {median(times):6.2f} ms, least {min(times):.2f}")
        print(f"{messages:>7} messages  {'recall index':<40} {index_bytes(path) / messages:6.0f} bytes a message")


def index_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        sizes = "SELECT SUM(pgsize) FROM dbstat WHERE name = ?"
        return sum(connection.execute(sizes, (table,)).fetchone()[0] or 0 for table in TABLES)


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ("1000",)):
        asyncio.run(measure(size))
