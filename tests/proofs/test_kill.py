"""A process that is killed while it appends, and a database that is: what was acknowledged is there, whole and once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
import pytest

from reactor_memory import Container, ConversationManager, Message
from reactor_memory.evaluation.bench.servers import started_postgres
from tests.proofs.agent_process import USER, batch, memory
from tests.proofs.processes import agent_process, read_until, rest
from tests.scenes.counts import count as count_proven
from tests.scenes.stores import postgres_store

pytestmark = pytest.mark.slow

ROUNDS = 50
CRASHES = 5


class Journal:
    """What a process said: the batches that it tried to save, and where it was told that they are, by session."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.tried: defaultdict[str, set[int]] = defaultdict(set)
        self.acked: defaultdict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        for line in lines:
            word, session_id, number, *seqs = line.split()
            if word == "try":
                self.tried[session_id].add(int(number))
            elif word == "ack":
                first, last = map(int, seqs)
                self.acked[session_id][int(number)] = (first, last)


@pytest.mark.timeout(300)
def test_kill_loses_nothing_acknowledged_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    kill_and_compare(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_kill_loses_nothing_acknowledged_of_postgres(postgres_dsn: str) -> None:
    kill_and_compare(postgres_dsn)


def kill_and_compare(url: str) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(ROUNDS):
        lines = append_until_killed(url, f"run{number}", chance.uniform(0, 0.25))
        journal = Journal(lines)
        asyncio.run(compare(url, journal))
        count_proven("kills of processes that save; 0 acknowledged saves lost, doubled or changed")
        count_proven("saves acknowledged before a kill, each there once", sum(map(len, journal.acked.values())))


def append_until_killed(url: str, run: str, seconds: float) -> list[str]:
    """What a process said that was killed `seconds` after its first acknowledgement."""
    with agent_process("append", url, run) as process:
        lines = read_until(process, "ack")
        time.sleep(seconds)  # noqa: TID251 - the moment is the point
        process.kill()
        return lines + rest(process)


async def compare(url: str, journal: Journal) -> None:
    async with memory(url, background=False) as container:
        for session_id, tried in journal.tried.items():
            await compare_session(container.conversation_manager(), session_id, tried, journal.acked[session_id])
        assert (await container.message_store().check()).problems == ()
    async with memory(url) as container:
        for session_id in journal.tried:
            await check_memory(container, session_id)


async def compare_session(
    manager: ConversationManager, session_id: str, tried: set[int], acked: dict[int, tuple[int, int]]
) -> None:
    stored = await stored_batches(manager, session_id)
    assert acked.items() <= stored.items()
    assert set(stored) <= tried
    assert len(set(stored) - set(acked)) <= 1, "one save at a time was under way"
    for number in tried - set(acked):
        again = await manager.save_history(
            session_id, batch(session_id, number), user_id=USER, idempotency_key=f"key {number}"
        )
        # A server may finish what a killed client had sent after we read: then it is there once, by now
        assert again.replayed or number not in stored
    assert set(await stored_batches(manager, session_id)) == tried


async def stored_batches(manager: ConversationManager, session_id: str) -> dict[int, tuple[int, int]]:
    """Where each batch is. The log has no gap, and every batch is there whole, in one piece, unchanged."""
    messages = await manager.read_messages(session_id, user_id=USER)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    found: dict[int, tuple[int, int]] = {}
    for number, group in groupby(messages, key=number_of):
        part = list(group)
        assert number not in found
        assert [said(message) for message in part] == [said(message) for message in batch(session_id, number)]
        found[number] = (part[0].seq or 0, part[-1].seq or 0)
    return found


def number_of(message: Message) -> int:
    return int(message.content.split()[2])


def said(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.tool_calls, message.tool_call_id


async def check_memory(container: Container, session_id: str) -> None:
    """The work of the dead is taken over, and its memory is whole."""
    manager = container.conversation_manager()
    session = await manager.get_session(session_id, user_id=USER)
    summary = await manager.summarize(session_id, user_id=USER, timeout_seconds=20)
    context = await manager.load_history(session_id, user_id=USER)
    assert context.report.unread == ()
    segments = await container.facts().segments(session_id, user_id=USER)
    assert [part.start_seq for part in segments] == [1, *(part.end_seq + 1 for part in segments[:-1])][: len(segments)]
    if session.last_seq > 40:
        assert summary is not None
        assert summary.covered_seq == segments[-1].end_seq > session.last_seq - 40


# -- the database itself ----------------------------------------------------------------------------------------------


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A server of its own, with its durability untouched."""
    with started_postgres() as server:
        yield server


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_a_crash_of_postgres_loses_nothing_and_saves_go_on(own_postgres: Any) -> None:
    url = own_postgres.get_uri()
    asyncio.run(migrate(url))
    with agent_process("append", url, "run") as process:
        lines: list[str] = []
        for _ in range(CRASHES):
            lines += read_until(process, "ack")
            time.sleep(0.2)  # noqa: TID251 - lets appends pile up
            crash(own_postgres.get_pid())
            lines += read_until(process, "away")
            own_postgres.ensure_postgres_running()
            lines += read_until(process, "ack")
        process.kill()
        lines += rest(process)
    asyncio.run(compare(url, Journal(lines)))


async def migrate(url: str) -> None:

    store = postgres_store(url, auto_migrate=True)
    await store.open()
    await store.close()


def crash(postmaster: int) -> None:
    """Kill the server and everything that it started, with no chance to tidy up."""
    parent = psutil.Process(postmaster)
    family = [parent, *parent.children(recursive=True)]
    for process in family:
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, timeout=10)
