"""What is noted of each request when its answer is complete: numbers and names that we chose, nothing that was sent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from reactor_memory.features.sharing.principals import Principal
from reactor_memory.models import Value
from reactor_memory.server.request_ids import request_id_of

log = logging.getLogger(__name__)

NO_ROUTE = "none"
"""The route of a request whose path leads nowhere: paths are chosen by callers."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FAILED = 500
_GONE = 499
"""The status of an answer that was never begun, because the caller left or the service ended."""


class Exchange(Value, frozen=True, kw_only=True):
    """A request and its answer. `route` is the template of the path; `caller` says of what kind, not who."""

    request_id: str
    method: str
    route: str
    status: int
    caller: str
    seconds: float
    received_bytes: int
    sent_bytes: int


class Observer(Protocol):
    """Is told of every request."""

    def began(self) -> None: ...

    def ended(self, exchange: Exchange) -> None: ...


class RequestLog:
    """A line in the log for every request."""

    def began(self) -> None:
        pass

    def ended(self, exchange: Exchange) -> None:
        fields = {
            "request_id": exchange.request_id,
            "method": exchange.method,
            "route": exchange.route,
            "status": exchange.status,
            "caller": exchange.caller,
            "duration_ms": round(exchange.seconds * 1000, 3),
            "received_bytes": exchange.received_bytes,
            "sent_bytes": exchange.sent_bytes,
        }
        log.info("request", extra=fields)


class Observed:
    """The application, with observers of its requests."""

    def __init__(self, app: ASGIApp, observers: Sequence[Observer]) -> None:
        self._app = app
        self._observers = observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        scope.setdefault("state", {})
        watch = _Watch(method_of(scope), receive, send)
        for observer in self._observers:
            observer.began()
        try:
            await self._app(scope, watch.receive, watch.send)
        except Exception:
            watch.status = watch.status or _FAILED
            raise
        finally:
            exchange = watch.exchange(scope)
            for observer in self._observers:
                observer.ended(exchange)


class _Watch:
    """Stands between the server and the application, and counts."""

    def __init__(self, method: str, receive: Receive, send: Send) -> None:
        self._method = method
        self._receive = receive
        self._send = send
        self._started = perf_counter()
        self._received_bytes = 0
        self._sent_bytes = 0
        self.status = 0

    async def receive(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received_bytes += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self._sent_bytes += len(message.get("body", b""))
        await self._send(message)

    def exchange(self, scope: Any) -> Exchange:
        return Exchange(
            request_id=request_id_of(scope),
            method=self._method,
            route=scope.get("path_template", NO_ROUTE),
            status=self.status or _GONE,
            caller=kind_of(scope.get("user")),
            seconds=perf_counter() - self._started,
            received_bytes=self._received_bytes,
            sent_bytes=self._sent_bytes,
        )


def method_of(scope: Any) -> str:
    """The method, if it is one that exists: callers may send any word."""
    return scope["method"] if scope["method"] in _METHODS else "other"


def kind_of(principal: Principal | None) -> str:
    """What kind of caller it is."""
    if principal is None:
        return "unknown"
    if not principal.is_agent:
        return "user"
    return "agent" if principal.user_id is None else "agent for user"
