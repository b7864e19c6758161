"""Beside detectors of blocking calls, which LangGraph's development server runs, the library works as ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from blockbuster import BlockBuster, BlockingError, blockbuster_ctx

from reactor_memory import Memory, Message, Settings, open_memory, sync
from reactor_memory.database.operations import Batch, Query, Rows, Statement
from reactor_memory.database.sqlite_transactions import SqliteSession
from reactor_memory.features.search.models import MessageSearch

pytestmark = pytest.mark.anyio

CONFIG = Path(__file__).parents[2] / "config" / "reactor-memory.yaml"

Detector: TypeAlias = Callable[[], AbstractContextManager[object]]


@contextmanager
def debugging() -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 60.0  # no noise from a busy machine
    try:
        yield
    finally:
        loop.set_debug(False)


@contextmanager
def of_rows_only() -> Iterator[None]:
    """A detector that was told to let statements pass, not the reading of their rows."""
    detector = BlockBuster()
    functions = [each for name, each in detector.functions.items() if name.startswith("sqlite3.Cursor.fetch")]
    for each in functions:
        each.activate()
    try:
        yield
    finally:
        for each in functions:
            each.deactivate()


def of_our_package() -> AbstractContextManager[object]:
    return blockbuster_ctx("reactor_memory")


DETECTORS = {"of all": blockbuster_ctx, "of our package": of_our_package, "of rows only": of_rows_only}


@pytest.fixture(params=["memory://", "sqlite:///{}/memory.db"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param.format(tmp_path)


@pytest.fixture(params=DETECTORS)
def detector(request: pytest.FixtureRequest) -> Detector:
    return DETECTORS[request.param]


def settings(url: str) -> Settings:
    return Settings(store={"url": url}, search={"enabled": True})


async def conversation(memory: Memory) -> None:
    await memory.save_history("s", ["My order number is 4711-99.", Message.assistant("Noted.")], user_id="u")
    context = await memory.load_history("s", user_id="u", message="What is my order number?")
    assert len(context.messages) == 3
    assert [hit.seq for hit in await memory.recall("s", "order number", user_id="u")] == [1]
    async with memory.turn("s", "And now?", user_id="u") as turn:
        turn.answer("Now 4711-100.")
    await memory.drain()
    await memory.explain("s", user_id="u", seq=1)
    assert "s" in {each.session_id for each in (await memory.list_sessions(user_id="u")).sessions}
    await memory.facts.list("s", user_id="u")
    assert (await memory.search.search(MessageSearch(text="order", user_id="u"))).hits
    await memory.pins.add("s", seq=1, user_id="u")
    await memory.fork("s", at_seq=3, user_id="u")
    await memory.erasure.erase("s", seq=1, user_id="u")
    await memory.delete("s", user_id="u")


async def test_all_works_beside_a_detector(url: str, detector: Detector) -> None:
    usual = settings(url)
    with detector():
        async with open_memory(usual) as memory:
            await conversation(memory)


async def test_files_of_settings_are_read_aside(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CONFIG", str(CONFIG))
    with blockbuster_ctx():
        async with open_memory(url) as memory:
            await memory.save_history("s", ["hi"])


async def test_settings_without_a_file_are_made_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with blockbuster_ctx():
        assert Settings().store.url


async def test_a_detector_may_come_late_and_go(url: str, detector: Detector) -> None:
    async with open_memory(settings(url)) as memory:
        await memory.save_history("t", ["hi"], user_id="u")
        with detector():
            await conversation(memory)
        assert len((await memory.load_history("t", user_id="u")).messages) == 1


@pytest.mark.slow
def test_a_fresh_process_reads_no_file_on_its_loop(url: str) -> None:
    """What a process reads once, others of this one's tests have read: only a new one shows who reads it."""
    program = (
        "import asyncio; from tests.database.test_blocking_calls import late_detector; "
        f"asyncio.run(late_detector({url!r}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2], timeout=60)


async def late_detector(url: str) -> None:
    async with open_memory(settings(url)) as memory:
        with blockbuster_ctx():
            await conversation(memory)


async def test_a_transaction_that_was_left_open_ends() -> None:
    """It may refuse a statement and the ROLLBACK that follows."""

    def left_open(session: SqliteSession) -> None:
        session.connection.execute("BEGIN IMMEDIATE")

    async with open_memory("memory://") as memory:
        await memory.save_history("t", ["hi"], user_id="u")
        await memory.container.database()._do(left_open, float("inf"))
        await memory.save_history("t", ["ho"], user_id="u")
        assert len(await memory.read_messages("t", user_id="u")) == 2


async def test_the_sync_facade_works_on_its_thread(url: str) -> None:
    usual = settings(url)

    def by_thread() -> None:
        with sync.open_memory(usual) as memory:
            memory.call(conversation, memory.memory)
            memory.save_history("t", ["hi"], user_id="u")
            assert len(memory.load_history("t", user_id="u").messages) == 1

    with blockbuster_ctx():
        await asyncio.to_thread(by_thread)


async def test_what_holds_up_a_watched_loop_is_told(url: str) -> None:
    """The facade waits on the thread of its caller: on that of an event loop the detector is right."""
    with sync.open_memory(settings(url)) as memory:
        with blockbuster_ctx(), pytest.raises(BlockingError):
            memory.call(asyncio.sleep, 0.1)  # a load may be there before anybody waits for it
        assert memory.load_history("t", user_id="u").messages == []


async def test_debug_mode_moves_short_calls_to_threads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it they run on the thread of the loop, which is the fast way."""
    threads: set[int] = set()
    execute, read_now = SqliteSession.execute, SqliteSession.read_now

    def noted(session: SqliteSession, step: Query | Batch | Statement) -> Rows:
        threads.add(threading.get_ident())
        return execute(session, step)

    def noted_now(session: SqliteSession, *given: Any, **how: Any) -> Any:
        threads.add(threading.get_ident())
        return read_now(session, *given, **how)

    monkeypatch.setattr(SqliteSession, "execute", noted)
    monkeypatch.setattr(SqliteSession, "read_now", noted_now)
    with debugging():
        async with open_memory(settings(url)) as memory:
            await conversation(memory)
            assert threading.get_ident() not in threads
    async with open_memory(settings(url)) as memory:
        await memory.load_history("t", user_id="u")
        assert threading.get_ident() in threads
