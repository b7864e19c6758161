"""`langgraph dev`, which refuses blocking calls, runs a graph with our memory and our store over HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[3]


def asked(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_two_runs_of_a_thread_share_what_was_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    graph = ROOT / "tests/adapters/langgraph/development_graph.py"
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": f"{graph}:agent"}}))
    command = [Path(sys.executable).with_name("langgraph"), "dev", "--no-browser", "--no-reload", "--port", str(port)]
    environment = {**os.environ, "LANGSMITH_TRACING": "false", "PYTHONPATH": str(ROOT)}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        answers = conversation(f"http://127.0.0.1:{port}", server)
    finally:
        server.terminate()
        server.wait(timeout=30)
    said = (tmp_path / "log").read_text()
    assert [answer["messages"][-1]["content"] for answer in answers] == ["saw 1", "saw 3"], said
    assert "BlockingError" not in said


def conversation(url: str, server: subprocess.Popen[bytes]) -> list[Any]:
    wait_for(url, server)
    thread = asked(f"{url}/threads", {})["thread_id"]
    return [
        asked(
            f"{url}/threads/{thread}/runs/wait",
            {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}},
        )
        for text in ("My order is A-1042.", "And now?")
    ]


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    ends, pause = time.monotonic() + 120, threading.Event()
    while server.poll() is None and time.monotonic() < ends:
        try:
            asked(f"{url}/ok")
        except (URLError, OSError):
            pause.wait(0.2)
        else:
            return
    raise AssertionError("the server does not answer")
