"""What a connection may ask of the server: heads and bodies of bounded size, within a bounded time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream

from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ANY_AGENT, OPERATIONS, Grant
from reactor_memory.server import process
from reactor_memory.server.api_keys import new_key
from reactor_memory.server.connections import MAX_HEAD_BYTES
from tests.server.listening import Listening, listening_service

pytestmark = pytest.mark.anyio

SHORT, LONG = 0.3, 600


@asynccontextmanager
async def connected(
    folder: Path, *, head: float = LONG, body: float = LONG
) -> AsyncIterator[tuple[SocketStream, Listening]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "HEAD_SECONDS", head)
        patch.setattr(process, "BODY_SECONDS", body)
        http = {"idle_timeout_seconds": LONG}
        async with listening_service(folder, http=http) as running, await _connection(running) as connection:
            yield connection, running


async def _connection(running: Listening) -> SocketStream:
    return await anyio.connect_tcp("127.0.0.1", running.port)


async def until_closed(connection: SocketStream) -> bytes:
    """What was answered before the server closed the connection."""
    answer = b""
    with anyio.fail_after(30):
        try:
            async for received in connection:
                answer += received
        except anyio.BrokenResourceError:  # it closed while we were sending
            pass
    return answer


def append(running: Listening, length: int) -> bytes:
    fields = {**running.user("ann"), "Content-Type": "application/json", "Content-Length": str(length)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /v1/user/conversations HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()


async def status_of_answer(connection: SocketStream) -> bytes:
    """The status of the next answer, which is read to its end."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += await connection.receive()
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += await connection.receive()
    return head.split()[1]


async def test_head_that_is_too_long_or_too_slow_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path, head=SHORT) as (connection, running):
        await connection.send(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n")
        try:
            for number in range(10 * MAX_HEAD_BYTES // 1000):
                await connection.send(b"X-%d: %s\r\n" % (number, b"a" * 1000))
        except anyio.BrokenResourceError:
            pass
        else:
            assert (await until_closed(connection)).startswith(b"HTTP/1.1 400 ")
        async with await _connection(running) as silent:
            assert await until_closed(silent) == b""
        async with await _connection(running) as slow:
            await slow.send(b"GET /v1/health HTTP/1.1\r\nHost:")
            assert await until_closed(slow) == b""


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async with connected(tmp_path, body=SHORT) as (connection, running):
        await connection.send(append(running, 100) + b"{")
        answer = await until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "request_timeout"


async def test_only_what_keeps_us_waiting_ends_a_connection(tmp_path: Path) -> None:
    async with connected(tmp_path, head=SHORT) as (connection, running):
        body = b'{"title": "%s"}' % (b"t" * 100)
        for _ in range(2):
            await connection.send(append(running, len(body)) + body)
            assert await status_of_answer(connection) == b"201"
        await anyio.sleep(2 * SHORT)  # it rests between requests for longer than a head may take
        await connection.send(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await status_of_answer(connection) == b"200"
        await connection.send(b"POST /v1/user/conversations HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert (await until_closed(connection)).startswith(b"HTTP/1.1 401 ")


async def running_stream(running: Listening) -> str:
    """The path of a stream of events that does not end by itself."""
    made = new_key("bot", Grant(agent_names=(ANY_AGENT,), operations=OPERATIONS), now=running.container.clock()())
    await running.container.database().write(key_operations.add_api_key, made.key)
    async with httpx2.AsyncClient(base_url=running.address) as client:
        created = await client.post("/v1/user/conversations", json={}, headers=running.user("ann"))
        path = f"conversations/{created.json()['id']}/responses"
        started = await client.post(f"/v1/agent/{path}", json={}, headers={"X-API-Key": made.text})
    return f"/v1/user/{path}/{started.json()['id']}/events"


async def test_a_connection_goes_on_after_the_head_of_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(tmp_path) as (connection, running):
        stream = await running_stream(running)
        for path in (stream, stream, "/v1/user/conversations", "/v1/user/absent"):
            head = "".join(f"{name}: {value}\r\n" for name, value in running.user("ann").items())
            await connection.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
            answer = await connection.receive()
            assert answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 404 "))
            assert answer.endswith(b"\r\n\r\n")
            assert answer.count(b"\r\n\r\n") == 1
        await connection.send(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await status_of_answer(connection) == b"200"
        assert running.container.response_streams().open_streams == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
