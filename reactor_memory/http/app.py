"""The application: its controllers with the services that they stand on. Making it does no work and opens nothing."""

from __future__ import annotations

from typing import Any

from dependency_injector import providers
from litestar import Litestar
from litestar.types import Message, Scope

from reactor_memory.container import Container
from reactor_memory.http import guards
from reactor_memory.http.bodies import JsonRequest
from reactor_memory.http.doorstep import Doorstep
from reactor_memory.http.guards import Authenticator
from reactor_memory.http.idempotency import AnsweredRequests
from reactor_memory.http.limits import body_limits
from reactor_memory.http.paging import PageTokens, signing_secret
from reactor_memory.http.problems import EXCEPTION_HANDLERS
from reactor_memory.http.readiness import Probes
from reactor_memory.http.request_ids import request_id_of
from reactor_memory.http.routes import Parts, routers
from reactor_memory.settings import Settings


def create_app(container: Container, *, authenticator: Authenticator) -> Litestar:
    """The service over an open container (`reactor_memory.container.open_memory`), as an ASGI application.

    `authenticator` says who calls.
    """
    app = Litestar(
        route_handlers=routers(parts_of(container)),
        guards=[guards.authenticated(authenticator), guards.understood],
        exception_handlers=EXCEPTION_HANDLERS,
        before_send=[_add_headers],
        request_class=JsonRequest,
        request_max_body_size=container.settings().http.max_body_bytes,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    guards.note_parameters(app)
    app.asgi_handler = Doorstep(app.asgi_handler)
    return app


def parts_of(container: Container) -> Parts:
    """What controllers may declare, each made when the first one asks for it."""
    settings = container.settings()
    return {
        "conversations": container.conversations,
        "messages": container.shared_messages,
        "sharing": container.sharing,
        "summaries": container.posted_summaries,
        "search": container.message_search,
        "answered": providers.Singleton(
            AnsweredRequests, store=container.answered_request_store, clock=container.clock
        ),
        "tokens": providers.Singleton(page_tokens, settings),
        "limits": providers.Singleton(body_limits, settings.http),
        "probes": lambda: Probes({}, timeout_seconds=2.0),
        "is_described": lambda: settings.http.openapi,
    }


def page_tokens(settings: Settings) -> PageTokens:
    given = settings.http.token_secret
    return PageTokens(signing_secret(None if given is None else given.get_secret_value(), settings.store.url))


async def _add_headers(message: Message, scope: Scope) -> None:
    """What every answer says, whatever it is."""
    if message["type"] == "http.response.start":
        headers: list[Any] = list(message["headers"])
        headers.append((b"x-request-id", request_id_of(scope).encode("ascii")))
        headers.append((b"x-content-type-options", b"nosniff"))
        headers.append((b"cache-control", b"no-store"))
        message["headers"] = headers
