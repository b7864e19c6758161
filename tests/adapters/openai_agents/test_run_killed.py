"""Runs whose processes are killed: what the SDK handed to the session stays, and models take what follows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reactor_memory import open_memory
from tests.acceptance.scenes import USER, settings
from tests.proofs.processes import module_process, rest

pytestmark = pytest.mark.anyio


async def check_runs_killed(url: str, kills: int) -> None:
    with module_process("tests.adapters.openai_agents.run_process", url, str(kills)) as process:
        lines = rest(process)
        errors = process.stderr.read() if process.stderr else ""
        assert process.wait() == 0, errors
    assert [line for line in lines if line.startswith("bad")] == [], errors
    acknowledged = {line.split()[1] for line in lines}
    assert len(acknowledged) >= kills
    async with open_memory(settings(url)) as memory:
        messages = [message async for message in memory.stream_messages("s", user_id=USER)]
    assert [message.content for message in messages if message.role == "user"] == [f"go on {n}" for n in range(kills)]
    stored = Counter(message.tool_call_id for message in messages if message.role == "tool")
    assert acknowledged <= set(stored)
    assert set(stored.values()) == {1}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_killed_runs_keep_what_their_steps_gave(tmp_path: Path) -> None:
    await check_runs_killed(f"sqlite:///{tmp_path / 'memory.db'}", 40)
