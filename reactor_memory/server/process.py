"""A process that serves: from an open container to a listening server, and in good order to its end.

The first SIGTERM or SIGINT begins the end: readiness says `stopping`, after `http.drain_delay_seconds` the listener
closes, streams are ended, requests and background work finish (`shutdown`). The second one, and the
end of the grace time, end the process at once; nothing acknowledged is lost by that.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, cast

import anyio
import uvicorn
from anyio.abc import TaskGroup
from litestar.types import ASGIApp

from reactor_memory.errors import ConfigurationError
from reactor_memory.features.sharing import key_operations
from reactor_memory.server.admission import Admission, admission_of, require_callers
from reactor_memory.server.app import create_app
from reactor_memory.server.connections import patient
from reactor_memory.server.development import DevelopmentIssuer, require_loopback
from reactor_memory.server.readiness import READY_SECONDS, Probe, Probes
from reactor_memory.server.request_records import Observed, Observer, RequestLog
from reactor_memory.server.routes import Routes
from reactor_memory.server.shutdown import Requests, Server, Stop, check_grace, stopping
from reactor_memory.server.slow_bodies import BoundedBodies
from reactor_memory.settings.service_sections import HttpSettings
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container

log = logging.getLogger(__name__)

BACKLOG = 2048


# -- where it listens -------------------------------------------------------------------------------------------------


@contextmanager
def listening(host: str, port: int, *, setting: str = "http.port") -> Generator[socket.socket]:
    """A socket that others can connect to. Raises `ConfigurationError` if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        code = error.errno or 0
        reason = os.strerror(code) if code > 0 else "there is no such host here"
        if code == errno.EADDRINUSE:
            reason += ": stop what listens there, or choose another port"
        raise ConfigurationError(setting, f"cannot listen on {address_of(host, port)}: {reason}") from None
    with listener:
        yield listener


def metrics_listening(http: HttpSettings) -> AbstractContextManager[socket.socket | None]:
    """A socket for those who read metrics, if they are served."""
    if http.metrics_port is None:
        return nullcontext()
    return listening(http.metrics_host, http.metrics_port, setting="http.metrics_port")


