"""A turn whose process is killed after each of its steps: what was acknowledged stays, and every context holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reactor_memory import open_memory
from tests.acceptance.scenes import USER, settings
from tests.proofs.processes import module_process, rest
from tests.proofs.turn_process import BUDGET, QUESTION

pytestmark = pytest.mark.anyio


async def check_turn_killed_after_each_step(url: str, kills: int) -> None:
    with module_process("tests.proofs.turn_process", url, str(kills)) as process:
        lines = rest(process)
        errors = process.stderr.read() if process.stderr else ""
        assert process.wait() == 0, errors
    assert [line for line in lines if line.startswith("bad")] == [], errors
    acknowledged = [line.split()[1] for line in lines]
    assert len(acknowledged) >= 1.8 * kills

    async with open_memory(settings(url)) as memory:
        async with memory.turn("s", resume=True, user_id=USER, budget=BUDGET) as turn:
            turn.answer("Page 7.")
        messages = [message async for message in memory.stream_messages("s", user_id=USER)]
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    assert [message.content for message in messages if message.role == "user"] == [QUESTION]
    assert messages[-1].content == "Page 7."
    stored = Counter(f"call{each.id[1:]}" for message in messages for each in message.tool_calls)
    real = [message for message in messages if message.role == "tool" and message.content.startswith("page")]
    stored += Counter(f"result{(message.tool_call_id or '')[1:]}" for message in real)
    assert [name for name in acknowledged if name not in stored] == []
    assert max(stored.values()) == 1
    answered = [message.tool_call_id for message in messages if message.role == "tool"]
    assert sorted(answered, key=str) == sorted((each.id for each in sum((m.tool_calls for m in messages), ())), key=str)


async def test_a_killed_turn_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    await check_turn_killed_after_each_step(f"sqlite:///{tmp_path / 'memory.db'}", 5)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_turn_killed_after_each_of_300_steps(tmp_path: Path) -> None:
    await check_turn_killed_after_each_step(f"sqlite:///{tmp_path / 'memory.db'}", 300)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_a_killed_turn_on_postgres_keeps_its_steps(postgres_dsn: str) -> None:
    await check_turn_killed_after_each_step(postgres_dsn, 25)
