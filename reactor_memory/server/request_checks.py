"""What is settled before a request is routed: its deadline, its path, addresses that are too long, and HEAD."""

from __future__ import annotations

from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from reactor_memory.database.deadlines import restart_deadline, within
from reactor_memory.server.addresses import routed_path
from reactor_memory.server.problems import URI_TOO_LONG, ProblemError, answer
from reactor_memory.server.request_ids import request_id_of

MAX_ADDRESS_BYTES = 8192
"""Of path and query together. The router remembers addresses, so they must not be of any length."""


class RequestChecks:
    """An ASGI application in front of another one. HEAD is answered as GET is, without the body.

    All that a request asks of databases has one deadline, `timeout_seconds` after the request has arrived.
    """

    def __init__(self, app: ASGIApp, timeout_seconds: float) -> None:
        self._app = app
        self._timeout_seconds = timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with within(self._timeout_seconds):
            await self._answer(scope, self._timed(receive), send)

    def _timed(self, receive: Receive) -> Receive:
        """The time that a caller takes to send a body is theirs."""

        async def timed() -> Any:
            message: Any = await receive()
            if message["type"] == "http.request":
                restart_deadline(self._timeout_seconds)
            return message

        return timed

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: Any = scope
        request["path"] = routed_path(request)
        if len(request["path"]) + len(request["query_string"]) > MAX_ADDRESS_BYTES:
            await _refuse(scope, receive, send)
        elif request["method"] == "HEAD":
            exchange = _WithoutBody(request, receive, send)
            request["method"] = "GET"
            await self._app(scope, exchange.receive, exchange.send)
        else:
            await self._app(scope, receive, send)


class _WithoutBody:
    """The head of an answer goes out, its body does not. To what goes on and on, the caller seems to have left."""

    def __init__(self, request: dict[str, Any], receive: Receive, send: Send) -> None:
        self._request = request
        self._receive = receive
        self._send = send
        self._is_over = False

    async def receive(self) -> Any:
        return {"type": "http.disconnect"} if self._is_over else await self._receive()

    async def send(self, message: Message) -> None:
        # The server reads the method when it sends: an answer to GET without its body would be an error.
        self._request["method"] = "HEAD"
        if message["type"] == "http.response.body":
            if self._is_over:
                return
            self._is_over = True
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    problem = ProblemError(URI_TOO_LONG, f"path and query must be shorter than {MAX_ADDRESS_BYTES} bytes")
    response: Any = answer(problem, request_id_of(scope)).to_asgi_response(app=None, request=None)  # pyright: ignore
    await response(scope, receive, send)
