"""How a service ends: what was begun is answered and durable, nothing new is taken on, and it does end."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import anyio
import httpx2
import pytest

from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ANY_AGENT, OPERATIONS, Grant
from reactor_memory.server.api_keys import new_key
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import open_service_container
from tests.server.processes import ServiceProcess, caller, service

pytestmark = pytest.mark.slow


@contextmanager
def half_sent_append(running: ServiceProcess, text: str) -> Iterator[Callable[[], str]]:
    """An append that has begun; what is given sends the rest of it, and gives the answer."""
    with running.client("ann") as client:
        conversation_id = client.post("/v1/user/conversations", json={}).json()["id"]
    body = json.dumps({"content": text}).encode()
    head = f"POST /v1/user/conversations/{conversation_id}/messages HTTP/1.1\r\nHost: x\r\n"
    fields = {**caller("ann"), "Content-Type": "application/json", "Content-Length": str(len(body))}
    head += "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(head.encode() + body[:5])

        def finish() -> str:
            connection.sendall(body[5:])
            answer = b""
            while received := connection.recv(65536):
                answer += received
            return answer.decode()

        yield finish


def until(holds: Callable[[], bool]) -> None:
    """Wait for another process; the timeout of the test bounds it."""
    while not holds():
        time.sleep(0.02)  # noqa: TID251 - another process does it


def is_refused(running: ServiceProcess) -> bool:
    try:
        socket.create_connection(("127.0.0.1", running.port), timeout=5).close()
    except OSError:
        return True
    return False


def texts(url: str, folder: Path) -> list[str]:
    """What is stored, as another process sees it."""
    with service(url, folder) as running, running.client("ann") as client:
        conversations = client.get("/v1/user/conversations").json()["data"]
        pages = [client.get(f"/v1/user/conversations/{each['id']}/messages").json()["data"] for each in conversations]
    return [message["content"] for page in pages for message in page]


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_an_append_under_way_is_answered_and_durable(tmp_path: Path, signal_: signal.Signals) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with service(url, tmp_path) as running:
        with half_sent_append(running, "said while it ended") as finish:
            running.process.send_signal(signal_)
            until(lambda: is_refused(running))
            answer = finish()
        assert running.wait() == 0
    assert answer.startswith("HTTP/1.1 201 ")
    assert "said while it ended" in answer
    assert [entry["message"] for entry in running.entries][-3:] == ["stopping", "request", "stopped"]
    assert texts(url, tmp_path) == ["said while it ended"]


def test_readiness_says_stopping_before_the_listener_closes(tmp_path: Path) -> None:
    delay = {"REACTOR_MEMORY_HTTP__DRAIN_DELAY_SECONDS": "600", "REACTOR_MEMORY_HTTP__SHUTDOWN_GRACE_SECONDS": "700"}
    with service(f"sqlite:///{tmp_path}/memory.db", tmp_path, **delay) as running:
        ready = f"{running.address}/v1/ready"
        assert httpx2.get(ready).status_code == 200
        running.process.terminate()
        until(lambda: httpx2.get(ready).status_code == 503)
        assert httpx2.get(ready).json() == {"status": "stopping", "checks": {"store": "ok", "issuers": "ok"}}
        assert httpx2.get(f"{running.address}/v1/health").status_code == 200
        with running.client("ann") as client:
            assert client.post("/v1/user/conversations", json={}).status_code == 201
        running.process.terminate()
        assert running.wait() == -signal.SIGTERM, "the second signal does not wait"


def test_background_work_runs_in_service_unless_it_is_switched_off(tmp_path: Path) -> None:
    """What was deleted is destroyed when its time is over, which is background work."""
    url, file = f"sqlite:///{tmp_path}/memory.db", tmp_path / "memory.db"
    with service(url, tmp_path) as running, running.client("ann") as client:
        path = f"/v1/user/conversations/{client.post('/v1/user/conversations', json={}).json()['id']}"
        assert client.post(f"{path}/messages", json={"content": "hello"}).status_code == 201
        assert client.delete(path).status_code == 204
    no_grace = {"REACTOR_MEMORY_STORE__DELETE_GRACE_DAYS": "0", "REACTOR_MEMORY_BACKGROUND__POLL_SECONDS": "0.05"}
    with service(url, tmp_path, **no_grace, REACTOR_MEMORY_BACKGROUND__ENABLED="false") as running:
        assert httpx2.get(f"{running.address}/v1/ready").status_code == 200
        running.process.terminate()
        assert running.wait() == 0
    assert message_count(file) == 1
    with service(url, tmp_path, **no_grace):
        until(lambda: message_count(file) == 0)


def message_count(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0]


# -- clients and databases that stall ---------------------------------------------------------------------------------

GRACE_SECONDS = 8
GRACE = {"REACTOR_MEMORY_HTTP__SHUTDOWN_GRACE_SECONDS": str(GRACE_SECONDS)}


def request_of(method: str, path: str, **fields: str) -> bytes:
    """The head of a request of ann."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {**caller("ann"), **fields}.items())
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()


