"""What a work does through the library is what its name says."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from reactor_memory.errors import SessionOwnershipError
from reactor_memory.evaluation.bench.bench_sessions import SESSIONS, Wanted, appended, crowd, loaded, wanted_sessions
from reactor_memory.evaluation.bench.filled_sessions import fill
from reactor_memory.evaluation.bench.measurement import WARM_ROUNDS, rounds_of, take_slices, take_times
from reactor_memory.evaluation.bench.memories import USER, memories, take_last_settings
from reactor_memory.evaluation.bench.results import WORKS
from reactor_memory.evaluation.bench.statement_counter import counted
from reactor_memory.evaluation.bench.works import COLD_EVERY, Bench, Case, Crowd, cases, crowds, opened_bench
from reactor_memory.models import Message
from reactor_memory.settings.settings import Settings

pytestmark = pytest.mark.anyio

SIZE, CALLS = 60, 3
TEXTS = tuple(
    (Message.user, Message.assistant)[at % 2](f"Table {at % 7} is booked for Ann at 19:30. " * 25) for at in range(SIZE)
)


def settings_at(url: str, **sections: Any) -> Settings:
    return Settings(store={"url": url}, **sections)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the 32 sessions only the first of each kind."""
    path = tmp_path_factory.mktemp("filled") / "log.db"
    asyncio.run(fill_file(path))
    return path


async def fill_file(path: Path) -> None:
    wanted = [each for each in wanted_sessions(WORKS, [SIZE], CALLS) if not each.session_id.startswith("crowd-")]
    wanted += [Wanted(crowd(kind)[0], SIZE, memory=kind == "read") for kind in ("read", "written", "live")]
    async with memories(partial(settings_at, f"sqlite:///{path}")) as opened:
        done: list[int] = []
        filling = await fill(opened, wanted, TEXTS, seed=0, advance=done.append)
        assert sum(done) == filling.messages + filling.summarized_messages
        assert filling.messages == SIZE * len(wanted)


@pytest.fixture
async def bench(filled: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    """On a copy of its own, without a reference."""
    settings_of = partial(settings_at, f"sqlite:///{shutil.copy(filled, tmp_path / 'log.db')}")
    async with memories(settings_of) as opened:
        yield opened_bench(opened, None, take_last_settings(settings_of))


async def case_of(bench: Bench, work: str) -> Any:
    return await next(case for case in cases(bench, WORKS, [SIZE], CALLS) if case.work == work).ours()


async def last_seq(bench: Bench, session_id: str) -> int:
    return (await bench.memories.take_last.get_session(session_id, user_id=USER)).last_seq


async def test_every_append_stores_a_turn(bench: Bench) -> None:
    for _ in range(CALLS):
        await case_of(bench, "append_turn")
    assert await last_seq(bench, appended(SIZE, CALLS)[0]) == SIZE + 2 * CALLS


async def test_the_owner_is_checked(bench: Bench) -> None:
    with pytest.raises(SessionOwnershipError):
        await bench.memories.take_last.load_history(loaded(SIZE), user_id="somebody")


async def test_the_newest_messages_are_whole_or_trimmed(bench: Bench) -> None:
    newest = await case_of(bench, "load_last_20")
    assert newest.report.seqs == tuple(range(SIZE - 19, SIZE + 1))
    trimmed = await case_of(bench, "load_200_trim")
    assert 3000 < trimmed.report.total_tokens <= 4000
    assert trimmed.report.dropped


async def test_a_load_with_memory_fills_its_context_and_stays(bench: Bench) -> None:
    first, second = await case_of(bench, "load_hierarchical"), await case_of(bench, "load_hierarchical")
    assert first.report.tokens["facts"] > 0
    assert first.report.digest == second.report.digest
    assert 3800 < first.report.total_tokens <= 4000
    assert not first.report.unread


async def test_a_cold_load_reads_the_same_file(bench: Bench) -> None:
    with counted() as carried:
        await case_of(bench, "cold_load")
    assert carried.rows >= 21


async def test_the_turns_of_a_crowd_go_where_they_should(bench: Bench) -> None:
    ends = {kind: await last_seq(bench, crowd(kind)[0]) for kind in ("read", "written", "live")}
    for each in crowds(bench):
        await each.ours(0)
    grown = {kind: await last_seq(bench, crowd(kind)[0]) - end for kind, end in ends.items()}
    assert grown == {"read": 0, "written": 4, "live": 2}


def test_statements_and_rows_are_counted_and_counting_ends() -> None:
    connect = sqlite3.connect
    with counted() as carried:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (n)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        assert connection.execute("SELECT n FROM t").fetchall() == [(1,), (2,)]
        connection.close()
    assert (carried.queries, carried.rows) == (5, 2)  # with the BEGIN that the driver sends
    assert sqlite3.connect is connect


async def test_every_case_is_called_each_round_cold_ones_each_tenth() -> None:
    calls: list[str] = []

    def begin(name: str) -> Any:
        async def call() -> None:
            calls.append(name)

        return call

    both = Case("load_last_20", 100, "take_last", begin("ours"), begin("raw"), lambda: lambda: calls.append("sync"))
    cold = Case("cold_load", 100, "take_last", begin("cold"), every=COLD_EVERY)
    rounds: list[int] = []
    times, hops = await take_times([both, cold], begin("hop"), rounds=20, random=Random(0), advance=rounds.append)
    assert [len(taken) for taken in (times[0].ours, times[0].raw, times[0].sync, times[1].ours, hops)] == [
        *(20, 20, 20, 2, 40)
    ]
    assert sum(rounds) == rounds_of([both, cold], 20) == 2 * (20 + WARM_ROUNDS)
    assert calls.count("ours") == 20 + WARM_ROUNDS
    assert "ours" not in calls[calls.index("cold") :]  # one work after the other
    assert len({tuple(calls[at : at + 4]) for at in range(0, 60, 4)}) > 5


async def test_a_slice_lets_all_sessions_turn_at_once() -> None:
    at_once, most, rests = 0, 0, 0

    async def turn(number: int) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.001)
        at_once -= 1

    async def rest() -> None:
        nonlocal rests
        rests += 1

    advanced: list[int] = []
    [taken] = await take_slices(
        [Crowd("take_last", turn, turn)],
        rounds=2,
        seconds=0.01,
        random=Random(0),
        rest=rest,
        advance=advanced.append,
    )
    assert most == SESSIONS
    assert (len(taken.ours), len(taken.raw), rests, sum(advanced)) == (2, 2, 4, 4)
    for piece in (*taken.ours, *taken.raw):
        assert len(piece.turns) >= SESSIONS
        assert piece.turns_per_second > 0
