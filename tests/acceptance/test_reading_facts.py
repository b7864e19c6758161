"""A load reads the facts of a summary when its window moves, and at no other time."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from reactor_memory.core.joined_context_source import JoinedContextSource
from reactor_memory.models.requests import ContextQuery, ContextRows
from tests.acceptance.scenes import USER, agent_memory, save, scripted, talk

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["ledger", "full"])
async def test_facts_are_read_when_the_window_moves(url: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    async with agent_memory(scripted(), url, summary={"mode": mode}) as memory:
        store = memory.container.message_store()
        read = store.read_context

        async def watched(query: ContextQuery) -> ContextRows:
            asked.append(query.facts)
            return await read(query)

        monkeypatch.setattr(store, "read_context", watched)
        blocks, moves = "", 0
        for start in range(1, 100, 2):
            await save(memory, "s", talk(2, start=start))
            await memory.drain()
            asked.clear()
            context = await memory.load_history("s", user_id=USER)
            shown = context.messages[0].content
            moved = "Facts" in shown and shown != blocks
            assert asked == ([False, True] if moved else [False])
            assert not moved or "A-0001" in shown
            blocks, moves = shown, moves + moved
        assert moves > 5


async def test_two_stores_are_joined_with_facts_when_asked(tmp_path: Path) -> None:
    async with agent_memory(scripted(), f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        store = memory.container.message_store()
        await save(memory, "s", talk(30))
        await memory.drain()
        joined = JoinedContextSource(store, memory.container.summary_store())
        query = ContextQuery(session_id="s", user_id=USER, last_count=5, trigger_message_count=20, max_messages=9)
        for facts in (False, True):
            asked = await store.read_context(replace(query, facts=facts))
            assert asked.summary is not None
            assert await joined.read_context(replace(query, facts=facts)) == asked


async def test_in_full_mode_the_facts_of_the_summary_are_read(url: str) -> None:
    async with agent_memory(scripted(), url, summary={"mode": "full"}) as memory:
        await save(memory, "s", talk(40))
        await memory.drain()
        summary = await memory.container.conversation_manager().get_summary("s", user_id=USER)
        assert summary is not None
        facts = await memory.facts.list("s", user_id=USER)
        assert facts == summary.facts() != ()
        last = max(fact.source_seq for fact in facts)
        earlier = await memory.facts.list("s", user_id=USER, as_of_seq=last - 1)
        assert earlier == tuple(fact for fact in facts if fact.source_seq < last)
        assert [each.fact for each in await memory.facts.trace("s", user_id=USER)] == list(facts)
        pin = await memory.pins.add("s", fact=(facts[0].anchor, facts[0].key), user_id=USER)
        assert facts[0].value in pin.text