class Clients:
    """Connections to a service that read nothing, and are open until the end of the block."""

    def __init__(self, running: ServiceProcess, connections: ExitStack) -> None:
        self._running = running
        self._connections = connections

    def send(self, data: bytes, *, count: int, port: int | None = None) -> list[socket.socket]:
        return [self._connection(data, port or self._running.port) for _ in range(count)]

    def _connection(self, data: bytes, port: int) -> socket.socket:
        connection = self._connections.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connection.connect(("127.0.0.1", port))
        connection.sendall(data)
        return connection


@contextmanager
def clients_of(running: ServiceProcess) -> Iterator[Clients]:
    with ExitStack() as connections:
        yield Clients(running, connections)


def created(running: ServiceProcess) -> str:
    """The path of a new conversation of ann."""
    with running.client("ann") as client:
        return f"conversations/{client.post('/v1/user/conversations', json={}).json()['id']}"


def half_append(path: str) -> bytes:
    return request_of(
        "POST", f"/v1/user/{path}/messages", **{"Content-Type": "application/json", "Content-Length": "9000"}
    )


def whole_append(path: str) -> bytes:
    body = json.dumps({"content": "never stored"}).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return request_of("POST", f"/v1/user/{path}/messages", **fields) + body


def trickle(connections: Sequence[socket.socket], is_over: threading.Event) -> None:
    """Send a byte of each body now and then, for as long as anybody takes it."""
    while not is_over.wait(0.3):
        for connection in connections:
            with suppress(OSError):
                connection.sendall(b" ")


@contextmanager
def trickling(connections: Sequence[socket.socket]) -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=trickle, args=(connections, is_over))
    thread.start()
    yield
    is_over.set()
    thread.join()


async def agent_key(url: str) -> str:
    """The key of an agent that may do everything."""
    async with open_service_container(ServiceSettings(store={"url": url})) as container:  # pyright: ignore[reportArgumentType]
        made = new_key("bot", Grant(agent_names=(ANY_AGENT,), operations=OPERATIONS), now=container.clock()())
        await container.database().write(key_operations.add_api_key, made.key)
        return made.text


def long_stream(running: ServiceProcess, path: str, key: str) -> str:
    """The path of a stream whose events fill every buffer."""
    with httpx2.Client(base_url=f"{running.address}/v1/agent/{path}", headers={"X-API-Key": key}, timeout=30) as agent:
        response = agent.post("/responses", json={}).json()
        for event in range(1, 5):
            piece = {"fence": response["fence"], "firstEvent": event, "texts": ["a" * 900_000]}
            assert agent.post(f"/responses/{response['id']}/chunks", json=piece).status_code == 200
    return f"/v1/user/{path}/responses/{response['id']}/events"


def long_page(running: ServiceProcess, path: str) -> str:
    """The path of an answer that fills every buffer."""
    with running.client("ann") as client:
        for _ in range(32):
            answer = client.post(f"/v1/user/{path}/messages", json={"content": "a" * 200_000})
            assert answer.status_code == 201
    return f"/v1/user/{path}/messages?limit=50"


