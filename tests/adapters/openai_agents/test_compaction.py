"""The SDK's own compaction over our session: it clears and adds again, and nothing is lost by that."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from agents import Agent, ModelResponse, Runner
from agents.memory import OpenAIResponsesCompactionSession
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputItem

from reactor_memory import Memory, Settings, open_memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.adapters.openai_agents.scripted import ScriptedModel, says, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("mode", ["input", "previous_response_id"])
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAB=="}
LAST = {
    "id": "msg_9",
    "type": "message",
    "role": "user",
    "status": "completed",
    "content": [{"type": "input_text", "text": "and the last one?"}],
}


@pytest.fixture
async def any_memory(url: str) -> AsyncIterator[Memory]:
    async with open_memory(Settings(store={"url": url})) as memory:
        yield memory


class Compactor:
    """The endpoint that compacts; `asked` has the bodies of the requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.path.endswith("/responses/compact")
        self.asked.append(json.loads(request.content))
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        body = {
            "id": "resp_9",
            "object": "response.compaction",
            "created_at": 1,
            "output": [LAST, COMPACTED],
            "usage": usage,
        }
        return httpx2.Response(200, json=body)


class AnsweringInTurn(ScriptedModel):
    """Its responses have ids."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        response = await super().get_response(*args, **kwargs)
        response.response_id = f"resp_{len(self.seen)}"
        return response


def compacting(session: ReactorMemorySession, compactor: Compactor, **options: Any) -> OpenAIResponsesCompactionSession:
    http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(compactor))
    client = AsyncOpenAI(api_key="none", http_client=http_client)
    return OpenAIResponsesCompactionSession("s", session, client=client, **options)


def said(count: int) -> list[Any]:
    return [
        {"role": "user", "content": f"Order A-{1000 + number} goes to room {number}."}
        if number % 2
        else {"role": "assistant", "content": f"Noted, entry {number}."}
        for number in range(1, count + 1)
    ]


async def nothing_is_lost(memory: Memory, count: int) -> None:
    """The originals are in the log, all their facts in the ledger, and contexts show them."""
    log = await memory.read_messages("s", archived=True)
    assert [message.content for message in log[:count]] == [item["content"] for item in said(count)]
    await memory.drain()
    facts = await memory.facts.list("s")
    stated = " ".join(f"{fact.anchor} {fact.key} {fact.value}" for fact in facts)
    assert all(f"A-{1000 + number}" in stated for number in range(1, count + 1, 2))


@MODES
@pytest.mark.parametrize("count", [9, 60])
async def test_forced_compaction_archives_what_it_compacts(any_memory: Memory, mode: Any, count: int) -> None:
    compactor = Compactor()
    session = ReactorMemorySession(any_memory, "s")
    compaction = compacting(session, compactor)
    await compaction.add_items(said(count))
    await compaction.run_compaction({"force": True, "response_id": "resp_1", "compaction_mode": mode})
    assert len(compactor.asked) == 1
    assert ("previous_response_id" in compactor.asked[0]) == (mode == "previous_response_id")
    await nothing_is_lost(any_memory, count)
    items = await session.get_items()
    assert items[-2:] == [LAST, COMPACTED]
    assert all(item.get("role") == "system" for item in items[:-2])
    assert "A-1001" in texts(items[:-2])
    assert "Noted, entry 2." not in texts(items[-2:])
    assert await ReactorMemorySession(any_memory, "s", with_memory=False).get_items() == [LAST, COMPACTED]


@MODES
@pytest.mark.parametrize("with_memory", [True, False])
async def test_automatic_compaction_archives_what_it_compacts(any_memory: Memory, mode: Any, with_memory: bool) -> None:
    compactor = Compactor()
    session = ReactorMemorySession(any_memory, "s", with_memory=with_memory)
    compaction = compacting(session, compactor, compaction_mode=mode)
    answers: list[list[ResponseOutputItem]] = [
        [says(f"Noted, entry {number}.", id=f"msg_{number}")] for number in range(14)
    ]
    model = AnsweringInTurn(*answers)
    agent = Agent(name="desk", model=model)
    for number in range(12):
        await Runner.run(agent, f"Order A-{1000 + number} goes to room {number}.", session=compaction)
    assert len(compactor.asked) == 1
    log = await any_memory.read_messages("s", archived=True)
    for number in range(12):
        assert sum(f"A-{1000 + number} " in message.content for message in log) == 1
        assert sum(f"entry {number}." in message.content for message in log) == 1
    await any_memory.drain()
    assert "A-1003" in str(await any_memory.facts.list("s"))
    await Runner.run(agent, "What goes to room 3?", session=compaction)
    seen = model.seen[-1]
    assert COMPACTED in seen
    assert "entry 3." not in texts([item for item in seen if item.get("role") != "system"])
    assert with_memory == ("A-1003" in texts(seen))


async def test_when_replacing_fails_the_originals_are_all_there(
    any_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ReactorMemorySession(any_memory, "s")
    compaction = compacting(session, Compactor())
    await compaction.add_items(said(10))
    add, calls = session.add_items, 0

    async def fails_once(items: list[Any]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError
        await add(items)

    monkeypatch.setattr(session, "add_items", fails_once)
    with pytest.raises(ConnectionError):
        await compaction.run_compaction({"force": True, "compaction_mode": "input"})
    assert await session.get_items(100) == said(10)
    log = await any_memory.read_messages("s", archived=True)
    assert [message.content for message in log[:10]] == [item["content"] for item in said(10)]


async def test_a_clear_without_a_compaction_stays_one(any_memory: Memory) -> None:
    session = ReactorMemorySession(any_memory, "s")
    await session.add_items(said(30))
    await any_memory.drain()
    await session.clear_session()
    await session.add_items([{"role": "user", "content": "a new beginning"}])
    await session.add_items([COMPACTED])
    assert await session.get_items() == [{"role": "user", "content": "a new beginning"}, COMPACTED]
    assert await any_memory.facts.list("s") == ()
    assert await any_memory.restore("s") == 30
    assert len(await session.get_items(100)) == 32
