"""Two processes on one database: the log has no gap, nobody is told that it is busy, and work is done once."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from reactor_memory import ConversationManager
from tests.acceptance.scenes import memory, save, scripted, talk
from tests.proofs.agent_process import SHARED, SHARED_BATCHES, USER, batch
from tests.proofs.agent_process import memory as memory_of_a_process
from tests.proofs.processes import agent_process, next_line
from tests.scenes.fixtures_stores import shared_by_processes

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NAMES = ("left", "right")
url = shared_by_processes


def calls_in(path: Path) -> list[tuple[int, int, int]]:
    """The process, the first and the last message of each call of the summarizer."""
    lines = path.read_text().splitlines()
    return [(int(process), int(first), int(last)) for process, first, last in map(str.split, lines)]


async def test_two_processes_append_to_one_session_and_read_messages_once(url: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    async with memory_of_a_process(url):
        pass  # the schema is there before both begin
    output = await anyio.to_thread.run_sync(output_of_both, url, calls)
    async with memory_of_a_process(url, calls) as container:
        manager = container.conversation_manager()
        await container.background_work().run_once()
        messages = await manager.read_messages(SHARED, user_id=USER)
        summary = await manager.get_summary(SHARED, user_id=USER)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    for name in NAMES:
        own = [message.content for message in messages if message.content.startswith(name)]
        assert own == [message.content for number in range(SHARED_BATCHES) for message in batch(name, number)]
    check_acknowledged(output, {message.seq: message.content for message in messages})
    read = sorted((first, last) for _, first, last in calls_in(calls))
    assert [first for first, _ in read] == [1, *(last + 1 for _, last in read[:-1])]
    assert summary is not None
    assert summary.covered_seq == read[-1][1] > len(messages) - 40


def output_of_both(url: str, calls: Path) -> str:
    """Both processes run to their end, without an error."""
    with ExitStack() as stack:
        processes = [stack.enter_context(agent_process("share", url, name, str(calls))) for name in NAMES]
        answers = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], [errors for _, errors in answers]
    return "".join(output for output, _ in answers)


def check_acknowledged(output: str, texts: dict[int | None, str]) -> None:
    """Each process was told the right positions."""
    for line in output.splitlines():
        _, name, number, first, last = line.split()
        stored = [texts[seq] for seq in range(int(first), int(last) + 1)]
        assert stored == [message.content for message in batch(name, int(number))]


async def eventually(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not holds():  # noqa: ASYNC110 - another process does it
            await anyio.sleep(0.02)


async def covered(manager: ConversationManager, seq: int) -> None:
    with anyio.fail_after(30):
        while True:
            summary = await manager.get_summary("s", user_id=USER)
            if summary is not None and summary.covered_seq >= seq:
                return
            await anyio.sleep(0.02)


async def test_a_worker_process_summarizes_what_another_saves(url: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    calls.touch()
    idle = scripted()
    async with memory(idle, url, background={"enabled": False}) as container:
        manager = container.conversation_manager()
        with agent_process("work", url, str(calls)) as worker:
            await anyio.to_thread.run_sync(next_line, worker, "ready")
            for start in range(1, 61, 4):
                await save(manager, "s", talk(4, start=start))
                await manager.load_history("s", user_id=USER)
            await eventually(lambda: len(calls_in(calls)) == 6)
            await covered(manager, 60)
            context = await manager.load_history("s", user_id=USER)
    assert [(first, last) for _, first, last in calls_in(calls)] == [(n, n + 9) for n in range(1, 60, 10)]
    assert os.getpid() not in {process for process, _, _ in calls_in(calls)}
    assert idle.calls == []
    assert context.report.freshness == "fresh"
    assert "A-0001" in context.messages[0].content
