"""Numbers for Prometheus. Labels are templates of routes, methods and states: none is chosen by a caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from litestar import Litestar, Response, get
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from reactor_memory.server.request_records import Exchange

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

Readings = Callable[[], Awaitable[Mapping[str, float]]]
"""What is read when metrics are asked for, by the name of the gauge."""


class ServiceMetrics:
    """Observes requests (`reactor_memory.server.request_records`), and reads what else there is when it is asked."""

    def __init__(self, gauges: Mapping[str, str], read: Readings) -> None:
        """`gauges` maps names of what `read` gives to what they mean. A name that was not read now is not shown."""
        self._registry = CollectorRegistry()
        named: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "reactor_memory_requests", "Requests that were answered.", ["method", "route", "status"], **named
        )
        self._seconds = Histogram(
            "reactor_memory_request_seconds",
            "How long answers took.",
            ["method", "route"],
            buckets=_SECONDS,
            **named,
        )
        self._in_flight = Gauge("reactor_memory_requests_in_flight", "Requests that are being answered.", **named)
        self._gauges = gauges
        self._read = read

    def began(self) -> None:
        self._in_flight.inc()

    def ended(self, exchange: Exchange) -> None:
        self._in_flight.dec()
        self._requests.labels(exchange.method, exchange.route, exchange.status).inc()
        self._seconds.labels(exchange.method, exchange.route).observe(exchange.seconds)

    async def exposition(self) -> bytes:
        """Everything in the text format of Prometheus."""
        read = await self._read()
        now = CollectorRegistry()
        for name, value in read.items():
            Gauge(f"reactor_memory_{name}", self._gauges[name], registry=now).set(value)
        return generate_latest(self._registry) + generate_latest(now)


def metrics_app(metrics: ServiceMetrics) -> Litestar:
    """Answers ``GET /metrics``, and nothing else."""

    @get("/metrics", media_type=CONTENT_TYPE_PLAIN_0_0_4)
    async def get_metrics() -> Response[bytes]:
        return Response(await metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return Litestar([get_metrics], openapi_config=None, logging_config=None)
