"""Services that are killed under many writers of one conversation: what was acknowledged is there, whole and once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.server.processes import ServiceProcess, caller, service

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

CLIENTS = 8
MESSAGES = 40
KILLED_AFTER = CLIENTS * MESSAGES // 3

Acknowledged = dict[str, str]
"""The id of each message, by its text."""


class Writers:
    """Clients that write to one conversation, and repeat what was not answered wherever somebody answers."""

    def __init__(self, addresses: Callable[[], Sequence[str]], conversation_id: str) -> None:
        self._addresses = addresses
        self._path = f"/v1/user/conversations/{conversation_id}/messages"
        self.acknowledged: Acknowledged = {}
        self.repeated = 0

    async def write_all(self) -> None:
        async with anyio.create_task_group() as group:
            for client in range(CLIENTS):
                group.start_soon(self._write, client)

    async def acknowledged_at_least(self, count: int) -> None:
        while len(self.acknowledged) < count:  # noqa: ASYNC110 - other processes do it
            await anyio.sleep(0.002)

    async def _write(self, client: int) -> None:
        turns = itertools.count(client)
        async with httpx2.AsyncClient(headers=caller("ann"), timeout=10) as http:
            for number in range(MESSAGES):
                text = f"client {client} message {number}"
                while not await self._is_written(http, text, next(turns)):
                    self.repeated += 1
                    await anyio.sleep(0.02)

    async def _is_written(self, http: httpx2.AsyncClient, text: str, turn: int) -> bool:
        addresses = self._addresses()
        address = addresses[turn % len(addresses)]
        try:
            answer = await http.post(
                f"{address}{self._path}", json={"content": text}, headers={"Idempotency-Key": text.replace(" ", "-")}
            )
        except httpx2.TransportError:
            return False
        if answer.status_code in (409, 503):
            return False
        assert answer.status_code == 201, answer.text
        self.acknowledged[text] = answer.json()["id"]
        return True


def create(running: ServiceProcess) -> str:
    with running.client("ann") as client:
        return client.post("/v1/user/conversations", json={"title": "Shared"}).json()["id"]


def stored(running: ServiceProcess, conversation_id: str) -> list[dict[str, Any]]:
    with running.client("ann") as client:
        return list(_pages(client, f"/v1/user/conversations/{conversation_id}/messages"))


def _pages(client: httpx2.Client, path: str) -> Iterator[dict[str, Any]]:
    after: dict[str, str] = {}
    while True:
        page = client.get(path, params={"limit": "200", **after}).json()
        yield from page["data"]
        if page["nextCursor"] is None:
            return
        after = {"after": page["nextCursor"]}


def check(messages: Sequence[dict[str, Any]], acknowledged: Acknowledged) -> None:
    assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
    assert {message["content"]: message["id"] for message in messages} == acknowledged
    assert len(messages) == len(acknowledged) == CLIENTS * MESSAGES


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_one_of_two_services_dies_and_nothing_acknowledged_is_lost(postgres_dsn: str, tmp_path: Path) -> None:
    with service(postgres_dsn, tmp_path) as killed, service(postgres_dsn, tmp_path) as other:
        conversation_id = create(killed)
        writers = Writers(lambda: (killed.address, other.address), conversation_id)
        async with anyio.create_task_group() as group:
            group.start_soon(writers.write_all)
            await writers.acknowledged_at_least(KILLED_AFTER)
            killed.process.kill()
        check(await anyio.to_thread.run_sync(stored, other, conversation_id), writers.acknowledged)
        assert writers.repeated >= 1
        assert killed.wait() == -9


@pytest.mark.timeout(300)
async def test_a_killed_service_restarts_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with ExitStack() as stack:
        killed = stack.enter_context(service(url, tmp_path))
        conversation_id, address = create(killed), killed.address
        writers = Writers(lambda: (address,), conversation_id)
        async with anyio.create_task_group() as group:
            group.start_soon(writers.write_all)
            await writers.acknowledged_at_least(KILLED_AFTER)
            killed.process.kill()
            await anyio.to_thread.run_sync(killed.wait)
            restarted = service(url, tmp_path, "--port", str(killed.port))
            running = await anyio.to_thread.run_sync(stack.enter_context, restarted)
        check(await anyio.to_thread.run_sync(stored, running, conversation_id), writers.acknowledged)
        assert writers.repeated >= 1
