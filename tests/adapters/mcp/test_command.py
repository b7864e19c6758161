"""`reactor-memory mcp` as a process: what it writes where, whom it answers, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.adapters.mcp.servers import arguments, environment, http_server

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"session_id": "secret-session" * 99, "query": "secret-query"}},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def run(*more: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *more],
        env={**os.environ, **environment()},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db"


def test_stdout_is_protocol_only_and_end_of_stdin_ends_it(url: str) -> None:
    command = [sys.executable, "-m", *arguments(url, "u1", "desk", "-v")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **environment()}, **pipes) as process:
        for line in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, CALL):
            print(json.dumps(line), file=process.stdin, flush=True)
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, "")
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["isError"] is True
    assert "secret" not in stderr
    assert "Traceback" not in stderr


def test_a_database_that_cannot_be_opened_is_told_on_stderr(tmp_path: Path) -> None:
    done = run(*arguments(f"sqlite:///{tmp_path}/no/such/folder/memory.db", "u1", "desk"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_others_are_not_answered_unless_told(url: str, host: str) -> None:
    done = run(*arguments(url, "u1", "desk", "--transport", "http", "--host", host, "--port", "0"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--allow-remote" in done.stderr


def test_an_address_that_is_taken_is_refused(url: str) -> None:
    with http_server(url, "u1", "desk") as address:
        port = address.split(":")[2].partition("/")[0]
        done = run(*arguments(url, "u1", "desk", "--transport", "http", "--port", port))
    assert done.returncode == 2
    assert done.stderr.startswith("error: host, port: cannot be listened on")


def test_pages_of_other_names_are_refused(url: str) -> None:
    """A name of the web that leads to this machine does not lead a browser to the memory."""
    with http_server(url, "u1", "desk") as address:
        good = httpx2.post(address, json=HELLO, headers=HEADERS)
        renamed = httpx2.post(address, json=HELLO, headers={**HEADERS, "host": "evil.example"})
        foreign = httpx2.post(address, json=HELLO, headers={**HEADERS, "origin": "https://evil.example"})
    assert good.status_code == 200
    assert 400 <= renamed.status_code < 500
    assert 400 <= foreign.status_code < 500
