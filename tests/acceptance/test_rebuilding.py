"""After a change of the summarizer: everything is extracted anew, once, and what was known serves meanwhile."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory import Memory
from reactor_memory.errors import SessionOwnershipError, SummarizationError
from reactor_memory.models import Message
from reactor_memory.models.ledger import Extraction
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.conftest import Run, small_talk, write_sessions
from tests.acceptance.scenes import USER, agent_memory, extract, memory_blocks, save, scripted, talk

pytestmark = pytest.mark.anyio


def extract_anew(messages: tuple[Message, ...]) -> Extraction:
    found = extract(messages)
    return replace(found, facts=tuple(replace(fact, key="reference") for fact in found.facts), narrative="Told anew.")


def improved() -> ScriptedSummarizer:
    return ScriptedSummarizer(default=extract_anew, prompt_version="2")


async def keys(memory: Memory) -> set[str]:
    return {fact.key for fact in await memory.facts.list("s", user_id=USER)}


async def filled(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()


async def test_every_segment_is_read_once_and_contexts_follow(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    await filled(url)
    async with agent_memory(summarizer := improved(), url) as memory:
        before = await memory.get_summary("s", user_id=USER)
        assert before is not None
        summarizer.hold()
        assert await memory.facts.rebuild("s", user_id=USER) == 6
        assert await memory.facts.rebuild("s", user_id=USER) == 0
        context = await memory.load_history("s", user_id=USER)
        assert (context.report.unread, context.report.freshness) == ((), "fresh")
        assert "A-0005" in repr(memory_blocks(context.messages))
        assert await keys(memory) == {"number"}
        summarizer.let_go()
        await memory.drain()
        assert len(summarizer.calls) == 6
        assert await keys(memory) == {"reference"}
        assert {each.prompt_version for each in await memory.facts.segments("s", user_id=USER)} == {"2"}
        after = await memory.get_summary("s", user_id=USER)
        assert after is not None
        assert (after.covered_seq, after.epoch) == (before.covered_seq, before.epoch + 1)
        blocks = repr(memory_blocks((await memory.load_history("s", user_id=USER)).messages))
        assert "A-0005" in blocks
        assert "Told anew" in blocks or "reference" in blocks


async def test_one_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    await filled(url)
    broken = SummarizationError("server", "down")
    half = ScriptedSummarizer([extract_anew, extract_anew, *[broken] * 5], prompt_version="2")
    async with agent_memory(half, url) as memory:
        await memory.facts.rebuild("s", user_id=USER)
        await memory.drain()
        assert await keys(memory) == {"number", "reference"}
    async with agent_memory(summarizer := improved(), url) as memory:
        await memory.summarize("s", user_id=USER)
        await memory.drain()
        assert len(summarizer.calls) == 4
        assert await keys(memory) == {"reference"}


async def test_corrections_survive_and_erased_messages_stay_erased(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    await filled(url)
    async with agent_memory(summarizer := improved(), url) as memory:
        await memory.facts.correct("s", fact=("order 7", "number"), value="B-7", user_id=USER)
        await memory.erasure.erase("s", seq=5, user_id=USER)
        await memory.facts.rebuild("s", user_id=USER)
        await memory.drain()
        assert not any("A-0005" in repr(call) for call in summarizer.calls)
        facts = {(fact.anchor, fact.key): fact.value for fact in await memory.facts.list("s", user_id=USER)}
        assert facts["order 7", "number"] == "B-7"
        assert facts["order 9", "reference"] == "A-0009"


async def test_an_erasure_while_it_runs_wins() -> None:
    async with agent_memory(summarizer := scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        summarizer.hold()
        await memory.facts.rebuild("s", user_id=USER)
        with anyio.fail_after(30):
            while len(summarizer.calls) < 7:  # noqa: ASYNC110 (what is waited for is a call)
                await anyio.sleep(0.005)
        await memory.erasure.erase("s", seq=5, user_id=USER)
        summarizer.let_go()
        await memory.drain()
        assert 5 not in {fact.source_seq for fact in await memory.facts.list("s", user_id=USER)}


async def test_only_the_owner_rebuilds() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(4))
        with pytest.raises(SessionOwnershipError):
            await memory.facts.rebuild("s", user_id="mallory")
        assert await memory.facts.rebuild("s", user_id=USER) == 0


def test_the_command_rebuilds(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s": small_talk(40)}))
    assert run("summarize", "s").code == 0
    first = run("summarize", "s", "--json").json
    again = run("summarize", "s", "--rebuild", "--json").json
    assert again["covered_seq"] == first["covered_seq"]
