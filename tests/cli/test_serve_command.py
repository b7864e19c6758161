"""`reactor-memory serve` as somebody starts it: what it says, and what it refuses in one line."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from reactor_memory.cli import main
from reactor_memory.cli.invocation import Invocation
from reactor_memory.cli.serve import service_settings
from tests.doubles.plugged_store import PLAIN, plug_in_plain_store
from tests.server.processes import VARIABLES, ServiceProcess, caller, command, environment, service


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With an issuer, and a log that is as it was afterwards."""
    monkeypatch.chdir(tmp_path)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    own, root = logging.getLogger("reactor_memory"), logging.getLogger()
    before = [(logger, logger.handlers[:], logger.level) for logger in (own, root)]
    yield
    for logger, handlers, level in before:
        logger.handlers = handlers
        logger.setLevel(level)


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What is told, in one line, before anything is served. The usual port may be somebody else's."""
    options = options if "--port" in options else (*options, "--port", "0")
    with pytest.raises(SystemExit) as ended:
        main(["serve", *options])
    assert ended.value.code == 2
    *logged, told = capsys.readouterr().err.splitlines()
    assert all(line.startswith("{") for line in logged)
    return told


@pytest.mark.slow
def test_dev_prints_a_token_and_a_request_that_work(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--dev", "--port", "0", "--store", "memory.db", "--user", "ann"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stderr.readline()  # it listens, so the whole screen is there
        screen: list[str] = []
        while len(screen) < 10:
            screen.append(process.stdout.readline())
        shell = "".join(line for line in screen if line.startswith(("export", "curl", "  -H")))
        asked = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        process.terminate()
        assert process.wait(30) == 0
        logged = process.stderr.read()
    assert re.search("search.enabled.*True.*the interface has a search", logged)
    assert asked.stdout.count('"ownerUserId":"ann"') == 2
    assert "My first conversation" in asked.stdout
    assert "for this machine only" in screen[0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--dev", "--host", "0.0.0.0"), "serve --dev: listens on this machine only"),
        (("--store", "postgresql://app:hidden@127.0.0.1:1/memory"), "store: "),
        (("--port", "70000"), "Invalid value for '--port'"),
        (("--host", "no.such.host.invalid"), "http.port: cannot listen on http://no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], told: str
) -> None:
    line = refusal(capsys, *options)
    assert line.startswith(f"error: {told}")
    assert "hidden" not in line


@pytest.mark.parametrize(
    ("search", "told"),
    [("true", "search.enabled: needs a database"), ("false", "store.url: plain:// keeps the log and summaries only")],
)
def test_a_store_that_is_no_database_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, search: str, told: str
) -> None:
    plug_in_plain_store(monkeypatch)
    monkeypatch.setenv("REACTOR_MEMORY_SEARCH__ENABLED", search)
    assert refusal(capsys, "--store", PLAIN).startswith(f"error: {told}")


@pytest.mark.slow
def test_store_in_memory_is_served_as_long_as_process_runs(tmp_path: Path) -> None:
    with service("memory://", tmp_path) as running:
        with running.client("ann") as ann:
            created = ann.post("/v1/user/conversations", json={"title": "Short-lived"})
            assert created.status_code == 201
            listed = ann.get("/v1/user/conversations").json()["data"]
        running.process.terminate()
        assert running.wait() == 0
    assert [each["title"] for each in listed] == ["Short-lived"]
    assert not list(tmp_path.iterdir())


def test_a_taken_port_is_refused_before_anything_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        line = refusal(capsys, "--port", port, "--store", "memory.db")
    assert line.startswith(f"error: http.port: cannot listen on http://127.0.0.1:{port}: Address already in use: ")
    assert line.endswith("choose another port")
    assert not Path("memory.db").exists()


def test_a_taken_port_of_metrics_is_refused_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        monkeypatch.setenv("REACTOR_MEMORY_HTTP__METRICS_PORT", port)
        line = refusal(capsys, "--store", "memory.db")
    assert line.startswith(f"error: http.metrics_port: cannot listen on http://127.0.0.1:{port}: ")
    assert not Path("memory.db").exists()


def test_a_service_that_nobody_could_call_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name)
    line = refusal(capsys, "--port", "0", "--store", "memory.db")
    assert line.startswith("error: auth.issuers: is empty and no agent has a key")