def ended(running: ServiceProcess) -> tuple[int, float]:
    """The exit code after a SIGTERM, and the seconds until then."""
    began = time.monotonic()
    running.process.terminate()
    code = running.wait()
    return code, time.monotonic() - began


def errors(running: ServiceProcess) -> list[str]:
    return [entry["message"] for entry in running.entries if entry["level"] == "error"]


def test_clients_without_a_request_do_not_keep_it(tmp_path: Path) -> None:
    metrics = {"REACTOR_MEMORY_HTTP__METRICS_PORT": "0"}
    url = f"sqlite:///{tmp_path}/memory.db"
    with service(url, tmp_path, **metrics, **GRACE) as running, clients_of(running) as clients:
        clients.send(b"POST /v1/user/conversations HTTP/1.1\r\nHost:", count=32)
        for connection in clients.send(request_of("GET", "/v1/health"), count=32):
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        clients.send(b"GET /metrics HTTP/1.1\r\nHost:", count=1, port=int(httpx2.URL(running.metrics).port or 0))
        assert httpx2.get(running.metrics).status_code == 200
        code, seconds = ended(running)
    assert (code, errors(running)) == (0, [])
    assert [entry["message"] for entry in running.entries][-2:] == ["stopping", "stopped"]
    assert seconds < GRACE_SECONDS


def test_stalled_requests_are_cut_off_before_the_deadline(tmp_path: Path) -> None:
    """Half-sent ones, bodies that trickle in, and answers and streams that nobody reads."""
    url = f"sqlite:///{tmp_path}/memory.db"
    key = anyio.run(agent_key, url)
    with service(url, tmp_path, **GRACE) as running, clients_of(running) as clients:
        path = created(running)
        stream, page = long_stream(running, path, key), long_page(running, path)
        clients.send(half_append(path), count=24)
        clients.send(request_of("GET", page), count=8)
        clients.send(request_of("GET", stream), count=8)
        with trickling(clients.send(half_append(path) + b" ", count=24)):
            httpx2.get(f"{running.address}/v1/health", timeout=30)  # answered after those before it were begun
            code, seconds = ended(running)
    assert (code, errors(running)) == (1, [])
    assert [entry["message"] for entry in running.entries][-1] == "stopped"
    (cut_off,) = [entry for entry in running.entries if entry["message"] == "cut off"]
    assert 56 <= cut_off["connections"] <= 64, "a stream that the buffers of the system have taken is not stalled"
    assert seconds < GRACE_SECONDS + 1


def test_a_database_that_somebody_locks_does_not_keep_it(tmp_path: Path) -> None:
    url, patient = f"sqlite:///{tmp_path}/memory.db", {"REACTOR_MEMORY_STORE__TIMEOUT_SECONDS": "60"}
    with service(url, tmp_path, **patient, **GRACE) as running, clients_of(running) as clients:
        path = created(running)
        with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            clients.send(whole_append(path), count=64)
            httpx2.get(f"{running.address}/v1/health", timeout=30)
            code, seconds = ended(running)
            other.execute("ROLLBACK")
    assert code == 1
    assert [entry["status"] for entry in running.entries if entry["message"] == "request"].count(499) == 64
    assert set(errors(running)) <= {"could not end in time"}
    assert seconds < GRACE_SECONDS + 1
    assert texts(url, tmp_path) == []


HANGS = {
    "the event loop is blocked": "time.sleep(60)",
    "a thread goes on after the loop": "threading.Thread(target=time.sleep, args=(60,)).start()",
    "a thread of the loop goes on": "asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)",
}


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_the_deadline_holds_whatever_hangs(hang: str) -> None:
    code = f"""
import asyncio, os, signal, threading, time

from reactor_memory.server.shutdown import stopping
from reactor_memory.wiring.service_container import open_service_container

async def main():
    with stopping(0.5) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        {hang}
        await stop.wait()

asyncio.run(main())
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert finished.returncode == 1
    assert "could not end in time" in finished.stderr
