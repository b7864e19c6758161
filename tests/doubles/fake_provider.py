"""What the local stand-ins for providers have in common: they keep what they were asked, and misbehave on request."""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Self, TypeVar

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Q = TypeVar("Q")


class FakeProvider(ABC, Generic[Q]):
    """A server on loopback. Answers each question with the next of the `script`, then as `usually` says."""

    def __init__(self) -> None:
        self.url = ""
        self.questions: list[Q] = []
        self.asked = asyncio.Event()
        self._script: deque[Answer] = deque()

    @abstractmethod
    def question(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Q:
        """A request as it is kept in `questions`. The names of the headers are in lower case."""

    @abstractmethod
    def usually(self, question: Q) -> Answer: ...

    def script(self, *answers: Answer) -> None:
        self._script.extend(answers)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Self]:
        fake = cls()
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", fake._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield fake
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        question = self.question(request.path, {k.lower(): v for k, v in request.headers.items()}, body)
        self.questions.append(question)
        self.asked.set()
        return await (self._script.popleft() if self._script else self.usually(question))(request)


def records_in(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What a question is about: its records, or what its numbered lines tell of messages."""
    if "records" in document:
        return document["records"]
    lines = [re.match(r"(\d+)(?:\.\d+)? (?:[^:(]*: )?(.*)", line, re.DOTALL) for line in document["lines"]]
    return [{"seq": int(line[1]), "text": line[2]} for line in lines if line]


def fact_per_record(document: dict[str, Any]) -> dict[str, Any]:
    """What an honest and simple-minded model says: each record has a first word."""
    read = [record for record in records_in(document) if record.get("text")]
    facts = [
        {
            "anchor": f"message {record['seq']}",
            "key": "first_word",
            "value": record["text"].split()[0],
            "category": "GENERAL",
            "source_seq": record["seq"],
            "act": "statement",
            "failed": False,
        }
        for record in read
    ]
    return {"facts": facts, "narrative": "They talked.", "headline": "A talk"}


def replies(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Any JSON body with any status."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return answer


def replies_text(text: str, *, status: int = 200, content_type: str = "text/html") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status, content_type=content_type)

    return answer


def hangs() -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return answer


def drips() -> Answer:
    """A byte from time to time, for ever: no single read takes long."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    return answer


def disconnects(*, after: bytes = b"") -> Answer:
    """The connection breaks, before the answer or inside of it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100000", "Content-Type": "application/json"})
        if after:
            await response.prepare(request)
            await response.write(after)
        assert request.transport is not None
        request.transport.abort()
        return response

    return answer


def streams(*events: object, then: Answer | None = None) -> Answer:
    """Server-sent events with these JSON bodies (or texts), one by one; `then` instead of an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {data}\n\n".encode())
        if then is not None:
            await then(request)
        return response

    return answer


def breaks_off() -> Answer:
    """The connection breaks."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer
