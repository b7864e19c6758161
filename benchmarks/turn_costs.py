"""What the calls of a turn cost in processor time, beside the bare driver and, where it is installed, `SQLiteSession`.

``python -m benchmarks.turn_costs [--file FILE] [--messages N] [--parts PART ...] [--rounds N]``

Blocks of calls follow one another in a new order each round, so that whatever slows the machine slows all alike. Of
each work: microseconds of processor time of the process (user and system, all threads) and of the clock a call, the
least and the median of the blocks. Times of the clock say little on a busy machine.

FILE gets two sessions of N messages, unless it is there: one of the packaged sample with its memory, and one of
messages of 200 characters. That takes a minute for 10,000. `bare` is aiosqlite as its documentation uses it (`execute`,
then `fetchall`, then the end of the block: three ways to its thread and back), `closure` the same rows in one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from importlib import resources
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeAlias

import aiosqlite

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.evaluation.bench import reference_sqlite
from reactor_memory.evaluation.bench.bench_sessions import TURN, session_of
from reactor_memory.evaluation.bench.raw import Turns, new_keys
from reactor_memory.evaluation.bench.reference_commits import Commits
from reactor_memory.evaluation.transcripts import read_lines

USER, REMEMBERED, BRIEF, PLAIN, APPENDED = "bench", "remembered", "brief", "plain", "appended"
BUDGET, BATCH, CHARACTERS, CROWD = 4_000, 1_000, 200, 32
SHORT = 100
"""Messages of the brief session, beside which a long one is measured."""

RULINGS = (0, 1, 8, 200)
"""Later system messages among the 400 messages of a session: the newest stands, the others are superseded."""

HOT, HOT_BYTES = "ours, kept in memory", 64_000_000
"""With heads of sessions in memory (``store.hot_bytes``)."""

CROWD_CALLS = 6
"""Turns of each session in a block of 32 sessions."""

NEWEST: Mapping[str, Any] = {
    "summary": {"enabled": False},
    "history": {"strategy": "take_last", "max_conversation_turns": 10},
}
"""Loads of the newest 20 messages."""

Call: TypeAlias = Callable[[], Awaitable[object]]


class Work(NamedTuple):
    part: str
    name: str
    call: Call
    calls: int
    operations: int = 1


# The sessions


def settings(file: Path, *, inline: str = "auto", hot_bytes: int = 0, **sections: Any) -> Settings:
    return Settings(store={"url": f"sqlite:///{file}", "inline_loads": inline, "hot_bytes": hot_bytes}, **sections)


async def fill(file: Path, messages: int) -> None:
    said = sample()
    async with open_memory(settings(file)) as memory:
        await save_all(memory, REMEMBERED, list(session_of(said, messages, seed=1)))
        await save_all(memory, BRIEF, list(session_of(said, SHORT, seed=1)))
        await memory.drain()
    async with open_memory(settings(file, summary={"enabled": False})) as memory:
        texts = enumerate(pieces(said, messages, CHARACTERS))
        plain = [Message.assistant(text) if number % 2 else Message.user(text) for number, text in texts]
        await save_all(memory, PLAIN, plain)
        for number in range(CROWD):
            await save_all(memory, f"crowd-{number}", plain[:300])
            await save_all(memory, f"bare-{number}", plain[:300])
        for rulings in RULINGS:
            await save_all(memory, f"ruled-{rulings}", list(ruled(plain[:400], rulings)))
        await save_all(memory, APPENDED, plain[:300])
        await save_all(memory, f"bare-{APPENDED}", plain[:300])


def sample() -> list[Message]:
    with resources.as_file(resources.files("reactor_memory") / "data" / "orders.jsonl.gz") as file:
        return [message for line in read_lines(file) for message in line.messages]


def pieces(said: Sequence[Message], count: int, characters: int) -> Iterator[str]:
    """So many pieces of what people and models said."""
    prose = " ".join(each.content for each in said if each.role != "tool")
    starts = [number * 97 % (len(prose) - characters) for number in range(count)]
    return (prose[start : start + characters] for start in starts)


def ruled(messages: Sequence[Message], rulings: int) -> Iterator[Message]:
    every = len(messages) // max(1, rulings)
    for number, message in enumerate(messages):
        yield message
        if rulings and number % every == every - 1:
            yield Message.system(f"From now on answer in {number} words.")


async def save_all(memory: Memory, session: str, messages: Sequence[Message]) -> None:
    for start in range(0, len(messages), BATCH):
        await memory.save_history(session, messages[start : start + BATCH], user_id=USER)


# The works


@asynccontextmanager
async def opened_works(file: Path) -> AsyncGenerator[list[Work]]:
    async with AsyncExitStack() as stack:
        opened: list[Work] = []
        for part in (loads, instructed_loads, memory_loads, turns, appends, crowds, peers):
            opened += await stack.enter_async_context(asynccontextmanager(part)(file))
        yield opened


async def loads(file: Path) -> AsyncGenerator[list[Work]]:
    async with (
        open_memory(settings(file, **NEWEST)) as ours,
        open_memory(settings(file, inline="never", **NEWEST)) as threaded,
        open_memory(settings(file, hot_bytes=HOT_BYTES, **NEWEST)) as hot,
        aiosqlite.connect(file, isolation_level=None) as bare,
    ):
        key = (PLAIN, PLAIN)

        async def three_ways() -> None:
            async with bare.execute(reference_sqlite.SESSION, key) as cursor:
                await cursor.fetchall()
            async with bare.execute(reference_sqlite.NEWEST, (*key, 20)) as cursor:
                await cursor.fetchall()

        def load(memory: Memory) -> Call:
            return lambda: memory.load_history(PLAIN, user_id=USER)

        yield [
            Work("load 20", "ours", load(ours), 60),
            Work("load 20", "ours, on the thread", load(threaded), 60),
            Work("load 20", HOT, load(hot), 60),
            Work("load 20", "bare", three_ways, 60),
            Work("load 20", "closure", lambda: reference_sqlite.run(bare, reference_sqlite.last, PLAIN, 20), 60),
        ]


async def instructed_loads(file: Path) -> AsyncGenerator[list[Work]]:
    async with open_memory(settings(file, **NEWEST)) as memory:
        yield [
            Work("instructions", f"{each} later ones", partial(memory.load_history, f"ruled-{each}", user_id=USER), 60)
            for each in RULINGS
        ]


async def memory_loads(file: Path) -> AsyncGenerator[list[Work]]:
    async with (
        open_memory(settings(file, background={"enabled": False})) as memory,
        open_memory(settings(file, hot_bytes=HOT_BYTES, background={"enabled": False})) as hot,
        aiosqlite.connect(file, isolation_level=None) as bare,
    ):
        yield [
            Work("load in 4,000", "ours", partial(memory.load_history, REMEMBERED, user_id=USER, budget=BUDGET), 20),
            Work("load in 4,000", HOT, partial(hot.load_history, REMEMBERED, user_id=USER, budget=BUDGET), 20),
            Work(
                "load in 4,000",
                "closure",
                lambda: reference_sqlite.run(bare, reference_sqlite.memory, REMEMBERED, BUDGET),
                60,
            ),
        ]


async def turns(file: Path) -> AsyncGenerator[list[Work]]:
    """The README's turn with memory on, up to the model: nothing of it is stored, so that each finds the same."""
    numbers = count(7_000_001)
    asking = {
        "thanks": lambda: "Thanks, that is fine by me.",
        "names something unknown": lambda: f"Please cancel order {next(numbers)}.",
        "asks": lambda: "What did I order with oat milk, and when will it be ready?",
    }
    async with open_memory(settings(file, background={"enabled": False})) as memory:

        def load(session: str, text: Callable[[], str]) -> Call:
            return lambda: memory.load_history(session, message=text(), user_id=USER, budget=BUDGET)

        yield [
            Work("a turn's load", f"a message that {name}{end}", load(session, text), 10)
            for session, end in ((REMEMBERED, ""), (BRIEF, f", {SHORT} messages"))
            for name, text in asking.items()
        ]


async def appends(file: Path) -> AsyncGenerator[list[Work]]:
    async with (
        open_memory(settings(file, summary={"enabled": False})) as memory,
        aiosqlite.connect(file, isolation_level=None, timeout=60) as bare,
    ):
        await bare.execute("PRAGMA synchronous = FULL")
        made = made_turns(file)
        keys = new_keys()
        save = partial(memory.save_history, APPENDED, TURN, user_id=USER)
        yield [
            Work("append", "ours", save, 25),
            Work("append", "ours, with a key", lambda: save(idempotency_key=next(keys)), 25),
            Work(
                "append",
                "closure",
                lambda: reference_sqlite.run(bare, reference_sqlite.append, made.rows(f"bare-{APPENDED}")),
                25,
            ),
        ]


async def crowds(file: Path) -> AsyncGenerator[list[Work]]:
    """32 sessions at once, each a load of 20 and an append, again and again. The bare driver commits together, too."""
    async with (
        open_memory(settings(file, **NEWEST)) as memory,
        open_memory(settings(file, hot_bytes=HOT_BYTES, **NEWEST)) as hot,
        aiosqlite.connect(file, isolation_level=None, timeout=60) as writer,
        aiosqlite.connect(file, isolation_level=None) as reading,
    ):
        await writer.execute("PRAGMA synchronous = FULL")
        made = made_turns(file)
        commits = Commits(lambda rows: reference_sqlite.run(writer, reference_sqlite.insert, rows))

        async def ours(memory: Memory, number: int) -> None:
            for _ in range(CROWD_CALLS):
                await memory.load_history(f"crowd-{number}", user_id=USER)
                await memory.save_history(f"crowd-{number}", TURN, user_id=USER)

        async def bare(number: int) -> None:
            for _ in range(CROWD_CALLS):
                await reference_sqlite.run(reading, reference_sqlite.last, f"bare-{number}", 20)
                await commits.append(made.rows(f"bare-{number}"))

        def all_of(turn: Callable[[int], Awaitable[None]]) -> Call:
            return lambda: asyncio.gather(*map(turn, range(CROWD)))

        yield [
            Work("32 sessions", "ours", all_of(partial(ours, memory)), 1, CROWD * CROWD_CALLS),
            Work("32 sessions", HOT, all_of(partial(ours, hot)), 1, CROWD * CROWD_CALLS),
            Work("32 sessions", "closure", all_of(bare), 1, CROWD * CROWD_CALLS),
        ]


