"""Caps on what a summarizer may cost: beyond them the offline one reads on, and nothing stops."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers
from msgspec.structs import replace

from reactor_memory import Container, Message, SummarizationError, open_container
from reactor_memory.database.database import Database
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.spending_caps import day_of
from reactor_memory.models.ledger import Extraction, Spending, Usage
from reactor_memory.providers import asked_models
from reactor_memory.testing import FakeClock, ScriptedSummarizer
from tests.acceptance.scenes import USER, eventually, extract, save, settings, talk
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

DAY_SECONDS = 86_400
PRICE = 120


def priced(messages: Sequence[Message]) -> Extraction:
    return replace(extract(messages), usage=Usage(tokens_read=100, tokens_written=20))


@asynccontextmanager
async def memory(
    summarizer: ScriptedSummarizer,
    clock: FakeClock | None = None,
    url: str = "memory://",
    database: Database | None = None,
    **summary: Any,
) -> AsyncGenerator[Container]:
    def configure(container: Container) -> None:
        if database is not None:
            container.database.override(providers.Object(database))
        container.summarizer.override(providers.Object(summarizer))
        container.clock.override(providers.Object(clock or FakeClock()))

    sections = settings(url, summary=summary)
    async with open_container(sections, configure=configure) as container:
        yield container


async def saved(container: Container, session_id: str, length: int, *, start: int = 1) -> None:
    await save(container.conversation_manager(), session_id, talk(length, start=start))
    await container.conversation_manager().drain()


async def readers(container: Container, session_id: str) -> list[str]:
    """Who read each segment of the session."""
    session = (await container.message_store().read_background(session_id)).session
    ledger = await container.summary_store().read_ledger(session_id, session.branch)
    assert {fact.source_seq for fact in ledger.facts} >= set(range(1, ledger.covered_seq, 2))
    return [segment.summarizer for segment in ledger.segments]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["reason"] for record in caplog.records if "cap reached" in record.getMessage()]


def scripted() -> ScriptedSummarizer:
    return ScriptedSummarizer(default=priced)


async def test_a_day_spent_is_read_offline_the_next_is_not(caplog: pytest.LogCaptureFixture) -> None:
    clock, summarizer = FakeClock(), scripted()
    async with memory(summarizer, clock, max_tokens_per_day=2 * PRICE) as container:
        await saved(container, "s", 40)
        assert await readers(container, "s") == ["scripted", "scripted", "extractive", "extractive"]
        await saved(container, "t", 40)
        assert await readers(container, "t") == ["extractive"] * 4
        assert warnings(caplog) == ["summary.max_tokens_per_day"]
        clock.advance(DAY_SECONDS)
        await saved(container, "s", 10, start=41)
        assert (await readers(container, "s"))[4:] == ["scripted"]
        await saved(container, "s", 30, start=51)
        assert (await readers(container, "s"))[5:] == ["scripted", "extractive", "extractive"]
    assert warnings(caplog) == ["summary.max_tokens_per_day"] * 2
    assert len(summarizer.calls) == 4


async def test_a_day_ends_at_midnight_utc() -> None:
    midnight = 1_800_000_000 // DAY_SECONDS * DAY_SECONDS * 1_000_000
    assert (day_of(midnight - 1) + 1, day_of(midnight)) == (
        day_of(midnight),
        day_of(midnight + DAY_SECONDS * 10**6 - 1),
    )


async def test_session_that_has_spent_its_share_leaves_the_others_theirs(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    async with memory(scripted(), clock, max_tokens_per_session=PRICE) as container:
        for session_id in ("s", "t"):
            await saved(container, session_id, 30)
            assert await readers(container, session_id) == ["scripted", "extractive", "extractive"]
        assert warnings(caplog) == ["summary.max_tokens_per_session"] * 2
        clock.advance(DAY_SECONDS)
        await saved(container, "s", 10, start=31)
        assert (await readers(container, "s"))[3:] == ["extractive"]


async def test_nothing_of_the_conversation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with memory(scripted(), max_tokens_per_session=1) as container:
        await saved(container, "s", 30)
    assert warnings(caplog)
    assert "A-00" not in " ".join(str(record.__dict__) for record in caplog.records)


async def test_a_cap_holds_across_restarts_and_for_deleted_sessions(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path / 'memory.db'}", FakeClock()
    async with memory(scripted(), clock, url, max_tokens_per_day=3 * PRICE) as container:
        await saved(container, "s", 30)
        await container.conversation_manager().delete("s", user_id=USER)
    async with memory(scripted(), clock, url, max_tokens_per_day=3 * PRICE) as container:
        await saved(container, "t", 30)
        assert await readers(container, "t") == ["extractive"] * 3


async def test_without_a_cap_spending_is_noted_but_never_asked_for() -> None:
    clock, database = FakeClock(), memory_database()
    asked = FaultyDatabase(database, at=1, mode="before", operations={"read_spending"})
    async with memory(scripted(), clock, database=asked) as container:
        await saved(container, "s", 40)
        assert asked.calls == 0
        assert await database.read(fact_operations.read_spending, "s", day=day_of(clock())) == Spending(
            session=4 * PRICE, day=4 * PRICE
        )


async def test_answers_of_no_use_count(caplog: pytest.LogCaptureFixture) -> None:
    useless = SummarizationError("malformed", "no facts")
    useless.tokens = PRICE
    summarizer = scripted().then(useless, useless)
    clock = FakeClock()

    def is_reached() -> bool:
        clock.advance(1)  # what failed is due again
        return bool(warnings(caplog))

    async with memory(summarizer, clock, max_tokens_per_session=2 * PRICE) as container:
        await saved(container, "s", 30)
        await eventually(is_reached)
        await container.conversation_manager().drain()
        assert await readers(container, "s") == ["extractive"] * 3


async def test_full_summaries_are_capped_too() -> None:
    summarizer = scripted()
    async with memory(summarizer, mode="full", max_tokens_per_session=PRICE) as container:
        await saved(container, "s", 30)
        await saved(container, "s", 20, start=31)
        summary = await container.summary_store().get_summary("s")
    assert len(summarizer.calls) == 1
    assert summary is not None
    assert summary.covered_seq == 40


async def test_what_cap_keeps_from_the_provider_says_nothing_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A breaker that is open does not hold up the offline summarizer."""
    monkeypatch.setattr(asked_models, "FAILURES", 1)
    monkeypatch.setattr(asked_models, "OPEN_SECONDS", 1000)
    down = SummarizationError("unavailable", "no answer")
    down.tokens = PRICE
    summarizer = ScriptedSummarizer(default=down)
    async with memory(summarizer, max_tokens_per_day=1) as container:
        await saved(container, "s", 30)
        assert container.breaker().is_open
        await saved(container, "t", 30)
        assert await readers(container, "t") == ["extractive"] * 3
    assert len(summarizer.calls) == 1


async def test_server_of_openai_format_is_capped_by_what_it_reports(fake_openai: FakeOpenAI) -> None:
    summary = {"provider": "openai", "max_tokens_per_session": 200, "question_message_count": 0}
    models = {"openai": {"model": "a-model", "base_url": fake_openai.base_url}}
    async with open_container(settings(summary=summary, models=models)) as container:
        await saved(container, "s", 40)
        session = (await container.message_store().read_background("s")).session
        ledger = await container.summary_store().read_ledger("s", session.branch)
        context = await container.conversation_manager().load_history("s", user_id=USER)
    assert [each.summarizer for each in ledger.segments] == ["openai:a-model"] * 2 + ["extractive"] * 2
    assert [each.usage.total for each in ledger.segments] == [120, 120, 0, 0]
    assert len(fake_openai.questions) == 2
    assert context.report.freshness == "fresh"
