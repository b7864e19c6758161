"""A server on loopback that speaks the Gemini wire format and misbehaves on request."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Question(msgspec.Struct, frozen=True):
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def instruction(self) -> str:
        return self.body["systemInstruction"]["parts"][0]["text"]

    @property
    def text(self) -> str:
        return self.body["contents"][0]["parts"][0]["text"]

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.text)


class FakeGemini:
    """Answers each question with the next of the `script`, and when that is used up, with a fact per record."""

    def __init__(self) -> None:
        self.url = ""
        self.questions: list[Question] = []
        self.asked = asyncio.Event()
        self._script: deque[Answer] = deque()

    def script(self, *answers: Answer) -> None:
        self._script.extend(answers)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[FakeGemini]:
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
        self.questions.append(Question(request.path, {k.lower(): v for k, v in request.headers.items()}, body))
        self.asked.set()
        if self._script:
            return await self._script.popleft()(request)
        return await says(fact_per_record(self.questions[-1].document))(request)


def fact_per_record(document: dict[str, Any]) -> dict[str, Any]:
    """What an honest and simple-minded model says: each record has a first word."""
    read = [record for record in document["records"] if record.get("text")]
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


def says(
    extraction: object, *, finish: str = "STOP", usage: Mapping[str, Any] | None = None, thought: str = ""
) -> Answer:
    """An answer whose text is `extraction` as JSON, or `extraction` itself if that is a text."""
    text = extraction if isinstance(extraction, str) else json.dumps(extraction, ensure_ascii=False)
    parts = ([{"text": thought, "thought": True}] if thought else []) + [{"text": text}]
    return replies(
        {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
            "usageMetadata": usage or {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
            "modelVersion": "fake",
            "responseId": "1",
        }
    )


def replies(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Any JSON body with any status."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return answer


def replies_text(text: str, *, status: int = 200, content_type: str = "text/html") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status, content_type=content_type)

    return answer


def blocks(reason: str = "SAFETY") -> Answer:
    return replies({"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 9}})


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
