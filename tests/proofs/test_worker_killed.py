"""Processes that are killed while they hold leases: whoever works next on the database finds all that they left."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from reactor_memory import Container
from reactor_memory.models.requests import SUMMARIZE
from tests.proofs.agent_process import memory
from tests.proofs.processes import agent_process, read_until
from tests.scenes.counts import count as count_proven
from tests.scenes.fixtures_stores import shared_by_processes

pytestmark = pytest.mark.anyio

FEW, MANY = 2, 200


url = shared_by_processes


async def test_a_few_kills(tmp_path: Path) -> None:
    await kill_and_work(f"sqlite:///{tmp_path / 'memory.db'}", FEW)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_many_kills(url: str) -> None:
    await kill_and_work(url, MANY)


async def kill_and_work(url: str, kills: int) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with memory(url, background=False):
        pass  # the schema is there
    sessions = [f"s{number}" for number in range(kills)]
    for number, session_id in enumerate(sessions):
        word = "saved" if number % 4 == 3 else "held"
        await anyio.to_thread.run_sync(kill_after, url, session_id, word, chance.uniform(0, 0.02))
    async with memory(url) as container:
        with anyio.fail_after(60 + kills):
            for session_id in sessions:
                while not await is_done(container, session_id):  # noqa: ASYNC110 - no event tells of it
                    await anyio.sleep(0.02)
        assert (await container.summary_store().due([SUMMARIZE], now=container.clock()()))[SUMMARIZE] == ()
    count_proven("kills of workers; 0 sessions forgotten or sealed twice", kills)


def kill_after(url: str, session_id: str, word: str, seconds: float) -> None:
    """Kill a process `seconds` after it says this word."""
    with agent_process("hold", url, session_id) as process:
        read_until(process, word)
        time.sleep(seconds)  # noqa: TID251 - the moment is the point
        process.kill()


async def is_done(container: Container, session_id: str) -> bool:
    """Everything that can be sealed is, and nobody holds the session."""
    summary = await container.summary_store().get_summary_head(session_id)
    state = await container.summary_store().work_state(session_id, SUMMARIZE)
    assert state is not None
    return summary is not None and summary.covered_seq == 30 and (state.due_at, state.lease_until) == (None, 0)
