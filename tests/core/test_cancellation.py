"""Cancellation at every await of every operation: nothing is half done, nothing stays open, everything goes on."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import asyncpg
import pytest

from reactor_memory import Container, ConversationManager, Memory, Message
from reactor_memory.errors import InvalidInputError, SessionDeletedError
from reactor_memory.models.requests import SUMMARIZE
from tests.acceptance.scenes import USER, memory, save, scripted, talk, texts
from tests.scenes.counts import count as count_proven
from tests.scenes.interruption import Way, cancelled_at

pytestmark = pytest.mark.anyio

POOL_SIZE = 2
NARROW: dict[str, Any] = {
    "store": {"pool_size": POOL_SIZE},
    "background": {"max_concurrent_sessions": 1, "close_grace_seconds": 0.2, "lease_seconds": 0.5},
}

Operation = Callable[[ConversationManager, str], Awaitable[object]]


@pytest.fixture(params=["task", "scope"])
def way(request: pytest.FixtureRequest) -> Way:
    return request.param


# -- the operations, and what must hold after each, however far it came ----------------------------------------------

QUESTION = Message.user("What did I order?")


async def load(memory: Memory, session_id: str) -> None:
    await memory.load_history(session_id, user_id=USER, message=QUESTION, query="order number A-0003")


async def save_with_key(memory: Memory, session_id: str) -> None:
    await memory.save_history(session_id, talk(4, start=31), user_id=USER, idempotency_key="batch")


async def turn(memory: Memory, session_id: str) -> None:
    async with memory.turn(session_id, QUESTION, user_id=USER, idempotency_key="turn") as current:
        await anyio.lowlevel.checkpoint()
        current.answer("Many things.")


async def fork(memory: Memory, session_id: str) -> None:
    await memory.fork(session_id, at_seq=21, user_id=USER)


async def withdraw(memory: Memory, session_id: str) -> None:
    await memory.withdraw(session_id, user_id=USER, seq=30)


async def delete(memory: Memory, session_id: str) -> None:
    await memory.delete(session_id, user_id=USER)


async def summarize(memory: Memory, session_id: str) -> None:
    await memory.summarize(session_id, user_id=USER)


async def post_with_key(memory: Memory, session_id: str) -> None:
    await memory.post_summary(
        session_id, text="Thirty orders.", until_seq=30, title="Orders", user_id=USER, idempotency_key="post"
    )


async def unchanged(memory: Memory, session_id: str) -> None:
    assert texts(await memory.read_messages(session_id, user_id=USER)) == texts(talk(30))
    summary = await memory.summarize(session_id, user_id=USER)
    assert summary is not None
    assert summary.covered_seq == 30
    assert (await memory.load_history(session_id, user_id=USER)).report.freshness == "fresh"


async def saved_once(memory: Memory, session_id: str) -> None:
    await save_with_key(memory, session_id)
    assert texts(await memory.read_messages(session_id, user_id=USER)) == texts(talk(34))


async def posted_once(memory: Memory, session_id: str) -> None:
    await post_with_key(memory, session_id)
    assert texts(await memory.read_messages(session_id, user_id=USER, after=30)) == ["Thirty orders."]
    summary = await memory.get_summary(session_id, user_id=USER)
    assert summary is not None
    assert summary.narrative.splitlines()[0] == "Thirty orders."
    assert (await memory.get_session(session_id, user_id=USER)).title == "Orders"


async def turn_whole_or_its_question(memory: Memory, session_id: str) -> None:
    added = texts(await memory.read_messages(session_id, user_id=USER, after=30))
    assert added in ([], [QUESTION.content], [QUESTION.content, "Many things."])
    await turn(memory, session_id)
    assert texts(await memory.read_messages(session_id, user_id=USER))[-2:] == [QUESTION.content, "Many things."]


async def at_most_one_fork(memory: Memory, session_id: str) -> None:
    page = await memory.list_sessions(user_id=USER, limit=10)
    forks = [each for each in page.sessions if each.session_id.startswith(f"{session_id}~")]
    assert len(forks) <= 1
    await unchanged(memory, session_id)


async def withdrawn_or_not(memory: Memory, session_id: str) -> None:
    with suppress(InvalidInputError):  # it was withdrawn after all
        await withdraw(memory, session_id)
    assert texts(await memory.read_messages(session_id, user_id=USER)) == texts(talk(29))


async def deleted_or_not(memory: Memory, session_id: str) -> None:
    await delete(memory, session_id)
    with pytest.raises(SessionDeletedError):
        await load(memory, session_id)


OPERATIONS: list[tuple[Operation, Operation]] = [
    (load, unchanged),
    (save_with_key, saved_once),
    (turn, turn_whole_or_its_question),
    (post_with_key, posted_once),
    (fork, at_most_one_fork),
    (withdraw, withdrawn_or_not),
    (delete, deleted_or_not),
    (summarize, unchanged),
]


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "holds"), OPERATIONS, ids=lambda item: item.__name__)
async def test_cancelled_at_any_await_an_operation_leaves_nothing_behind(
    url: str, way: Way, operation: Operation, holds: Operation
) -> None:
    async with memory(scripted(), url, **NARROW) as container:
        manager = container.conversation_manager()
        tasks = asyncio.all_tasks()
        for at in count():
            session_id = f"s{at}"
            with anyio.fail_after(30):
                await save(manager, session_id, talk(30))
                cancelled = await cancelled_at(operation(Memory(container), session_id), at, way)
                await holds(Memory(container), session_id)
                await check_nothing_is_left(container, session_id, tasks)
            if not cancelled:
                break
            count_proven("cancels at an await; 0 batches lost, doubled or half there, nothing left open")
        await check_database(url, connections=POOL_SIZE)


async def test_cancelled_at_any_await_of_its_life_container_is_closed(url: str, way: Way) -> None:
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())

    async def live(session_id: str) -> None:
        async with memory(scripted(delay_seconds=0.001), url, **NARROW) as container:
            await save(container.conversation_manager(), session_id, talk(30))
            await anyio.lowlevel.checkpoint()

    for at in count():
        with anyio.fail_after(30):
            cancelled = await cancelled_at(live(f"s{at}"), at, way)
            assert asyncio.all_tasks() <= tasks
            await eventually(lambda: not database_threads() - threads)
        if not cancelled:
            break
        count_proven("cancels at an await; 0 batches lost, doubled or half there, nothing left open")
    await check_database(url, connections=0)
    async with memory(scripted(), url, **NARROW) as container:
        manager = container.conversation_manager()
        for number in range(at):
            saved = await manager.read_messages(f"s{number}", user_id=USER)
            assert texts(saved) in ([], texts(talk(30)))


async def test_a_turn_cancelled_inside_its_block_keeps_the_question(url: str, way: Way) -> None:
    async def ask(manager: ConversationManager) -> None:
        async with manager.turn("s", QUESTION, user_id=USER):
            started.set()
            await anyio.sleep_forever()

    async with memory(scripted(), url, **NARROW) as container:
        manager = container.conversation_manager()
        started = anyio.Event()
        if way == "task":
            asking = asyncio.create_task(ask(manager))
            await started.wait()
            asking.cancel()
            await asyncio.wait([asking])
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(ask, manager)
                await started.wait()
                group.cancel_scope.cancel()
        assert texts(await manager.read_messages("s", user_id=USER)) == [QUESTION.content]


async def test_a_worker_cut_short_gives_its_lease_back(url: str) -> None:
    summarizer = scripted()
    summarizer.hold()
    lasting = {**NARROW, "background": {"lease_seconds": 600, "close_grace_seconds": 0}}
    async with memory(summarizer, url, **lasting) as container:
        manager, store = container.conversation_manager(), container.summary_store()
        await save(manager, "s", talk(30))
        with anyio.fail_after(30):
            await eventually(lambda: summarizer.running == 1)
        before = await store.work_state("s", SUMMARIZE)
        await container.background_work().close()
        after = await store.work_state("s", SUMMARIZE)
    assert before is not None
    assert before.lease_until > 0
    assert after is not None
    assert after.lease_until == 0
    assert after.due_at is not None, "the work is left to somebody else"


# -- what nothing may leave behind ------------------------------------------------------------------------------------


async def eventually(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for is a state, not an event
        await anyio.sleep(0.002)


def database_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name}


async def check_nothing_is_left(container: Container, session_id: str, tasks: set[asyncio.Task[Any]]) -> None:
    """No task, no lease; every connection of the pool answers; the one slot of the workers is free."""
    await container.conversation_manager().drain()
    await eventually(lambda: asyncio.all_tasks() <= tasks)
    state = await container.summary_store().work_state(session_id, SUMMARIZE)
    assert state is None or state.lease_until == 0
    async with anyio.create_task_group() as group:
        for _ in range(2 * POOL_SIZE):
            group.start_soon(container.message_store().check)
    work = f"{session_id}-after"
    await save(container.conversation_manager(), work, talk(30))
    await container.conversation_manager().drain()
    summary = await container.summary_store().get_summary(work)
    assert summary is not None
    assert summary.covered_seq == 30


async def check_database(url: str, *, connections: int) -> None:
    if url.startswith("sqlite"):
        check_file(url.removeprefix("sqlite:///"))
    elif url.startswith("postgres"):
        await check_server(url, connections)


def check_file(path: str) -> None:
    """Nobody holds a read or a write transaction, else the checkpoint would be busy."""
    connection = sqlite3.connect(path, timeout=0)
    try:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


async def check_server(dsn: str, connections: int) -> None:
    """No transaction is open, and no more than `connections` connections."""
    connection = await asyncpg.connect(dsn)
    others = """SELECT COUNT(*), COUNT(*) FILTER (WHERE state LIKE 'idle in transaction%') FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'reactor-memory'"""
    try:
        with anyio.fail_after(30):
            while True:
                open_ones, in_transaction = await connection.fetchrow(others)
                if open_ones <= connections and in_transaction == 0:
                    return
                await anyio.sleep(0.02)
    finally:
        await connection.close()
