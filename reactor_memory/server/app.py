"""The application: its controllers with the services that they stand on. Making it does no work and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dependency_injector import providers
from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.types import Message, Scope

from reactor_memory.server import guards
from reactor_memory.server.addresses import with_slashes
from reactor_memory.server.guards import Authenticator
from reactor_memory.server.idempotency import AnsweredRequests
from reactor_memory.server.json_answers import JsonAnswer
from reactor_memory.server.limits import BodyLimits
from reactor_memory.server.openapi import encoded_document
from reactor_memory.server.paging import ServiceTokens
from reactor_memory.server.plugin_routes import check_plugin_routes, plugin_routers
from reactor_memory.server.problems import EXCEPTION_HANDLERS
from reactor_memory.server.readiness import NO_PROBES, Probes
from reactor_memory.server.remembered_calls import RememberedCalls
from reactor_memory.server.request_bodies import JsonRequest
from reactor_memory.server.request_checks import RequestChecks
from reactor_memory.server.request_ids import request_id_of
from reactor_memory.server.routes import Parts, Routes, routers
from reactor_memory.wiring.service_container import ServiceContainer


def create_app(
    container: ServiceContainer,
    *,
    authenticator: Authenticator,
    probes: Probes = NO_PROBES,
    routes: Routes | None = None,
) -> Litestar:
    """The service over an open container (`open_service_container`), as an ASGI application.

    `authenticator` says who calls, `probes` what readiness asks; `routes` are served instead of the memory's own.
    """
    settings = container.service_settings()
    http = settings.http
    parts = parts_of(container) | {"probes": lambda: probes}
    app = Litestar(
        route_handlers=[
            *(routers(parts) if routes is None else routes(container, parts)),
            *plugin_routers(container, parts),
        ],
        middleware=[with_slashes, guards.admitted(authenticator)],
        exception_handlers=EXCEPTION_HANDLERS,
        before_send=[_add_headers],
        request_class=JsonRequest,
        response_class=JsonAnswer,
        request_max_body_size=http.max_body_bytes,
        cors_config=_cors(http.cors_origins),
        on_startup=[container.response_streams().open],
        on_shutdown=[container.response_streams().close],
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    check_plugin_routes(app)
    guards.note_routes(app)
    remembered = RememberedCalls(app, app.asgi_handler, authenticator)
    app.asgi_handler = RequestChecks(remembered, settings.store.timeout_seconds)
    return app


def parts_of(container: ServiceContainer) -> Parts:
    """What controllers may declare, each made when the first one asks for it."""
    return {
        "conversations": container.conversations,
        "database": container.database,
        "messages": container.shared_messages,
        "sharing": container.sharing,
        "summaries": container.posted_summaries,
        "streams": container.response_streams,
        "search": container.message_search,
        "answered": providers.Singleton(
            AnsweredRequests, database=container.database, access=container.access, clock=container.clock
        ),
        "tokens": providers.Singleton(ServiceTokens, container.database),
        "limits": providers.Singleton(BodyLimits),
        "description": lambda: staticmethod(encoded_document),  # a function in a class would be its method
    }


def _cors(origins: Sequence[str]) -> CORSConfig | None:
    """For browsers of exactly these origins. Credentials are headers that a page sets itself, never cookies."""
    if not origins:
        return None
    return CORSConfig(
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["authorization", "content-type", "idempotency-key", "last-event-id", "x-request-id"],
        expose_headers=["location", "retry-after", "x-request-id"],
    )


async def _add_headers(message: Message, scope: Scope) -> None:
    """What every answer says, whatever it is."""
    if message["type"] == "http.response.start":
        headers: list[Any] = list(message["headers"])
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            headers = _with_all_methods(headers, scope)
        headers.append((b"x-request-id", request_id_of(scope).encode("ascii")))
        headers.append((b"x-content-type-options", b"nosniff"))
        headers.append((b"cache-control", b"no-store"))
        message["headers"] = headers


def _with_all_methods(headers: list[Any], scope: Any) -> list[Any]:
    """`Allow` with all methods of the path: the framework names those of the first controllers only."""
    allowed = scope["route_handler"].opt[guards.METHODS] if "route_handler" in scope else None
    if allowed is None:
        return headers
    return [*(header for header in headers if header[0] != b"allow"), (b"allow", allowed.encode("ascii"))]
