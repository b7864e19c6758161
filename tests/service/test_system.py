"""The bare service: health, and how it answers what it cannot serve."""

from __future__ import annotations

from pathlib import Path

import pytest
from litestar.testing import AsyncTestClient

from reactor_memory.container import open_memory
from reactor_memory.http.app import create_app
from reactor_memory.http.guards import Connection
from reactor_memory.http.problems import UNAUTHENTICATED, ProblemError
from reactor_memory.principals import Principal
from reactor_memory.settings import Settings

pytestmark = pytest.mark.anyio


async def who_says_so(connection: Connection) -> Principal:
    name = connection.headers.get("x-test-user")
    if name is None:
        raise ProblemError(UNAUTHENTICATED, "no")
    return Principal(user_id=name)


@pytest.fixture
async def client(tmp_path: Path):
    settings = Settings(store={"url": f"sqlite:///{tmp_path}/log.db", "auto_migrate": True})
    async with open_memory(settings) as container:
        async with AsyncTestClient(create_app(container, authenticator=who_says_so)) as client:
            yield client


async def test_health_needs_nobody(client) -> None:
    answer = await client.get("/v1/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_every_answer_names_the_request(client) -> None:
    answer = await client.get("/nowhere", headers={"X-Request-ID": "mine-1"})
    assert answer.status_code == 404
    assert answer.headers["x-request-id"] == answer.json()["requestId"] == "mine-1"
    assert answer.headers["content-type"] == "application/problem+json"


async def test_an_id_that_is_not_sane_is_replaced(client) -> None:
    answer = await client.get("/v1/health", headers={"X-Request-ID": "a b"})
    assert len(answer.headers["x-request-id"]) == 32


async def test_an_unknown_parameter_is_named(client) -> None:
    answer = await client.get("/v1/health?deep=1")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "deep")
