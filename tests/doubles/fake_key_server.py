"""A server on loopback that gives out the public keys of an issuer, well and badly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from aiohttp import web


class FakeKeyServer:
    """``/keys`` gives the set. ``/moved`` points there, ``/missing``, ``/broken`` and ``/cut`` fail, ``/endless`` never
    stops, and ``/dripping`` sends a byte now and then.
    """

    def __init__(self, document: bytes) -> None:
        self.document: bytes | None = document
        self.paths: list[str] = []
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def running(cls, document: bytes) -> AsyncIterator[Self]:
        server = cls(document)
        app = web.Application()
        app.router.add_get("/{path}", server._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield server
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        match request.path:
            case "/keys" if self.document is not None:
                return web.Response(body=self.document)
            case "/moved":
                return web.Response(status=302, headers={"Location": "/keys"}, body=self.document)
            case "/missing":
                return web.Response(status=404, body=self.document)
            case "/cut":
                return await self._cut(request)
            case "/endless":
                return await self._pieces(request, b" " * 65536, 0)
            case "/dripping":
                return await self._pieces(request, b" ", 0.01)
            case _:
                return web.Response(status=500, body=self.document)

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.close()
        return response

    async def _pieces(self, request: web.Request, piece: bytes, pause_seconds: float) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(piece)
                await asyncio.sleep(pause_seconds)
        except (ConnectionError, asyncio.CancelledError):
            return response
