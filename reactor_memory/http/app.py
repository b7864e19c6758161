"""The application: its controllers with the services that they stand on. Making it does no work and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Controller, Litestar, Router
from litestar.config.cors import CORSConfig
from litestar.di import Provide
from litestar.types import Message, Scope

from reactor_memory.container import Container
from reactor_memory.http import guards
from reactor_memory.http.agents import AgentController
from reactor_memory.http.bodies import JsonRequest
from reactor_memory.http.conversations import ConversationController
from reactor_memory.http.guards import Authenticator
from reactor_memory.http.idempotency import AnsweredRequests
from reactor_memory.http.limits import body_limits
from reactor_memory.http.messages import MessageController
from reactor_memory.http.paging import PageTokens, signing_secret
from reactor_memory.http.problems import EXCEPTION_HANDLERS
from reactor_memory.http.readiness import Probes
from reactor_memory.http.request_ids import request_id_of
from reactor_memory.http.sharing import SharingController, TransferController
from reactor_memory.http.system import SystemController


def create_app(container: Container, *, authenticator: Authenticator, probes: Probes | None = None) -> Litestar:
    """The service over an open container (`reactor_memory.container.open_memory`), as an ASGI application.

    `authenticator` says who calls, `probes` what readiness asks: nothing by default.
    """
    settings = container.settings()
    common = _common(container)
    app = Litestar(
        route_handlers=[
            standing_on(SystemController, probes=probes or Probes({}, timeout_seconds=1)),
            Router("/v1/user", route_handlers=_for_users(container, common), tags=["user"], guards=[guards.needs_user]),
            Router(
                "/v1/agent", route_handlers=_for_agents(container, common), tags=["agent"], guards=[guards.needs_agent]
            ),
        ],
        guards=[guards.authenticated(authenticator), guards.understood],
        dependencies={"principal": Provide(guards.caller, sync_to_thread=False)},
        exception_handlers=EXCEPTION_HANDLERS,
        before_send=[_add_headers],
        request_class=JsonRequest,
        request_max_body_size=settings.http.max_body_bytes,
        cors_config=_cors(settings.http.cors_origins),
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    guards.note_parameters(app)
    return app


def _for_users(container: Container, common: dict[str, object]) -> list[type[Controller]]:
    return [
        standing_on(ConversationController, conversations=container.conversations(), **common),
        standing_on(MessageController, messages=container.shared_messages(), **common),
        standing_on(SharingController, sharing=container.sharing(), **common),
        standing_on(TransferController, sharing=container.sharing(), **common),
    ]


def _for_agents(container: Container, common: dict[str, object]) -> list[type[Controller]]:
    return [
        standing_on(
            AgentController,
            messages=container.shared_messages(),
            summaries=container.posted_summaries(),
            **common,
        )
    ]


def _common(container: Container) -> dict[str, object]:
    """What most controllers need beside their service."""
    settings = container.settings()
    given = settings.http.token_secret
    secret = signing_secret(None if given is None else given.get_secret_value(), settings.store.url)
    return {
        "tokens": PageTokens(secret),
        "answered": AnsweredRequests(store=container.answered_request_store(), clock=container.clock()),
        "limits": body_limits(settings.http),
    }


def _cors(origins: Sequence[str]) -> CORSConfig | None:
    """For browsers of exactly these origins. Credentials are headers that a page sets itself, never cookies."""
    if not origins:
        return None
    return CORSConfig(
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["authorization", "content-type", "idempotency-key", "last-event-id", "x-request-id"],
        expose_headers=["location", "retry-after", "x-request-id"],
    )


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
