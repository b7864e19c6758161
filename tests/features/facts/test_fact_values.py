"""Facts come back from every store as they were, whatever they say and however many they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest

from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Category, Fact, Segment, Summary, facts_to_json
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from tests.scenes.stores import memory_store, postgres_store, sqlite_store

pytestmark = pytest.mark.anyio

VALUES = {
    "quotes": "it's \"quoted\" `twice`, 'DROP TABLE facts; --",
    "scripts": "서울 東京 Köln Москва مرحبا",
    "emoji": "👩‍👩‍👧 ✈️ 🇰🇷",
    "long": "x" * 5_000,
    "json": '{"status": ["a", null, {"b": "\\u0041"}]}',
    "lines": "one\ntwo\r\n\ttabs \u2028",
}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def closed_store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "postgres":
        return postgres_store(request.getfixturevalue("postgres_dsn"))
    return memory_store() if request.param == "memory" else sqlite_store(tmp_path / "memory.db")


@pytest.fixture
async def store(closed_store: Any) -> AsyncIterator[Any]:
    await closed_store.open()
    yield closed_store
    await closed_store.close()


def fact(seq: int, value: str, category: Category = "GENERAL") -> Fact:
    return Fact(anchor=value[:200], key=value[:200], value=value, category=category, source_seq=seq, verified=True)


async def leased(store: Any) -> Lease:
    lease = await store.summaries.claim("s", SUMMARIZE, now=wall_clock(), lease_microseconds=60_000_000)
    assert lease is not None
    return lease


async def record(store: Any, facts: list[Fact]) -> None:
    """The facts, in the ledger and in the summary."""
    await append_messages(store, "s", numbered(4))
    segment = Segment(
        conversation_id="s", start_seq=1, end_seq=4, source_hash="h", summarizer="scripted", prompt_version="1"
    )
    summary = Summary(facts_json=facts_to_json(tuple(facts)), covered_seq=4, version=1)
    lease = await leased(store)
    assert await store.summaries.record_segment(lease, segment, facts, summary)
    await store.summaries.release(lease, due_at=None)


async def check(store: Any, facts: list[Fact]) -> None:
    summary = await store.summaries.get_summary("s")
    assert summary.facts() == tuple(facts)
    session = (await store.read_background("s")).session
    assert (await store.summaries.read_ledger("s", session.branch)).facts == tuple(facts)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_whatever_a_fact_says_it_comes_back_unchanged(store: Any, value: str) -> None:
    facts = [fact(1, value)]
    await record(store, facts)
    await check(store, facts)


async def test_every_category_comes_back(store: Any) -> None:
    facts = [fact(1, f"value of {category}", category) for category in get_args(Category)]
    await record(store, facts)
    await check(store, facts)


async def test_a_hundred_facts_with_quotes_come_back_in_their_order(store: Any) -> None:
    facts = [fact(1 + number % 4, f'it\'s "number" {number}') for number in range(100)]
    await record(store, facts)
    await check(store, facts)


async def test_a_summary_without_facts_comes_back(store: Any) -> None:
    await record(store, [])
    await check(store, [])


async def test_a_summary_grows_from_ten_facts_to_a_hundred(store: Any) -> None:
    facts = [fact(1, f"value {number}") for number in range(100)]
    await record(store, facts[:10])
    lease = await leased(store)
    for version, count in enumerate(range(20, 101, 10), start=2):
        summary = Summary(facts_json=facts_to_json(tuple(facts[:count])), covered_seq=4, version=version)
        assert await store.summaries.put_summary(lease, summary)
        assert await store.summaries.get_summary("s") == summary
    assert len((await store.summaries.get_summary("s")).facts()) == 100
