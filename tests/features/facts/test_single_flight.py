"""However many loads wait for a summary, each due segment is read by the summarizer once, also across processes."""

from __future__ import annotations

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, SummarizationError, open_container
from reactor_memory.providers import asked_models
from reactor_memory.testing import append_messages
from tests.acceptance.scenes import USER, memory, save, scripted, settings, talk
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.fixtures_stores import shared_by_processes
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

LOADS = 100
DUE = [tuple(range(first, first + 10)) for first in (1, 11, 21)]
url = shared_by_processes


async def load_at_once(*managers: ConversationManager) -> tuple[set[str], set[str]]:
    """The digests and the freshness of a hundred loads of "s", spread over `managers`."""
    digests: set[str] = set()
    freshness: set[str] = set()

    async def load(manager: ConversationManager) -> None:
        context = await manager.load_history("s", user_id=USER)
        digests.add(context.report.digest)
        freshness.add(context.report.freshness)

    async with anyio.create_task_group() as group:
        for number in range(LOADS):
            group.start_soon(load, managers[number % len(managers)])
    for manager in managers:
        await manager.drain()
    return digests, freshness


async def test_a_hundred_stale_loads_make_one_call_per_segment(url: str) -> None:
    async with memory(scripted(), url, summary={"enabled": False}) as container:
        await save(container.conversation_manager(), "s", talk(32))
    summarizer = scripted(delay_seconds=0.02)
    async with memory(summarizer, url, summary={"lazy_timeout_seconds": 30}) as container:
        digests, freshness = await load_at_once(container.conversation_manager())
    assert [call.seqs for call in summarizer.calls] == DUE
    assert (len(digests), freshness) == (1, {"fresh"})


async def test_loads_of_two_processes_share_the_calls(url: str) -> None:
    """Two containers know nothing of each other: only the lease in the database is between them."""
    left, right = scripted(delay_seconds=0.02), scripted(delay_seconds=0.02)
    async with memory(left, url, summary={"enabled": False}) as container:
        await save(container.conversation_manager(), "s", talk(32))
    patient = {"lazy_timeout_seconds": 30}
    async with memory(left, url, summary=patient) as one, memory(right, url, summary=patient) as other:
        _, freshness = await load_at_once(one.conversation_manager(), other.conversation_manager())
    assert sorted(call.seqs for call in [*left.calls, *right.calls]) == DUE
    assert freshness == {"fresh"}


async def test_while_breaker_of_provider_is_open_load_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_models, "FAILURES", 1)
    monkeypatch.setattr(asked_models, "OPEN_SECONDS", 600)
    down = scripted().then(*[SummarizationError("unavailable", "no answer")] * 9)
    store = FaultyDatabase(memory_database(), at=0, mode="before", operations={"claim"})

    def configure(container: Container) -> None:
        container.database.override(providers.Object(store))
        container.summarizer.override(providers.Object(down))

    patient = {"backoff_seconds": 60, "max_backoff_seconds": 60}
    async with open_container(
        settings(summary={"enabled": True}, background=patient), configure=configure
    ) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        await manager.drain()
        await append_messages(container.message_store(), "other", talk(22), user_id=USER)  # as another process does
        claims = store.calls
        context = await manager.load_history("other", user_id=USER)
        await manager.drain()
    assert len(down.calls) == 1
    assert store.calls == claims
    assert context.report.freshness == "failed"
