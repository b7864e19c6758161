"""The types of errors under overload: deadlines, cancellations, locks and closings, in orders that a seed makes."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple
from unittest.mock import patch

import pytest

from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.kinds import Kind
from reactor_memory.background.worker import WorkOptions
from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.core.log.summary_store import SqlSummaryStore
from reactor_memory.database import sqlite
from reactor_memory.database.deadlines import within
from reactor_memory.database.grouped_writes import Waiting
from reactor_memory.database.operations import Query, Steps
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.database.sqlite_transactions import SqliteSession
from reactor_memory.errors import OutcomeUnknownError, StoreClosedError, StoreUnavailableError
from reactor_memory.features.facts.wiring import sql_summary_store
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import INDEX_SEARCH, SUMMARIZE
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.server.problems import problem_of
from reactor_memory.testing import append_messages
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.seeded_loop import SeededLoop, run
from tests.scenes.stores import sqlite_store

CALLERS = 12
SESSIONS = 30
SLOTS = 2
DEADLINES = (0.0, 0.001, 0.02, 0.02, 0.3, 2.0)


class Outcome(NamedTuple):
    """Of a save of the text `name`: its acknowledgement, or the error."""

    name: str
    answer: object


class Overload:
    """Callers that save and load, with work in the background, until the database is closed under their feet."""

    def __init__(self, path: Path, loop: SeededLoop) -> None:
        self.loop = loop
        self.outcomes: list[Outcome] = []
        self.loaded: list[object] = []
        self.database = SqliteDatabase(path, QUERIES, timeout_seconds=1.0)
        self.log = SqlMessageStore(self.database)
        summaries: SqlSummaryStore = sql_summary_store(self.database)
        self.engine = WorkEngine(
            [Kind(name=name, step=self.step, wants=lambda *_: True, concurrency=SLOTS) for name in KINDS],
            leases=summaries,
            breaker=CircuitBreaker(failures=5, open_seconds=30.0, monotonic=loop.time),
            clock=lambda: int(loop.now * 1e6),
            random=loop.random.random,
            options=WorkOptions(close_grace_seconds=0.5, poll_seconds=0.5, backoff_seconds=0.1, lease_seconds=5.0),
        )
        self.left = Counter[str]()

    async def main(self) -> None:
        random = self.loop.random
        with within(1e6):
            await self.database.open()
        await self.engine.open()
        callers = [asyncio.create_task(self.caller(f"text {number}")) for number in range(CALLERS)]
        for caller in random.sample(callers, 3):
            self.loop.call_later(random.random() / 10, caller.cancel)
        if random.random() < 0.5:
            await asyncio.wait(callers)
        await asyncio.sleep(random.choice((0.0, 0.01, 0.1)))
        closing = [self.engine.close, self.database.close]
        for close in closing if random.random() < 0.7 else reversed(closing):
            await close()
        await asyncio.wait(callers)
        assert self.loaded or self.outcomes

    async def step(self, lease: Lease) -> int | None:
        self.left[lease.session_id] += 1
        await self.database.write(_touch)
        return None if self.left[lease.session_id] % 3 == 0 else self.left[lease.session_id]

    async def caller(self, name: str) -> None:
        random = self.loop.random
        session = f"session {random.randrange(SESSIONS)}"
        await asyncio.sleep(random.choice((0.0, 0.0, 0.01, 0.05)))
        try:
            answer: object = None
            with within(random.choice(DEADLINES)):
                answer = await append_messages(self.log, session, [Message.user(name)], now=1)
            self.engine.messages_saved(session, 1)
        except (Exception, asyncio.CancelledError) as error:
            answer = error
        self.outcomes.append(Outcome(name, answer))
        try:
            with within(random.choice(DEADLINES)):
                self.loaded.append(await self.log.read(session, None))
        except Exception as error:
            self.loaded.append(error)


KINDS = (SUMMARIZE, INDEX_SEARCH)


def _touch() -> Steps[None]:
    yield Query("touch", {})


def check(path: Path, loop: SeededLoop) -> Sequence[Outcome]:
    """One run, and what holds after every run."""
    overload, depths = Overload(path, loop), [0]
    write_all = sqlite._write_all  # pyright: ignore[reportPrivateUsage]

    def noted(session: SqliteSession, batch: Sequence[Waiting], ends: float) -> Sequence[object]:
        """It calls itself for each write of a batch that it splits."""
        depths.append(depths[-1] + 1)
        assert depths[-1] == 1, "a batch was split"
        try:
            return write_all(session, batch, ends)
        finally:
            depths.pop()

    with patch.object(sqlite, "_write_all", noted):
        run(loop, overload.main)
    for answer in (*(outcome.answer for outcome in overload.outcomes), *overload.loaded):
        if isinstance(answer, Exception):
            assert isinstance(answer, StoreUnavailableError | StoreClosedError), repr(answer)
            assert problem_of(answer).kind.status == 503
    assert loop.most_tasks <= CALLERS + len(KINDS) * (2 * SLOTS + 1) + 6
    stored = texts_in(path)
    for name, answer in overload.outcomes:
        if not isinstance(answer, BaseException):
            assert stored[name] == 1, f"{name} was acknowledged"
        elif isinstance(answer, StoreUnavailableError | StoreClosedError) and not isinstance(
            answer, OutcomeUnknownError
        ):
            assert stored[name] == 0, f"{name} was refused with {answer!r}"
    return overload.outcomes


def texts_in(path: Path) -> Counter[str]:
    with closing(sqlite3.connect(path)) as connection:
        return Counter(text for (text,) in connection.execute("SELECT content FROM messages"))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "memory.db"

    async def made() -> None:
        store = sqlite_store(path)
        await store.open()
        await store.close()

    asyncio.run(made())
    return path


def runs(seeds: range, empty: Path, folder: Path) -> Counter[str]:
    """The kinds of outcomes of all runs."""
    kinds, unretrieved = Counter[str](), list[str]()
    for seed in seeds:
        path = Path(copyfile(empty, folder / "memory.db"))
        loop = SeededLoop(seed)
        loop.unretrieved = unretrieved
        try:
            kinds.update(type(outcome.answer).__name__ for outcome in check(path, loop))
        except AssertionError as fault:
            fault.add_note(f"seed {seed}")
            raise
        for left in folder.glob("memory.db*"):
            left.unlink()
    gc.collect()
    assert not unretrieved, "\n".join(unretrieved)
    return kinds


def test_under_overload_errors_are_typed_and_nothing_acknowledged_is_lost(empty: Path, tmp_path: Path) -> None:
    kinds = runs(range(100), empty, tmp_path)
    assert kinds.keys() >= {"Appended", "StoreUnavailableError", "OutcomeUnknownError", "CancelledError"}


@pytest.mark.slow
def test_thousands_of_orders(empty: Path, tmp_path: Path) -> None:
    runs(range(1_000, 4_000), empty, tmp_path)
