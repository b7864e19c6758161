"""Background work that waits: one queue, whatever its length, and no task for what is in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.kinds import Kind, NoLeases
from reactor_memory.background.worker import WorkOptions
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import INDEX_SEARCH, SUMMARIZE
from reactor_memory.providers.breaker import CircuitBreaker

pytestmark = pytest.mark.anyio

SLOTS = 3
SESSIONS = [f"session {number}" for number in range(500)]


class Steps:
    """Work that waits until it is let, one step a conversation; `done` is the order. `broken`: it fails so often."""

    def __init__(self, *, broken: int = 0) -> None:
        self.gate = anyio.Event()
        self.done: list[str] = []
        self.broken = broken

    async def __call__(self, lease: Lease) -> int | None:
        await self.gate.wait()
        if self.broken > 0:
            self.broken -= 1
            raise StoreUnavailableError("store: down")
        if lease.session_id in self.done:
            return None
        self.done.append(lease.session_id)
        return 1

    async def reached(self, session_id: str) -> int:
        return int(session_id in self.done)


@asynccontextmanager
async def engine(steps: Steps, *names: str) -> AsyncGenerator[WorkEngine]:
    kinds = [
        Kind(
            name=name,
            step=steps,
            reached=steps.reached,
            is_leased=False,
            wants=lambda *_: True,
            concurrency=SLOTS,
        )
        for name in names
    ]
    engine = WorkEngine(
        kinds,
        leases=NoLeases(),
        breaker=CircuitBreaker(failures=5, open_seconds=30.0, monotonic=lambda: 0.0),
        clock=lambda: 0,
        random=lambda: 0.5,
        options=WorkOptions(close_grace_seconds=0.0),
    )
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


def hint(engine: WorkEngine) -> None:
    for session_id in SESSIONS:
        engine.messages_saved(session_id, 1)


async def test_what_waits_has_no_tasks_of_its_own() -> None:
    steps, before = Steps(), len(asyncio.all_tasks())
    async with engine(steps, SUMMARIZE, INDEX_SEARCH) as background:
        hint(background)
        hint(background)
        await anyio.sleep(0.01)
        assert len(asyncio.all_tasks()) - before <= 2 * SLOTS + 3
        steps.gate.set()
        await background.drain()
    assert sorted(steps.done) == sorted(SESSIONS)


async def test_what_pauses_has_no_tasks_of_its_own() -> None:
    steps, before = Steps(broken=len(SESSIONS)), len(asyncio.all_tasks())
    steps.gate.set()
    async with engine(steps, SUMMARIZE) as background:
        hint(background)
        while steps.broken > 0:  # noqa: ASYNC110
            await anyio.sleep(0.001)
        assert len(asyncio.all_tasks()) - before <= SLOTS + 4
        await background.drain()
    assert sorted(steps.done) == sorted(SESSIONS)


async def test_a_load_that_waits_goes_ahead_of_the_queue() -> None:
    steps = Steps()
    async with engine(steps, SUMMARIZE) as background:
        hint(background)
        await anyio.sleep(0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: background.ensure(SESSIONS[-1], 1, timeout_seconds=30.0))
            await anyio.sleep(0.01)
            steps.gate.set()
        await background.drain()
    assert steps.done.index(SESSIONS[-1]) <= SLOTS


async def test_what_waits_or_pauses_is_cancelled_at_once() -> None:
    steps = Steps(broken=SLOTS)
    async with engine(steps, SUMMARIZE) as background:
        hint(background)
        with anyio.fail_after(30):
            await background.cancel(SESSIONS[SLOTS:])
            steps.gate.set()
            while steps.broken:  # noqa: ASYNC110
                await anyio.sleep(0.001)
            await background.cancel(SESSIONS[:SLOTS])
            await background.drain()
    assert set(steps.done) <= set(SESSIONS[:SLOTS])


async def test_whoever_waits_for_queued_work_hears_of_the_end() -> None:
    steps = Steps()
    async with engine(steps, SUMMARIZE) as background, anyio.create_task_group() as group:
        hint(background)
        answers: list[str] = []

        async def wait() -> None:
            answers.append(await background.ensure(SESSIONS[-1], 1, timeout_seconds=30.0))

        group.start_soon(wait)
        await anyio.sleep(0.01)
        await background.close()
    assert answers == ["idle"]
