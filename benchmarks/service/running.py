"""A service in a process of its own, what it is asked, and what it has used."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import click
import jwt
import psutil

from benchmarks.peers.databases import databases, server
from benchmarks.service.load import Request, ask, request
from reactor_memory import Settings, open_container
from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ANY_AGENT, OPERATIONS, Grant
from reactor_memory.server.api_keys import new_key

MESSAGES, PER_REQUEST = 1000, 100
TEXT = "What did we agree on for the offer to Meyer, and who is going to call them back about it tomorrow? " * 2
NOTHING: Mapping[str, str] = MappingProxyType({})


class Running(NamedTuple):
    """A service: its process and port, and who calls."""

    process: psutil.Process
    port: int
    user: dict[str, str]
    agent: dict[str, str]


def cpu_seconds(process: psutil.Process) -> float:
    """What all threads of the process have used; other programs of a busy machine hardly change it.

    The scheduler of Linux counts nanoseconds, the times of a process only hundredths of a second.
    """
    try:
        ran = [Path(f"/proc/{process.pid}/task/{thread.id}/schedstat").read_text() for thread in process.threads()]
    except FileNotFoundError:
        used = process.cpu_times()
        return used.user + used.system
    return sum(int(each.split()[0]) for each in ran) / 1e9


async def new_conversation(running: Running) -> str:
    created = await ask(running.port, request("POST", "/v1/user/conversations", running.user, {}))
    return json.loads(created)["id"]


async def long_conversation(running: Running, *, fresh: bool = True) -> str:
    """One with `MESSAGES` messages, whose summaries are up to date."""
    conversation = await new_conversation(running)
    path = f"/v1/agent/conversations/{conversation}/messages"
    for start in range(0, MESSAGES, PER_REQUEST):
        batch = [
            {"role": "assistant" if number % 2 else "user", "content": f"{number}: {TEXT}"}
            for number in range(start, start + PER_REQUEST)
        ]
        await ask(running.port, request("POST", path, running.agent, {"messages": batch}))
    while fresh and not await _is_fresh(running, conversation):  # noqa: ASYNC110 - another process works
        await asyncio.sleep(0.2)
    return conversation


async def _is_fresh(running: Running, conversation: str) -> bool:
    found = json.loads(await ask(running.port, context(running, conversation, "&report=true")))
    return found["report"]["freshness"] == "fresh"


def context(running: Running, conversation: str, more: str = "") -> bytes:
    return request("GET", f"/v1/agent/conversations/{conversation}/context?budget=4000{more}", running.agent)


def messages(running: Running, conversation: str) -> bytes:
    return request("GET", f"/v1/user/conversations/{conversation}/messages?limit=20", running.user)


def newest(running: Running, conversation: str) -> bytes:
    """A context, asked for by an agent in the name of the user."""
    return request("GET", f"/v1/agent/conversations/{conversation}/context", running.user | running.agent)


def appends(running: Running, conversation: str) -> Request:
    """A new message with a new key each time, as clients should send it."""
    path = f"/v1/user/conversations/{conversation}/messages"

    def one() -> bytes:
        return request("POST", path, running.user | {"Idempotency-Key": secrets.token_hex(16)}, {"content": TEXT})

    return one


@asynccontextmanager
async def database(store: str, postgres_url: str) -> AsyncGenerator[str]:
    if store == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/memory.db"
    else:
        with server(postgres_url) as address:
            async with databases(address, ["reactor_memory_service"]) as [url]:
                yield url


@asynccontextmanager
async def service(url: str, more: Mapping[str, str] = NOTHING) -> AsyncIterator[Running]:
    """`reactor-memory serve` on this database, without limits of rate, with `more` settings. Its log goes to a file."""
    issuer = {"issuer": "bench", "audience": "bench", "algorithm": "HS256", "secret": secrets.token_hex(32)}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as errors, _process(url, issuer, folder, errors, more) as process:
            yield Running(
                process=psutil.Process(process.pid),
                port=await _port(log, process),
                user={"Authorization": f"Bearer {_token(issuer)}"},
                agent={"X-API-Key": await _agent_key(url)},
            )


@contextmanager
def _process(
    url: str, issuer: dict[str, str], folder: str, errors: IO[str], more: Mapping[str, str]
) -> Generator[subprocess.Popen[bytes]]:
    variables = {
        "AUTH__ISSUERS": json.dumps([issuer]),
        "AUTH__ALLOW_SHARED_SECRETS": "true",
        "AUTH__USER_REQUESTS_PER_MINUTE": "0",
        "AUTH__AGENT_REQUESTS_PER_MINUTE": "0",
        "STORE__AUTO_MIGRATE": "true",
        **more,
    }
    environment = os.environ | {f"REACTOR_MEMORY_{name}": value for name, value in variables.items()}
    command = [sys.executable, "-m", "reactor_memory", "serve", "--port", "0", "--store", url]
    python_path = str(Path(__file__).parents[2])
    with subprocess.Popen(command, cwd=folder, env=environment | {"PYTHONPATH": python_path}, stderr=errors) as process:
        try:
            yield process
        finally:
            process.terminate()


async def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    while process.poll() is None:
        if port := _port_in_log(log):
            return port
        await asyncio.sleep(0.1)
    raise click.ClickException("the service ended at once")


def _port_in_log(log: Path) -> int:
    """0 until the log says where it listens."""
    told = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    return next((int(each["address"].rpartition(":")[2]) for each in told if each["message"] == "listening"), 0)


def _token(issuer: dict[str, str]) -> str:
    claims = {"iss": issuer["issuer"], "aud": issuer["audience"], "sub": "ann", "exp": 4_000_000_000}
    return jwt.encode(claims, issuer["secret"], algorithm="HS256")


async def _agent_key(url: str) -> str:
    async with open_container(Settings(store={"url": url}, background={"enabled": False})) as container:
        grant = Grant(agent_names=(ANY_AGENT,), operations=OPERATIONS)
        key = new_key("bench", grant, now=container.clock()())
        await container.database().write(key_operations.add_api_key, key.key)
    return key.text
