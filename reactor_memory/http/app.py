"""The application: its controllers with the services that they stand on. Making it does no work and opens nothing."""

from __future__ import annotations

from typing import Any

from litestar import Controller, Litestar, Router
from litestar.di import Provide
from litestar.types import Message, Scope

from reactor_memory.container import Container
from reactor_memory.http import guards
from reactor_memory.http.bodies import JsonRequest
from reactor_memory.http.guards import Authenticator
from reactor_memory.http.problems import EXCEPTION_HANDLERS
from reactor_memory.http.request_ids import request_id_of
from reactor_memory.http.system import SystemController


def create_app(container: Container, *, authenticator: Authenticator) -> Litestar:
    """The service over an open container (`reactor_memory.container.open_memory`), as an ASGI application.

    `authenticator` says who calls.
    """
    settings = container.settings()
    app = Litestar(
        route_handlers=[
            SystemController,
            Router(path="/v1/user", route_handlers=[], tags=["user"], guards=[guards.needs_user]),
            Router(path="/v1/agent", route_handlers=[], tags=["agent"], guards=[guards.needs_agent]),
        ],
        guards=[guards.authenticated(authenticator), guards.understood],
        dependencies={"principal": Provide(guards.caller, sync_to_thread=False)},
        exception_handlers=EXCEPTION_HANDLERS,
        before_send=[_add_headers],
        request_class=JsonRequest,
        request_max_body_size=settings.http.max_body_bytes,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    guards.note_parameters(app)
    return app


def standing_on(controller: type[Controller], **parts: object) -> type[Controller]:
    """The controller with its services, which it declares as attributes. They are found once, not for every request."""
    return type(controller.__name__, (controller,), parts)


async def _add_headers(message: Message, scope: Scope) -> None:
    """What every answer says, whatever it is."""
    if message["type"] == "http.response.start":
        headers: list[Any] = list(message["headers"])
        headers.append((b"x-request-id", request_id_of(scope).encode("ascii")))
        headers.append((b"x-content-type-options", b"nosniff"))
        headers.append((b"cache-control", b"no-store"))
        message["headers"] = headers
