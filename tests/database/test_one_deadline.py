"""A call has one deadline for all that it asks, and what outlives the call does not have it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from reactor_memory import Message
from reactor_memory.database.postgres_pool import PostgresPool
from reactor_memory.database.sqlite_thread import SqliteThread
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.server.app import create_app
from reactor_memory.server.idempotency import RELEASE_SECONDS
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.scenes import USER, save, scripted, service_parts, talk
from tests.scenes.fixtures_stores import shared_by_processes
from tests.scenes.troubled_databases import asked, asked_at_once, stalls
from tests.server.callers import Service, who_says_so

pytestmark = pytest.mark.anyio

LIMIT_SECONDS = 1.0
STEP_SECONDS = 0.7
url = shared_by_processes


def quick(**sections: Any) -> dict[str, Any]:
    return {"store": {"timeout_seconds": LIMIT_SECONDS, "inline_loads": "never"}, **sections}


def slow_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes most of the time that a call has, though none is too late by itself."""
    for engine in (SqliteThread, PostgresPool):
        monkeypatch.setattr(engine, "run", slowed(engine.run))


def slowed(run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def slowly(*arguments: Any, **named: Any) -> Any:
        await anyio.sleep(STEP_SECONDS)
        return await run(*arguments, **named)

    return slowly


ORDER = ("order 1", "number")
Call = Callable[[ServiceContainer], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "correct_fact": lambda memory: memory.facts().correct("s", fact=ORDER, value="B-1", user_id=USER),
    "read_facts": lambda memory: memory.facts().list("s", user_id=USER),
    "search": lambda memory: memory.conversation_manager().search("s", "order", user_id=USER),
    "pin": lambda memory: memory.pins().add("s", fact=ORDER, user_id=USER),
}


@pytest.mark.parametrize("name", CALLS)
async def test_several_reads_have_one_deadline(url: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with service_parts(scripted(), url, **quick()) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        await manager.drain()
        await CALLS[name](container)
        slow_down(monkeypatch)
        async with stalls() as waited:
            answer = await asked(lambda: CALLS[name](container))
        monkeypatch.undo()
    assert isinstance(answer.error, StoreUnavailableError)
    assert answer.seconds < LIMIT_SECONDS + STEP_SECONDS + 0.5 + waited.seconds


async def test_a_load_does_without_recall_rather_than_be_late(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with service_parts(scripted(), url, **quick()) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(32))
        await manager.drain()
        await manager.load_history("s", query="", user_id=USER)  # the next one finds the layout, and reads once
        slow_down(monkeypatch)
        load = [lambda: manager.load_history("s", query="order", user_id=USER)]
        (answer,) = await asked_at_once(load, within_seconds=LIMIT_SECONDS + STEP_SECONDS + 0.5)
        monkeypatch.undo()
    assert len(answer.result.messages) > 2


async def test_a_load_never_waits_for_a_summary_beyond_its_deadline(url: str) -> None:
    async with service_parts(scripted(), url, **quick(summary={"enabled": False})) as container:
        await save(container.conversation_manager(), "s", talk(32))
    summarizer = scripted()
    summarizer.hold()
    async with service_parts(summarizer, url, **quick(summary={"lazy_timeout_seconds": 60})) as container:
        manager = container.conversation_manager()
        (answer,) = await asked_at_once([lambda: manager.load_history("s", user_id=USER)], within_seconds=LIMIT_SECONDS)
        assert (answer.result.report.strategy, answer.result.report.covered_seq) == ("take_last", 0)
        # the work that the load began goes on, longer than the load might take
        await anyio.sleep(LIMIT_SECONDS)
        summarizer.let_go()
        await manager.drain()
        summary = await manager.get_summary("s", user_id=USER)
        assert summary is not None
        assert summary.covered_seq >= 20


async def test_the_time_of_the_model_does_not_count(url: str) -> None:
    async with service_parts(scripted(), url, store={"timeout_seconds": 0.5}) as container:
        manager = container.conversation_manager()
        async with manager.turn("s", Message.user("hello"), user_id=USER) as turn:
            await anyio.sleep(0.8)
            turn.answer("hi")
        assert len(await manager.read_messages("s", user_id=USER)) == 2


# -- over HTTP --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(url: str) -> AsyncGenerator[Service]:
    sections = {"search": {"enabled": True}, "quotas": {"max_stored_bytes": 1_000_000}}
    async with service_parts(scripted(), url, **quick(**sections)) as container:
        app = create_app(container, authenticator=who_says_so)
        await container.response_streams().open()
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            yield Service(client, user="ann")
        await container.response_streams().close()


async def test_a_request_of_several_reads_has_one_deadline(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(url) as service:
        conversation = await service.created()
        await service.said(conversation, "hello")
        slow_down(monkeypatch)
        (answer,) = await asked_at_once(
            [lambda: service.post(f"/conversations/{conversation}/messages", {"content": "more"}, key="k")],
            within_seconds=LIMIT_SECONDS + 2 * STEP_SECONDS + RELEASE_SECONDS,
        )
        monkeypatch.undo()
        assert answer.result.status_code == 503
        # the key is free for the repetition
        again = await service.post(f"/conversations/{conversation}/messages", {"content": "more"}, key="k")
        assert again.status_code == 201


async def test_a_slow_body_is_the_time_of_its_caller(url: str) -> None:
    async with serving(url) as service:
        conversation = await service.created()

        async def body() -> AsyncIterator[bytes]:
            yield b'{"content": '
            await anyio.sleep(1.5 * LIMIT_SECONDS)
            yield b'"hello"}'

        answer = await service.client.post(
            f"/v1/user/conversations/{conversation}/messages",
            content=body(),
            headers={"x-test-user": "ann", "content-type": "application/json"},
        )
        assert answer.status_code == 201, answer.text


async def test_streams_and_waiting_agents_last_longer_than_a_call(url: str) -> None:
    async with serving(url) as service:
        conversation = await service.created()
        bot = service.by("bot", "ann")
        path = f"/conversations/{conversation}/responses"
        started = (await bot.post(path, {"producer": "p"})).json()
        mine = f"{path}/{started['id']}"
        got: list[Any] = []

        async def follow() -> None:
            got.append(await service.get(f"{mine}/events"))

        async def wait() -> None:
            got.append(await bot.get(f"{mine}?wait={2 * LIMIT_SECONDS}"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            tasks.start_soon(wait)
            await anyio.sleep(1.5 * LIMIT_SECONDS)
            piece = {"fence": started["fence"], "firstEvent": 1, "texts": ["late"]}
            assert (await bot.post(f"{mine}/chunks", piece)).status_code == 200
            ended = await bot.post(f"{mine}/complete", {"fence": started["fence"], "state": "completed"})
            assert ended.status_code == 200, ended.text
        assert [answer.status_code for answer in got] == [200, 200]
        assert any("late" in answer.text and "event: end" in answer.text for answer in got)
