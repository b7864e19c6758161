"""One service for all tests of a module, on a file of SQLite; each test has users and conversations of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import httpx2
import pytest

from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.server.callers import Service, who_says_so

_numbers = count()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("service") / "log.db"
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
async def container(store_url: str) -> AsyncIterator[ServiceContainer]:
    settings = ServiceSettings(
        store={"url": store_url, "auto_migrate": True, "delete_grace_days": 30}, summary={"enabled": True}
    )
    async with open_service_container(settings) as container:
        yield container


@pytest.fixture(scope="module")
async def running(container: ServiceContainer) -> AsyncIterator[Service]:
    app = create_app(container, authenticator=who_says_so)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
        yield Service(client)


@pytest.fixture
def service(running: Service) -> Service:
    """The running service, asked by a user whom no other test knows."""
    return running.of(f"user-{next(_numbers)}")
