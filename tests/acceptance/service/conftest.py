"""One service for all tests of a module; everybody in it begins what they need. It stands on SQLite, and in slow runs
on PostgreSQL behind row-level security, with plain and with distributed tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import httpx2
import pytest

from tests.acceptance.service.people import Agent, User
from tests.scenes.postgres_server import PostgresServer
from tests.server.running import RunningService, running_service


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def fenced_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database as a role sees it that owns nothing and that the fence around the rows of users binds."""
    with postgres_server.database(migrated=True) as dsn, postgres_server.ordinary_role(dsn) as url:
        yield url


@pytest.fixture(scope="module")
def sharded_url(sharded_server: PostgresServer) -> Iterator[str]:
    """As `fenced_url`, with tables that are distributed over hash partitions."""
    with sharded_server.database(migrated=True) as dsn, sharded_server.ordinary_role(dsn) as url:
        yield url


SLOW = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=SLOW), pytest.param("shards", marks=SLOW)]
)
def service_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('service')}/log.db"
    return request.getfixturevalue("fenced_url" if request.param == "postgres" else "sharded_url")


@pytest.fixture(scope="module")
async def service(service_url: str) -> AsyncIterator[RunningService]:
    async with running_service(service_url, store={"auto_migrate": service_url.startswith("sqlite")}) as service:
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
