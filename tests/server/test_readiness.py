"""Whether readiness, metrics and CORS keep to what they were told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from dependency_injector import providers
from litestar.testing import AsyncTestClient

from reactor_memory.errors import ConfigurationError, StoreUnavailableError
from reactor_memory.features.sharing.bodies import Readiness
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.server.app import create_app
from reactor_memory.server.guards import Connection
from reactor_memory.server.readiness import NO_PROBES, Probe, Probes
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.scenes.tables import each_row
from tests.server.listening import listening_service

pytestmark = pytest.mark.anyio

PAGE = "https://app.example"


async def ann(connection: Connection) -> Principal:
    return Principal(user_id="ann")


@asynccontextmanager
async def client_of(folder: Path, probes: Probes = NO_PROBES, **http: Any) -> AsyncIterator[AsyncTestClient[Any]]:
    settings = ServiceSettings(store={"url": f"sqlite:///{folder}/log.db"}, tokens={"counter": "estimate"}, http=http)
    async with open_service_container(settings) as container:
        app = create_app(container, authenticator=ann, probes=probes)
        async with AsyncTestClient(app) as client:
            yield client


async def fine() -> None:
    pass


async def away() -> None:
    raise StoreUnavailableError("postgresql://app:canary@db.internal is away")


@pytest.mark.parametrize(
    ("part", "status", "check"),
    [
        (fine, "ready", "ok"),
        (away, "unavailable", "unavailable"),
        (anyio.sleep_forever, "unavailable", "no answer in time"),
    ],
)
async def test_it_is_ready_when_every_part_answers_in_time(part: Probe, status: str, check: str) -> None:
    told = await Probes({"store": fine, "streams": part}, timeout_seconds=0.05).ask()
    assert told == Readiness(status=status, checks={"store": "ok", "streams": check})  # type: ignore[arg-type]


async def test_readiness_is_told_by_its_status_while_health_is_not(tmp_path: Path) -> None:
    parts: dict[str, Probe] = {"store": fine}
    probes = Probes(parts, timeout_seconds=1)
    async with client_of(tmp_path, probes) as client:
        ready = await client.get("/v1/ready")
        parts["store"] = away
        broken = await client.get("/v1/ready")
        parts["store"] = fine
        probes.stop()
        stopping = await client.get("/v1/ready")
        assert (await client.get("/v1/health")).status_code == 200
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "checks": {"store": "ok"}})
    assert (broken.status_code, broken.json()) == (503, {"status": "unavailable", "checks": {"store": "unavailable"}})
    assert (stopping.status_code, stopping.json()) == (503, {"status": "stopping", "checks": {"store": "ok"}})


async def test_pages_of_the_listed_origins_may_call(tmp_path: Path) -> None:
    async with client_of(tmp_path, cors_origins=[PAGE]) as client:
        asked = await client.options(
            "/v1/user/conversations",
            headers={
                "Origin": PAGE,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization, idempotency-key",
            },
        )
        answer = await client.get("/v1/user/conversations", headers={"Origin": PAGE})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, PAGE)
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


OTHERS = ("https://app.example.evil.test", "https://evil.test", "http://app.example", "null", f"{PAGE}:8443")


@pytest.mark.parametrize(("listed", "others"), [([], (PAGE, *OTHERS)), ([PAGE], OTHERS)])
async def test_pages_of_other_origins_may_not(tmp_path: Path, listed: list[str], others: Sequence[str]) -> None:
    async with client_of(tmp_path, cors_origins=listed) as client:
        for origin in others:
            asked = await client.options(
                "/v1/user/conversations", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
            )
            answer = await client.get("/v1/user/conversations", headers={"Origin": origin})
            assert "access-control-allow-origin" not in {*asked.headers, *answer.headers}


@each_row("origin", ["*", "https://*.example", "https://app.example/", "https://App.example", "app"])
def test_an_origin_must_be_one(origin: str) -> None:
    with pytest.raises(ConfigurationError, match=r"http\.cors_origins"):
        ServiceSettings(http={"cors_origins": [origin]})


def test_origins_come_from_the_environment_as_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_HTTP__CORS_ORIGINS", f"{PAGE},http://localhost:5173")
    assert ServiceSettings().http.cors_origins == (PAGE, "http://localhost:5173")


class Background:
    """Background work that tells when it was closed."""

    def __init__(self) -> None:
        self.closed = anyio.Event()

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        self.closed.set()


@pytest.mark.slow
async def test_background_work_ends_at_once_requests_after_the_delay(tmp_path: Path) -> None:
    background = Background()

    def configure(container: ServiceContainer) -> None:
        container.background_work.override(providers.Object(background))

    async with (
        listening_service(tmp_path, configure=configure, http={"drain_delay_seconds": 2}) as running,
        httpx2.AsyncClient(base_url=running.address) as client,
    ):
        running.stop.set()
        with anyio.fail_after(30):
            await background.closed.wait()
        assert (await client.get("/v1/health")).status_code == 200
        assert (await client.get("/v1/ready")).json()["status"] == "stopping"
