"""`reactor-memory serve` in processes of its own, on real sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt

ROOT = Path(__file__).parents[2]
ISSUER = {
    "issuer": "https://issuer.example",
    "audience": "reactor-memory",
    "algorithm": "HS256",
    "secret": "a secret of the tests that is long enough",
}
VARIABLES = {
    "REACTOR_MEMORY_AUTH__ISSUERS": json.dumps([ISSUER]),
    "REACTOR_MEMORY_AUTH__ALLOW_SHARED_SECRETS": "true",
    "REACTOR_MEMORY_AUTH__USER_REQUESTS_PER_MINUTE": "0",
}
"""Settings under which the tokens of `token_of` are good, in every process."""


def token_of(user_id: str) -> str:
    claims = {"iss": ISSUER["issuer"], "aud": ISSUER["audience"], "sub": user_id, "exp": 4_000_000_000}
    return jwt.encode(claims, ISSUER["secret"], algorithm="HS256")


def caller(user_id: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_of(user_id)}"}


class ServiceProcess:
    """A running service. Its log is read as it comes, so that it never waits for us."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._listening = threading.Event()
        self.address: str = ""
        self.metrics: str = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            entry: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if entry.get("message") == "metrics":
                self.metrics = entry["address"]
            if entry.get("message") == "listening":
                self.address = entry["address"]
                self._listening.set()
        self._listening.set()

    def wait_until_listening(self) -> None:
        assert self._listening.wait(200)
        assert self.address, "".join(self.lines)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def wait(self) -> int:
        """The exit code, when it has ended and everything is read."""
        code = self.process.wait(200)
        self._reader.join(10)
        return code

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def client(self, user_id: str) -> httpx2.Client:
        return httpx2.Client(base_url=self.address, headers=caller(user_id), timeout=100)


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "reactor_memory", "serve", *options]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **VARIABLES, **variables}


@contextmanager
def service(url: str, folder: Path, *options: str, **variables: str) -> Iterator[ServiceProcess]:
    """A service on this database and a free port; killed at the end of the block if it still runs. `folder` is its
    working folder.
    """
    with started(url, folder, *options, **variables) as running:
        running.wait_until_listening()
        yield running


@contextmanager
def started(url: str, folder: Path, *options: str, **variables: str) -> Iterator[ServiceProcess]:
    """As `service`, without waiting for it."""
    arguments = ["--store", url, *(() if "--port" in options else ("--port", "0")), *options]
    with subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(folder, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        running = ServiceProcess(process)
        try:
            yield running
        finally:
            process.kill()
            running.wait()