def address_of(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def address_listened_on(listener: socket.socket) -> str:
    return address_of(*listener.getsockname()[:2])


# -- what it serves ---------------------------------------------------------------------------------------------------


HEAD_SECONDS, BODY_SECONDS = 10.0, 30.0
"""How long a caller may take to send the head of a request, and its body."""

_NOBODYS_SESSION = "reactor-memory~ready"
"""An id that no session can have."""


def probes_of(container: ServiceContainer, admission: Admission) -> Probes:
    """What readiness asks: the database, where responses are kept if that is elsewhere, and the keys of the issuers."""
    store = container.message_store()
    probes: dict[str, Probe] = {
        "store": lambda: store.get_session(_NOBODYS_SESSION, None),
        "issuers": admission.check,
    }
    responses = container.response_store()
    if responses is not None and container.where_responses_are() == "elsewhere":
        probes["streams"] = lambda: responses.get_response(_NOBODYS_SESSION, "ready")
    return Probes(probes, timeout_seconds=READY_SECONDS)


def observed_app(
    container: ServiceContainer,
    admission: Admission,
    probes: Probes,
    observers: Sequence[Observer],
    routes: Routes | None = None,
) -> ASGIApp:
    """The service with everything that a request passes on its way."""
    settings = container.service_settings()
    app: ASGIApp = create_app(container, authenticator=admission, probes=probes, routes=routes)
    app = BoundedBodies(app, BODY_SECONDS)
    if settings.telemetry.enabled:
        from reactor_memory.server.tracing import Traced

        app = Traced(app)
    return Observed(app, [RequestLog(), *observers])


# -- the process ------------------------------------------------------------------------------------------------------


def _server(app: ASGIApp, http: HttpSettings, stop: Stop, *, lifespan: Literal["on", "off"]) -> Server:
    requests = Requests(app)
    config = uvicorn.Config(
        cast("Any", requests),
        http=patient(HEAD_SECONDS),
        ws="none",
        lifespan=lifespan,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(http.idle_timeout_seconds),
    )
    return Server(config, requests, stop)


async def run(
    settings: ServiceSettings,
    *,
    development: DevelopmentIssuer | None = None,
    ready: Callable[[ServiceContainer, str], None] | None = None,
    routes: Routes | None = None,
) -> int:
    """Open the memory and serve it until a signal says to stop; the exit code that the process is to end with.

    With `development` an issuer of this process counts beside those of the settings, and only this machine is answered.
    `ready` is called with the open container and the address; `routes` are served instead of the memory's own. From the
    signal on the process has `http.shutdown_grace_seconds`: then it ends, wherever it is. Raises `ConfigurationError`
    for settings that cannot be met, and `StoreError` if the database cannot be opened.
    """
    http = settings.http
    check_grace(settings)
    if development is not None:
        require_loopback(http.host)
    with (
        listening(http.host, http.port) as listener,
        metrics_listening(http) as metrics,
        stopping(http.shutdown_grace_seconds) as stop,
    ):
        async with open_service_container(settings) as container:
            database, clock = container.database(), container.clock()
            keys = await database.read(key_operations.list_api_keys)
            if development is None:
                require_callers(settings.auth, keys, now=clock())
            admission = admission_of(settings.auth, database=database, clock=clock, development=development)
            address = address_listened_on(listener)
            log.info("listening", extra={"address": address})
            if ready is not None:
                ready(container, address)
            await serve(container, admission, listener, stop, metrics=metrics, routes=routes)
    log.info("stopped")
    return stop.exit_code


async def serve(
    container: ServiceContainer,
    admission: Admission,
    listener: socket.socket,
    stop: Stop,
    *,
    metrics: socket.socket | None = None,
    routes: Routes | None = None,
) -> None:
    """Answer requests until `stop` is set and everything that was begun has ended. Those at `metrics` get metrics."""
    settings = container.service_settings()
    probes = probes_of(container, admission)
    async with anyio.create_task_group() as beside:
        observers = _observe(container, beside, metrics, stop)
        app = observed_app(container, admission, probes, observers, routes)
        server = _server(app, settings.http, stop, lifespan="on")
        async with anyio.create_task_group() as ending:
            ending.start_soon(_end_background, container, stop)
            ending.start_soon(_end_serving, container, server, probes, stop)
            await server.serve(sockets=[listener])
        beside.cancel_scope.cancel()


async def _end_background(container: ServiceContainer, stop: Stop) -> None:
    """Let steps that run finish within `background.close_grace_seconds`, give back the rest, and begin no more."""
    await stop.wait()
    await container.background_work().close()


async def _end_serving(container: ServiceContainer, server: Server, probes: Probes, stop: Stop) -> None:
    await stop.wait()
    log.info("stopping")
    probes.stop()
    await anyio.sleep(container.service_settings().http.drain_delay_seconds)
    server.should_exit = True
    container.response_streams().drain()


def _observe(
    container: ServiceContainer, tasks: TaskGroup, listener: socket.socket | None, stop: Stop
) -> Sequence[Observer]:
    """Serve metrics where they are asked for: whoever observes requests for them."""
    if listener is None:
        return ()
    from reactor_memory.server.gauges import GAUGES, Readings
    from reactor_memory.server.metrics import ServiceMetrics, metrics_app

    metrics = ServiceMetrics(GAUGES, Readings(container).read)
    log.info("metrics", extra={"address": f"{address_listened_on(listener)}/metrics"})
    server = _server(metrics_app(metrics), container.service_settings().http, stop, lifespan="off")
    tasks.start_soon(_serve_metrics, server, listener)
    return (metrics,)


async def _serve_metrics(server: Server, listener: socket.socket) -> None:
    """Until it is cancelled: they can be read until the very end."""
    await server.serve(sockets=[listener])
