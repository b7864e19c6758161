"""One service for all tests of a module; everybody in it begins what they need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest

from tests.acceptance.service.people import Agent, User
from tests.service.running import RunningService, running_service


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningService]:
    async with running_service(f"sqlite:///{tmp_path_factory.mktemp('service')}/log.db") as service:
        yield service


@pytest.fixture(scope="module")
async def http(service: RunningService) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(service.app)
    async with httpx2.AsyncClient(base_url="http://memory.test", transport=transport) as http:
        yield http


@pytest.fixture
def alice(http: httpx2.AsyncClient, service: RunningService) -> User:
    return User(http, "alice", service.user("alice"))


@pytest.fixture
def bob(http: httpx2.AsyncClient, service: RunningService) -> User:
    return User(http, "bob", service.user("bob"))


@pytest.fixture
def carol(http: httpx2.AsyncClient, service: RunningService) -> User:
    return User(http, "carol", service.user("carol"))


@pytest.fixture
def newcomer(http: httpx2.AsyncClient, service: RunningService) -> User:
    """Somebody who has no conversations yet."""
    name = f"newcomer-{uuid4()}"
    return User(http, name, service.user(name))


@pytest.fixture(scope="module")
async def agent(http: httpx2.AsyncClient, service: RunningService) -> Agent:
    return Agent(http, "assistant", {"X-API-Key": await service.key("assistant")})


@pytest.fixture(scope="module")
async def other_agent(http: httpx2.AsyncClient, service: RunningService) -> Agent:
    return Agent(http, "critic", {"X-API-Key": await service.key("critic")})
