"""Summarising in a chat memory, cut off or failing at every step: nothing is lost, doubled or left dangling."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, Settings, open_container
from reactor_memory.database.operations import Batch, Query
from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.database.sqlite_transactions import SqliteSession
from reactor_memory.errors import GenericMemoryError, StoreUnavailableError
from reactor_memory.features.chat_memory import ChatMemoryService
from tests.acceptance.scenes import scripted, talk, texts
from tests.doubles.faulty_database import FaultyDatabase, Mode
from tests.scenes.fixtures_stores import shared_by_processes
from tests.scenes.interruption import Way, cancelled_at
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

EVERY = 4


@asynccontextmanager
async def chat(
    url: str, retention: str = "archive", configure: Callable[[Container], None] = lambda container: None
) -> AsyncGenerator[Container]:
    def override(container: Container) -> None:
        container.summarizer.override(providers.Object(scripted()))
        configure(container)

    chosen = {"strategy": "summarize", "summarize_every_n": EVERY, "retention": retention, "on_hook_error": "raise"}
    settings = Settings(
        store={"url": url}, summary={"enabled": False}, tokens={"counter": "estimate"}, chat_memory=chosen
    )
    async with open_container(settings, configure=override) as container:
        yield container


async def check_whole(memory: ChatMemoryService, conversation_id: str, expected: int) -> int:
    """Every message is there once, as itself or behind one summary, and links lead somewhere; how many summaries."""
    originals = await memory.get_messages(conversation_id, view="originals")
    effective = await memory.get_messages(conversation_id, view="effective")
    records = {each.metadata_id: each for each in await memory.list_summarization_metadata(conversation_id)}
    told = [each for each in await memory.get_messages(conversation_id) if each.role == "summary"]
    assert [message.metadata["summaryMetadataId"] for message in told] == list(records)
    assert {record.summary_message_id for record in records.values()} == {message.message_id for message in told}
    behind = [each for record in records.values() for each in record.summarized_message_ids]
    single = [message.message_id for message in effective if message.role != "summary"]
    assert len({*behind, *single}) == len(behind) + len(single) == expected
    if all(record.retention != "delete" for record in records.values()):
        assert texts(originals) == texts(talk(expected))
    return len(records)


url = shared_by_processes


class Failing:
    """Fails statement number `at` (from 1) of those that run while it is armed."""

    def __init__(self) -> None:
        self.at = 0
        self.names: list[str] = []

    def meet(self, step: object) -> None:
        if self.at and isinstance(step, (Query, Batch)):
            self.names.append(step.name)
            if len(self.names) == self.at:
                raise StoreUnavailableError("store: cut off by the test")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    failing = Failing()
    execute, fetch = SqliteSession.execute, PostgresDatabase._fetch

    def failing_execute(session: SqliteSession, step: Any) -> Any:
        failing.meet(step)
        return execute(session, step)

    async def failing_fetch(database: PostgresDatabase, connection: Any, step: Any) -> Any:
        failing.meet(step)
        return await fetch(database, connection, step)

    monkeypatch.setattr(SqliteSession, "execute", failing_execute)
    monkeypatch.setattr(PostgresDatabase, "_fetch", failing_fetch)
    return failing


@pytest.mark.parametrize("retention", ["keep", "archive", "delete"])
async def test_cut_off_at_any_statement_conversation_is_as_it_was(url: str, failing: Failing, retention: str) -> None:
    async with chat(url, retention) as container:
        memory = container.chat_memory()
        await memory.add_messages("c", talk(EVERY - 1))
        await container.conversation_manager().save_history("c", talk(1, start=EVERY))
        before = await memory.get_messages("c")
        for at in count(1):
            failing.at, failing.names = at, []
            try:
                await container.summarization_strategy().post_add_messages_hook("c", 1, EVERY)
            except StoreUnavailableError:
                failing.at = 0
                assert await memory.get_messages("c") == before
                assert await check_whole(memory, "c", EVERY) == 0
            else:
                break
        failing.at = 0
        assert "insert_entry" in failing.names
        assert await check_whole(memory, "c", EVERY) == 1


@pytest.mark.parametrize("mode", ["before", "after"])
@pytest.mark.parametrize("retention", ["keep", "archive", "delete"])
async def test_a_store_that_fails_at_any_call(mode: Mode, retention: str) -> None:
    for at in count(1):
        faulty = FaultyDatabase(memory_database(), at=at, mode=mode)

        def configure(container: Container, faulty: FaultyDatabase = faulty) -> None:
            container.database.override(providers.Object(faulty))

        async with chat("memory://", retention, configure) as container:
            memory = container.chat_memory()
            stored = False
            try:
                await memory.add_messages("c", talk(EVERY), idempotency_key="k")
            except GenericMemoryError as error:
                stored = error.messages_stored
            faulty.heal()
            if stored:
                await check_whole(memory, "c", EVERY)
            await memory.add_messages("c", talk(EVERY), idempotency_key="k")
            assert await check_whole(memory, "c", EVERY) == 1
        if not faulty.failures:
            return


@pytest.mark.parametrize("way", ["task", pytest.param("scope", marks=pytest.mark.slow)])
async def test_cancelled_at_any_await(url: str, way: Way) -> None:
    async with chat(url, "delete") as container:
        memory = container.chat_memory()
        for at in count():
            conversation_id = f"c{at}"
            with anyio.fail_after(30):
                adding = memory.add_messages(conversation_id, talk(EVERY), idempotency_key="k")
                cancelled = await cancelled_at(adding, at, way)
                await memory.add_messages(conversation_id, talk(EVERY), idempotency_key="k")
                assert await check_whole(memory, conversation_id, EVERY) == 1
            if not cancelled:
                break


@pytest.mark.parametrize("view", ["full", "effective"])
async def test_a_reader_sees_a_conversation_before_or_after_a_summary(url: str, view: Any) -> None:
    """Never in between, where the messages are gone and the summary is not there yet."""

    def seen() -> Iterator[tuple[int, int]]:
        for messages in shown:
            summaries = sum(message.role == "summary" for message in messages)
            yield summaries, len(messages) - summaries

    shown: list[Any] = []
    async with chat(url) as container:
        memory = container.chat_memory()
        await container.conversation_manager().save_history("c", talk(40))
        done = anyio.Event()

        async def read() -> None:
            while not done.is_set():
                shown.append(await memory.get_messages("c", view=view))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await container.summarization_strategy().post_add_messages_hook("c", 40, 40)
            done.set()
    assert all(messages + EVERY * summaries == 40 for summaries, messages in seen())
