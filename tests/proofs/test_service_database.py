"""A database that goes away under the service, or does not answer: readiness says so, and requests get 503."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from reactor_memory.evaluation.bench.servers import started_postgres
from tests.scenes.postgres_server import execute
from tests.server.processes import ServiceProcess, service

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]

PATIENCE = {
    "REACTOR_MEMORY_STORE__AUTO_MIGRATE": "true",
    "REACTOR_MEMORY_STORE__TIMEOUT_SECONDS": "4",
}


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    with started_postgres() as server:
        execute(server.get_uri(), "CREATE DATABASE memory")
        yield server


def family(server: Any) -> list[psutil.Process]:
    parent = psutil.Process(server.get_pid())
    return [parent, *parent.children(recursive=True)]


def until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)  # noqa: TID251 - another process does it


def readiness(running: ServiceProcess) -> tuple[int, str]:
    answer = httpx2.get(f"{running.address}/v1/ready", timeout=30)
    return answer.status_code, answer.json()["checks"]["store"]


def assert_unavailable(running: ServiceProcess) -> None:
    """Reading and writing say that it is worth trying again, and nothing of the database."""
    with running.client("ann") as client:
        for answer in (client.get("/v1/user/conversations"), client.post("/v1/user/conversations", json={})):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            assert "memory?host" not in answer.text
    assert httpx2.get(f"{running.address}/v1/health").status_code == 200


def assert_serving(running: ServiceProcess) -> None:
    with running.client("ann") as client:
        assert client.post("/v1/user/conversations", json={}).status_code == 201


def test_a_database_that_is_stopped_and_started_again(own_postgres: Any, tmp_path: Path) -> None:
    url = own_postgres.get_uri(database="memory")
    with service(url, tmp_path, **PATIENCE) as running:
        assert_serving(running)
        killed = family(own_postgres)
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, timeout=10)
        until(lambda: readiness(running)[0] == 503)
        assert_unavailable(running)
        own_postgres.ensure_postgres_running()
        until(lambda: readiness(running) == (200, "ok"))
        assert_serving(running)


def test_a_database_that_does_not_answer(own_postgres: Any, tmp_path: Path) -> None:
    url = own_postgres.get_uri(database="memory")
    with service(url, tmp_path, **PATIENCE) as running:
        assert_serving(running)
        stopped = family(own_postgres)
        for process in stopped:
            process.suspend()
        try:
            until(lambda: readiness(running) == (503, "no answer in time"))
            assert_unavailable(running)
        finally:
            for process in stopped:
                process.resume()
        until(lambda: readiness(running) == (200, "ok"))
        assert_serving(running)
