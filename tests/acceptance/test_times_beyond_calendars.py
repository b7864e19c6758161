"""The time of a message is any number that its caller gives. No part of memory breaks where no calendar has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.adapters.session_tools import session_tools
from reactor_memory.evaluation.transcripts import to_line
from reactor_memory.studio.rendering import moment as studio_moment
from reactor_memory.text.moments import moment_of
from tests.acceptance.conftest import Run, write_sessions

pytestmark = pytest.mark.anyio

YEAR_10000 = 253_402_300_800_000_000
YEAR_1 = -62_135_596_800_000_000
BEYOND = {2**62, -(2**62), YEAR_10000, YEAR_1 - 1}
TIMES = sorted(BEYOND | {YEAR_10000 - 1, YEAR_1, -1, 0})


def talk(at: int) -> list[Message]:
    """Relative times in it, whose dates need that of the message."""
    said = (
        "My order number is A-1, sent yesterday.",
        "Noted: A-1.",
        "Please call me at 555-0100 tomorrow.",
        "I will call you next Tuesday.",
    )
    make = (Message.user, Message.assistant)
    return [make[number % 2](said[number % 4], created_at=at) for number in range(40)]


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    settings = Settings(
        store={"url": "memory://"},
        summary={"enabled": True},
        search={"enabled": True},
        tokens={"counter": "estimate"},
    )
    async with open_memory(settings) as memory:
        yield memory


async def test_a_log_of_any_time_gets_its_memory(memory: Memory) -> None:
    for at in TIMES:
        session_id = str(at)
        await memory.save_history(session_id, talk(at), user_id="ann")
        await memory.summarize(session_id, user_id="ann")
        work = await memory.work_state(session_id, user_id="ann")
        assert work is None or (work.due_at, work.last_error) == (None, None), at
        facts = await memory.facts.list(session_id, user_id="ann")
        assert any("A-1" in fact.value for fact in facts), at
        assert all("_said_" not in fact.key or at not in BEYOND for fact in facts), at
        context = await memory.load_history(session_id, user_id="ann", query="order number A-1", budget=300)
        assert context.part("recall") or context.part("facts"), at
        await memory.explain(session_id, user_id="ann", budget=300)
        tools = {tool.name: tool for tool in session_tools(memory, session_id, user_id="ann")}
        assert "My order number is A-1" in await tools["memory_read"](seq=1), at


def test_times_are_written_as_what_they_are(run: Run, folder: Path) -> None:
    write_sessions(folder / "f.jsonl", {"s": talk(2**62), "t": talk(YEAR_1 - 1)})
    assert run("import", "f.jsonl").code == 0
    for command in (["show", "s"], ["context", "t"], ["sessions"], ["export", "t"]):
        done = run(*command)
        assert (done.code, done.err) == (0, ""), command
    for at in TIMES:
        assert (moment_of(at) is None) == (at in BEYOND)
        assert (studio_moment(at) == f"{at} us") == (at in BEYOND)
        assert to_line("s", talk(at))