def test_a_grace_that_is_too_short_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_HTTP__SHUTDOWN_GRACE_SECONDS", "3")
    line = refusal(capsys, "--store", "memory.db")
    assert line.startswith("error: http.shutdown_grace_seconds: must be at least 7")


def test_deletions_wait_and_summaries_are_on_unless_settings_say_otherwise(tmp_path: Path) -> None:
    invocation = Invocation(store=f"sqlite:///{tmp_path}/memory.db", user_id=None, as_json=False)
    usual = service_settings(invocation, None, None)
    assert (usual.store.delete_grace_days, usual.http.port) == (30, 8080)
    assert usual.store.inline_loads == "never"
    assert usual.summary.enabled
    assert usual.search.enabled
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REACTOR_MEMORY_STORE__DELETE_GRACE_DAYS", "0")
        patch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "false")
        patch.setenv("REACTOR_MEMORY_STORE__INLINE_LOADS", "auto")
        told = service_settings(invocation, "::1", 0)
    assert (told.store.delete_grace_days, told.summary.enabled) == (0, False)
    assert told.store.inline_loads == "auto"
    assert (told.http.host, told.http.port) == ("::1", 0)


@pytest.mark.slow
def test_every_request_is_a_json_line_without_what_was_sent(tmp_path: Path) -> None:
    metrics = {"REACTOR_MEMORY_HTTP__METRICS_PORT": "0"}
    with service(f"sqlite:///{tmp_path}/canary-of-store.db", tmp_path, **metrics) as running:
        created = speak_of_canaries(running)
        told = httpx2.get(running.metrics).text
        running.process.terminate()
        assert running.wait() == 0
    lines = [entry for entry in running.entries if entry["message"] == "request"]
    assert [(line["method"], line["route"], line["status"], line["caller"]) for line in lines] == [
        ("POST", "/v1/user/conversations", 201, "user"),
        ("POST", "/v1/user/conversations/{conversationId}/messages", 201, "user"),
        ("GET", "/v1/user/conversations", 200, "user"),
        ("PATCH", "/v1/user/conversations/{conversationId}", 422, "user"),
        ("GET", "none", 404, "unknown"),
        ("GET", "/v1/user/conversations", 401, "unknown"),
        ("GET", "/v1/user/conversations", 401, "unknown"),
    ]
    assert lines[0]["request_id"] == created.headers["x-request-id"]
    assert lines[0]["sent_bytes"] == len(created.content)
    assert "canary" not in "".join(running.lines)
    assert "/v1/user/conversations/{conversationId}/messages" in told
    assert "canary" not in told


def speak_of_canaries(running: ServiceProcess) -> httpx2.Response:
    """Requests that hold the word wherever a request can hold one; the answer to the first."""
    conversations = "/v1/user/conversations"
    with httpx2.Client(base_url=running.address, headers={"User-Agent": "canary"}) as client:
        user = caller("canary-user")
        body = {"title": "canary-title", "metadata": {"canary-key": "canary-value"}}
        created = client.post(conversations, json=body, headers={**user, "Idempotency-Key": "canary-1"})
        path = f"{conversations}/{created.json()['id']}"
        client.post(f"{path}/messages", json={"content": "canary said"}, headers=user)
        client.get(conversations, params={"query": "canary"}, headers=user)
        client.patch(path, json={"title": "canary", "canary": 1}, headers=user)
        client.get("/canary/path?word=canary")
        client.get(conversations, headers={"X-API-Key": "rm_canary"})
        client.get(conversations, headers={"Authorization": "Bearer canary.canary.canary"})
    return created
