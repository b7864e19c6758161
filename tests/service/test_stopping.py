"""How a service ends: what was begun is answered and durable, nothing new is taken on, and it does end."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.service.processes import ServiceProcess, caller, service

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


def test_who_never_finishes_is_given_up(tmp_path: Path) -> None:
    grace = {"REACTOR_MEMORY_HTTP__SHUTDOWN_GRACE_SECONDS": "7"}
    url = f"sqlite:///{tmp_path}/memory.db"
    with service(url, tmp_path, **grace) as running, half_sent_append(running, "never sent"):
        running.process.terminate()
        assert running.wait() == 0
    assert running.entries[-1]["message"] == "stopped"
    assert texts(url, tmp_path) == []


def test_background_work_runs_in_the_service_unless_it_is_switched_off(tmp_path: Path) -> None:
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
