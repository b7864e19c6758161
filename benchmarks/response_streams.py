"""How fast pieces of a response go from its producer to its readers, through two service processes.

``python -m benchmarks.response_streams --store sqlite:///build/streams.db [--redis-url redis://host] [--readers N]``

Writes pieces a second of one producer (a piece a request, and twenty), and the milliseconds between the producer's call
and a reader's getting the piece, for readers of the producer's process and of the other one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from contextlib import ExitStack
from statistics import quantiles
from typing import Any

import httpx2

from tests.proofs.processes import module_process, next_line
from tests.server.sse import agent, events_of, user

ANN, BOT = user("ann"), agent("bot", of="ann")
PIECES = 300


class Producer:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._sent = 0
        self.path = ""
        self._fence = 0

    async def start(self) -> None:
        conversation = (await self._client.post("/v1/user/conversations", json={}, headers=ANN)).json()
        path = f"conversations/{conversation['id']}/responses"
        response = (await self._client.post(f"/v1/agent/{path}", json={}, headers=BOT)).json()
        self.path, self._fence, self._sent = f"{path}/{response['id']}", response["fence"], 0

    async def add(self, count: int) -> None:
        """Each piece is the time at which it was given away."""
        texts = [str(time.perf_counter())] * count
        await self._post("chunks", {"firstEvent": self._sent + 1, "texts": texts})
        self._sent += count

    async def finish(self) -> None:
        await self._post("complete", {})

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        answer = await self._client.post(
            f"/v1/agent/{self.path}/{what}", json={"fence": self._fence, **body}, headers=BOT
        )
        answer.raise_for_status()


async def delays(url: str, path: str, begun: asyncio.Event) -> list[float]:
    """Milliseconds that each piece took to get here."""
    found: list[float] = []
    async with (
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
        client.stream("GET", f"/v1/user/{path}/events", headers=ANN) as answer,
    ):
        async for event in events_of(answer):
            begun.set()
            if event.kind == "piece" and event.data:
                found.append((time.perf_counter() - float(str(event.data["text"]))) * 1000)
            elif event.kind == "end":
                break
    return found


async def throughput(producer: Producer, count: int) -> float:
    await producer.start()
    begin = time.perf_counter()
    for _ in range(PIECES // count):
        await producer.add(count)
    seconds = time.perf_counter() - begin
    await producer.finish()
    return PIECES / seconds


async def latency(producer: Producer, url: str, readers: int, pause: float) -> list[float]:
    await producer.start()
    begun = [asyncio.Event() for _ in range(readers)]
    reading = [asyncio.create_task(delays(url, producer.path, each)) for each in begun]
    await asyncio.gather(*(each.wait() for each in begun))
    for _ in range(100):
        await producer.add(1)
        await asyncio.sleep(pause)
    await producer.finish()
    return [delay for found in await asyncio.gather(*reading) for delay in found]


def line(name: str, found: list[float]) -> str:
    cuts = quantiles(found, n=100)
    return f"{name}: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms ({len(found)} pieces)"


async def measure(first: str, second: str, readers: int) -> None:
    async with httpx2.AsyncClient(base_url=first, timeout=60) as client:
        producer = Producer(client)
        await throughput(producer, 1)
        for count in (1, 20):
            print(f"one producer, {count} a request: {await throughput(producer, count):.0f} pieces/s")
        print(line("a reader of the same process", await latency(producer, first, 1, 0.02)))
        print(line("a reader of the other process", await latency(producer, second, 1, 0.02)))
        print(line(f"{readers} readers of the same process", await latency(producer, first, readers, 0.1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--redis-url")
    parser.add_argument("--readers", type=int, default=100)
    chosen = parser.parse_args()
    os.environ["REACTOR_MEMORY_STREAMS__MAX_OPEN_PER_CALLER"] = str(chosen.readers)
    if chosen.redis_url:
        os.environ |= {
            "REACTOR_MEMORY_STREAMS__BACKEND": "redis",
            "REACTOR_MEMORY_STREAMS__REDIS_URL": chosen.redis_url,
        }
    with ExitStack() as stack:
        processes = [stack.enter_context(module_process("tests.proofs.stream_process", chosen.store)) for _ in range(2)]
        urls = [next_line(process, "serving").split()[1] for process in processes]
        asyncio.run(measure(urls[0], urls[1], chosen.readers))


if __name__ == "__main__":
    main()
