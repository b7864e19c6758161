"""A process that is killed while it adds and summarises: what was acknowledged is there, and no link dangles."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.features.chat_memory.test_faults import check_whole
from tests.proofs.chat_process import EVERY, memory
from tests.proofs.processes import ROOT, read_until, rest

pytestmark = pytest.mark.slow

ROUNDS = 15


@pytest.mark.timeout(300)
def test_killed_at_any_moment_sqlite(tmp_path: Path) -> None:
    kill_and_check(f"sqlite:///{tmp_path / 'memory.db'}")


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_killed_at_any_moment_postgres(postgres_dsn: str) -> None:
    kill_and_check(postgres_dsn)


def kill_and_check(url: str) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(ROUNDS):
        lines = add_until_killed(url, f"c{number}", chance.uniform(0, 0.15))
        acknowledged = max(int(line.split()[1]) for line in lines)
        asyncio.run(check(url, f"c{number}", acknowledged))


def add_until_killed(url: str, conversation_id: str, seconds: float) -> list[str]:
    command = [sys.executable, "-m", "tests.proofs.chat_process", url, conversation_id]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = read_until(process, "ack")
            time.sleep(seconds)  # noqa: TID251 - the moment is the point
        finally:
            process.kill()
        return lines + rest(process)


async def check(url: str, conversation_id: str, acknowledged: int) -> None:
    async with memory(url) as container:
        chat = container.chat_memory()
        stored = len(await chat.get_messages(conversation_id, view="originals"))
        assert stored >= acknowledged
        summaries = await check_whole(chat, conversation_id, stored)
        assert summaries in (stored // EVERY, stored // EVERY - 1)  # the last one may not have been made
