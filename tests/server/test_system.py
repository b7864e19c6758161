"""The bare service: health, and how it answers what it cannot serve."""

from __future__ import annotations

import pytest

from tests.server.callers import Service

pytestmark = pytest.mark.anyio


async def test_health_needs_nobody(service: Service) -> None:
    answer = await service.client.get("/v1/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_every_answer_names_the_request(service: Service) -> None:
    answer = await service.client.get("/nowhere", headers={"X-Request-ID": "mine-1"})
    assert answer.status_code == 404
    assert answer.headers["x-request-id"] == answer.json()["requestId"] == "mine-1"
    assert answer.headers["content-type"] == "application/problem+json"


async def test_an_id_that_is_not_sane_is_replaced(service: Service) -> None:
    answer = await service.client.get("/v1/health", headers={"X-Request-ID": "a b"})
    assert len(answer.headers["x-request-id"]) == 32


async def test_an_unknown_parameter_is_named(service: Service) -> None:
    answer = await service.client.get("/v1/health?deep=1")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "deep")
