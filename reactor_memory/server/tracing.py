"""OpenTelemetry: a span for each request, which the spans of the library (`reactor_memory.wiring.telemetry`) stand in.

The context of a caller is taken from ``traceparent``. Nothing that was sent is recorded: no path, query or header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from reactor_memory.server.request_records import method_of
from reactor_memory.version import __version__

_TRACE_HEADERS = (b"traceparent", b"tracestate")


class Traced:
    """The application, with a span around each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tracer = trace.get_tracer("reactor_memory", __version__)
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        with self._tracer.start_as_current_span(
            method_of(scope),
            context=self._context_of(scope),
            kind=SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                await self._app(scope, receive, _telling_status(send, span))
            except BaseException as error:
                _note_error(span, type(error).__name__)
                raise
            finally:
                _name(span, scope)

    def _context_of(self, scope: Any) -> Context:
        return self._propagator.extract(_trace_headers(scope))


def _trace_headers(scope: Any) -> Mapping[str, str]:
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE_HEADERS}


def _telling_status(send: Send, span: Span) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                _note_error(span, str(status))
        await send(message)

    return tell


def _note_error(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _name(span: Span, scope: Any) -> None:
    """The route is known when the application has found it."""
    method, route = method_of(scope), scope.get("path_template")
    span.set_attribute("http.request.method", method)
    if route is not None:
        span.set_attribute("http.route", route)
        span.update_name(f"{method} {route}")