async def peers(_: Path) -> AsyncGenerator[list[Work]]:
    """`SQLiteSession` of openai-agents on a file of its own; nothing where it is not installed."""
    try:
        from agents.memory import SQLiteSession
    except ImportError:
        yield []
        return
    turn: Any = [{"role": each.role, "content": each.content} for each in TURN]
    with TemporaryDirectory() as folder:
        names = [PLAIN, *(f"crowd-{number}" for number in range(CROWD))]
        sessions = {name: SQLiteSession(name, Path(folder, "peer.db")) for name in names}
        for session in sessions.values():
            await session.add_items([{"role": "user", "content": "x" * CHARACTERS}] * 300)

        async def crowd(number: int) -> None:
            session = sessions[f"crowd-{number}"]
            for _ in range(CROWD_CALLS):
                await session.get_items(limit=20)
                await session.add_items(turn)

        yield [
            Work("load 20", "SQLiteSession", lambda: sessions[PLAIN].get_items(limit=20), 60),
            Work("append", "SQLiteSession", lambda: sessions[PLAIN].add_items(turn), 25),
            Work(
                "32 sessions",
                "SQLiteSession",
                lambda: asyncio.gather(*map(crowd, range(CROWD))),
                1,
                CROWD * CROWD_CALLS,
            ),
        ]
        for session in sessions.values():
            session.close()


def made_turns(file: Path) -> Turns:
    columns = reference_sqlite.COLUMNS
    query = (
        f"SELECT group_id, conversation_id, batch_key, batch_fingerprint, batch_size, {columns} FROM messages "
        "WHERE conversation_id = ? AND seq <= 2 ORDER BY seq"
    )
    with closing(sqlite3.connect(file)) as connection:
        sample = connection.execute(query, (APPENDED,)).fetchall()
        last = dict(connection.execute("SELECT conversation_id, MAX(seq) FROM messages GROUP BY conversation_id"))
    return Turns(sample, last)


# Measuring


Taken: TypeAlias = Mapping[Work, Sequence[tuple[float, float]]]
"""Microseconds of the processor and of the clock a call, of each block."""


async def measured(works: Sequence[Work], rounds: int) -> Taken:
    taken: dict[Work, list[tuple[float, float]]] = {work: [] for work in works}
    for number in range(-1, rounds):
        for work in random.sample(works, len(works)):
            used, clock = process_time(), perf_counter()
            for _ in range(work.calls if number >= 0 else 3):
                await work.call()
            each = work.operations * work.calls / 1e6
            if number >= 0:
                taken[work].append(((process_time() - used) / each, (perf_counter() - clock) / each))
    return taken


def _row(work: Work, processor: Sequence[float], clock: Sequence[float]) -> str:
    numbers = f"{processor[0]:10.0f} {median(processor):8.0f} {clock[0]:10.0f} {median(clock):8.0f}"
    return f"{work.part:14} {work.name:40} {numbers}"


async def run(file: Path, parts: Sequence[str], rounds: int) -> None:
    async with opened_works(file) as works:
        chosen = [work for work in works if not parts or work.part in parts]
        print(f"{'us a call':55}  processor   median      clock   median")
        for part in dict.fromkeys(work.part for work in chosen):
            taken = await measured([work for work in chosen if work.part == part], rounds)
            for work, times in taken.items():
                print(_row(work, *map(sorted, zip(*times, strict=True))), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--parts", nargs="*", default=())
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = asked.file or Path(folder, "turns.db")
        if not file.exists():
            asyncio.run(fill(file, asked.messages))
        asyncio.run(run(file, asked.parts, asked.rounds))


if __name__ == "__main__":
    main()
