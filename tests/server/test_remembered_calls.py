"""Addresses that are asked for again: the framework is passed by, and nobody can tell from the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from litestar.routes import HTTPRoute

from reactor_memory.server import remembered_calls
from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import open_service_container
from tests.server.callers import Service, who_says_so

CALLING = "_call_handler_function"

ONE_ID = {"X-Request-ID": "same"}


@pytest.fixture(scope="module", params=[0, 1_000_000], ids=["cold", "hot"])
async def running(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Service]:
    path: Path = tmp_path_factory.mktemp("service") / "log.db"
    store = {"url": f"sqlite:///{path}", "auto_migrate": True, "hot_bytes": request.param}
    async with open_service_container(ServiceSettings(store=store)) as container:
        app = create_app(container, authenticator=who_says_so)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            yield Service(client)


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the framework routed."""
    paths: list[str] = []
    call = getattr(HTTPRoute, CALLING)

    async def noted(route: HTTPRoute, scope: Any, **parts: Any) -> Any:
        paths.append(scope["path"])
        return await call(route, scope=scope, **parts)

    monkeypatch.setattr(HTTPRoute, CALLING, noted)
    return paths


def told(answer: Any) -> tuple[int, bytes, list[tuple[str, str]]]:
    return answer.status_code, answer.content, sorted(answer.headers.items())


async def test_a_second_request_is_answered_alike_without_routing(service: Service, routed: list[str]) -> None:
    agent, address = service.by("bot", service.user), f"/conversations/{await service.created()}/context"
    routed.clear()
    for query in ("", "?limit=1&report=true", "?form=openai"):
        await service.said(address.split("/")[2], "hello")
        routed.clear()
        answers = [await agent.get(address + query, headers=ONE_ID) for _ in range(4)]
        assert [told(each) for each in answers] == [told(answers[0])] * 4
        assert answers[0].status_code == 200
        assert len(routed) == 1


async def test_words_of_people_are_not_kept(service: Service, routed: list[str]) -> None:
    agent, address = service.by("bot", service.user), f"/conversations/{await service.created()}/context"
    routed.clear()
    for _ in range(3):
        assert (await agent.get(f"{address}?limit=1&query=words")).status_code == 200
    assert len(routed) == 3


async def test_what_was_said_meanwhile_is_in_the_next_answer(service: Service) -> None:
    conversation = await service.created()
    agent = service.by("bot", service.user)
    for number in range(3):
        await service.said(conversation, f"word {number}")
        for _ in range(3):
            shown = (await agent.get(f"/conversations/{conversation}/context")).json()["messages"]
            assert [each["content"] for each in shown] == [f"word {place}" for place in range(number + 1)]


async def test_who_may_not_is_refused_at_an_address_known(service: Service, routed: list[str]) -> None:
    conversation = await service.created()
    path = f"/v1/agent/conversations/{conversation}/context"
    others = [service.of(None), service, service.by("bot", "nobody-else")]
    before = [told(await other.ask("GET", path, headers=ONE_ID)) for other in others]
    for _ in range(3):
        assert (await service.by("bot", service.user).get(path)).status_code == 200
    routed.clear()
    after = [told(await other.ask("GET", path, headers=ONE_ID)) for other in others]
    assert after == before
    assert [status for status, *_ in after] == [401, 403, 404]
    assert routed == []


async def test_what_wants_another_answer_takes_the_long_way(service: Service, routed: list[str]) -> None:
    agent, address = service.by("bot", service.user), f"/conversations/{await service.created()}/context"
    for _ in range(2):
        await agent.get(address)
    refused = await agent.get(address, headers={"Accept": "text/html"})
    head = await agent.ask("HEAD", address)
    assert (refused.status_code, head.status_code, head.content) == (406, 200, b"")
    routed.clear()
    await agent.get(address, headers={"Origin": "https://page.example"})
    assert len(routed) == 1


async def test_an_address_that_cannot_be_read_is_told_each_time(service: Service) -> None:
    agent, address = service.by("bot", service.user), f"/conversations/{await service.created()}/context"
    for _ in range(3):
        assert (await agent.get(f"{address}?limit=0")).json()["code"] == "bad_parameter"
        assert (await agent.get(f"{address}?unknown=1")).json()["code"] == "bad_parameter"


async def test_so_many_addresses_are_remembered_and_no_more(
    service: Service, routed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_calls, "MOST_REMEMBERED", 2)
    agent, address = service.by("bot", service.user), f"/conversations/{await service.created()}/context"
    for limit in (1, 2, 3):
        await agent.get(f"{address}?limit={limit}")
    routed.clear()
    for limit in (3, 1):
        await agent.get(f"{address}?limit={limit}")
    assert len(routed) == 1
