"""A client that costs little: requests are made before the clock runs, and answers are only measured."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, Self

Request = Callable[[], bytes]
"""The next request, whole."""


class Measured(NamedTuple):
    """What came of some seconds of load. `failed` are answers that are no success."""

    seconds: float
    latencies: Sequence[float]
    failed: int

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def milliseconds(self, share: float) -> float:
        """The latency that this share of the answers kept to."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


def request(method: str, path: str, headers: dict[str, str], body: object = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    fields = {"Host": "localhost", "Content-Length": str(len(content)), **headers}
    if body is not None:
        fields["Content-Type"] = "application/json"
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


async def measure(port: int, clients: Sequence[Request], seconds: float) -> Measured:
    """Each client asks on a connection of its own, one request after the other."""
    latencies: list[float] = []
    statuses: list[bytes] = []
    started = perf_counter()
    until = started + seconds
    await asyncio.gather(*(_ask(port, client, until, latencies, statuses) for client in clients))
    failed = sum(not status.startswith(b"2") for status in statuses)
    return Measured(perf_counter() - started, latencies, failed)


class Connection:
    """One that is kept for many requests, one after the other."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, whole: bytes) -> bytes:
        """The body of the answer. Raises `RuntimeError` for one that is no success."""
        self._writer.write(whole)
        status, body = await _answer(self._reader)
        if not status.startswith(b"2"):
            raise RuntimeError(f"{status.decode()}: {body.decode()}")
        return body


async def ask(port: int, whole: bytes) -> bytes:
    """One request on a connection of its own; the body of its answer."""
    async with Connection(port) as connection:
        return await connection.ask(whole)


async def _ask(port: int, client: Request, until: float, latencies: list[float], statuses: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (began := perf_counter()) < until:
        writer.write(client())
        status, _ = await _answer(reader)
        latencies.append(perf_counter() - began)
        statuses.append(status)
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head.split(b" ", 2)[1], await reader.readexactly(length)
