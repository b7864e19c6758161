"""What a chain of forks costs, beside a plain session of the same messages.

``python -m benchmarks.fork_chains [--store sqlite|postgres] [--url URL] [--depths 1 10 100] [--runs N]``

Each fork continues the one before it. Milliseconds of the clock, the least of N runs that alternate between fork and
plain session, and how many times the plain session's; then what withdrawing the newest message and deleting the root
take. On a busy machine only the ratios say much.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from reactor_memory import Memory, Message, open_memory
from reactor_memory.evaluation.bench.databases import database
from reactor_memory.evaluation.bench.results import Store
from reactor_memory.settings.settings import Settings

USER = "ann"
TURNS = 1
"""Of each fork."""

Read = Callable[[str], Awaitable[object]]


def said(first: int, count: int) -> list[Message]:
    """`count` turns from the number `first` on."""
    return [message for number in range(first, first + count) for message in _turn(number)]


def _turn(number: int) -> tuple[Message, Message]:
    return (
        Message.user(f"Order {4700 + number} goes to berth {number} of the river; its price is {number * 7} euros."),
        Message.assistant(f"I noted order {4700 + number} for berth {number}."),
    )


async def plain_session(memory: Memory, name: str, depth: int) -> str:
    await memory.save_history(name, said(0, TURNS * (depth + 1)), user_id=USER)
    await memory.container.background_work().drain()
    return name


async def chain(memory: Memory, name: str, depth: int) -> str:
    """The last of `depth` forks of forks, each of which shares all of the one before it."""
    await memory.save_history(name, said(0, TURNS), user_id=USER)
    session_id = name
    for number in range(1, depth + 1):
        fork = await memory.fork(session_id, at_seq=2 * TURNS * number + 1, user_id=USER)
        session_id = fork.session_id
        await memory.save_history(session_id, said(TURNS * number, TURNS), user_id=USER)
        await memory.container.background_work().drain()
    return session_id


def reads_of(memory: Memory) -> dict[str, Read]:
    async def load(session_id: str) -> object:
        return await memory.load_history(session_id, user_id=USER, message="What now?", budget=4000)

    async def load_with_query(session_id: str) -> object:
        return await memory.load_history(
            session_id, user_id=USER, message="What now?", query="order 4703 berth", budget=4000
        )

    async def search(session_id: str) -> object:
        return await memory.recall(session_id, "order 4703 berth", user_id=USER)

    async def facts(session_id: str) -> object:
        return await memory.facts.list(session_id, user_id=USER)

    async def messages(session_id: str) -> object:
        return await memory.read_messages(session_id, user_id=USER, limit=50)

    async def all_messages(session_id: str) -> object:
        return await memory.read_messages(session_id, user_id=USER, limit=1000)

    return {
        "load": load,
        "load, query": load_with_query,
        "search": search,
        "facts": facts,
        "messages, 50": messages,
        "messages, 1000": all_messages,
    }


async def milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1e3


async def compared(read: Callable[[], Awaitable[object]], beside: Callable[[], Awaitable[object]], runs: int) -> str:
    await read()
    await beside()
    taken = [(await milliseconds(read), await milliseconds(beside)) for _ in range(runs)]
    ours, plain = min(pair[0] for pair in taken), min(pair[1] for pair in taken)
    return f"{ours:9.2f} {plain:9.2f} {ours / plain:6.2f}"


async def list_page(memory: Memory) -> object:
    return await memory.list_sessions(user_id=USER, limit=20)


@asynccontextmanager
async def opened(store: Store, url: str | None, folder: Path | None) -> AsyncGenerator[Memory]:
    async with database(store, url=url, folder=folder) as made:
        settings = Settings(store={"url": made.url, "auto_migrate": True}, search={"enabled": True})
        async with open_memory(settings) as memory:
            yield memory


def line(depth: int, name: str, figures: str) -> None:
    print(f"{depth:6} {name:16} {figures}", flush=True)


async def measure(store: Store, depth: int, arguments: argparse.Namespace) -> None:
    async with opened(store, arguments.url, arguments.folder) as chained:
        fork = await chain(chained, "chain", depth)
        async with opened(store, arguments.url, arguments.folder) as other:
            plain = await plain_session(other, "plain", depth)
            for number in range(depth):  # as many sessions on its pages
                await other.save_history(f"other-{number}", said(0, 1), user_id=USER)
            beside = reads_of(other)
            for name, read in reads_of(chained).items():
                figures = await compared(partial(read, fork), partial(beside[name], plain), arguments.runs)
                line(depth, name, figures)
            figures = await compared(partial(list_page, chained), partial(list_page, other), arguments.runs)
            line(depth, "listing", figures)
            await withdraw_and_delete(chained, fork, other, plain, depth)


async def withdraw_and_delete(chained: Memory, fork: str, other: Memory, plain: str, depth: int) -> None:
    taken = [
        await milliseconds(lambda: chained.withdraw(fork, user_id=USER)),
        await milliseconds(lambda: other.withdraw(plain, user_id=USER)),
    ]
    line(depth, "withdraw", f"{taken[0]:9.2f} {taken[1]:9.2f} {taken[0] / taken[1]:6.2f}")
    taken = [
        await milliseconds(lambda: chained.delete("chain", user_id=USER)),
        await milliseconds(lambda: other.delete(plain, user_id=USER)),
    ]
    line(depth, "delete the root", f"{taken[0]:9.2f} {taken[1]:9.2f} {taken[0] / taken[1]:6.2f}")


async def main(arguments: argparse.Namespace) -> None:
    for store in arguments.store:
        print(f"{store}\n{'depth':>6} {'ms':16} {'forks':>9} {'plain':>9} {'ratio':>6}")
        for depth in arguments.depths:
            await measure(store, depth, arguments)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", nargs="+", choices=["sqlite", "postgres"], default=["sqlite"])
    parser.add_argument("--url", help="of a PostgreSQL server; else one is started")
    parser.add_argument("--folder", type=Path, help="where files are made")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--runs", type=int, default=20)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    asyncio.run(main(parsed()))
