"""What is checked of every request before its body is read: who calls, and whether the request can be understood."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, cast

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send

from reactor_memory.features.sharing.principals import Principal
from reactor_memory.server import problems
from reactor_memory.server.problems import ProblemError, invalid

Connection: TypeAlias = ASGIConnection[Any, Any, Any, Any]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
Middleware: TypeAlias = Callable[[ASGIApp], ASGIApp]
Authenticator: TypeAlias = Callable[[Connection], Awaitable[Principal]]
"""Who calls. Raises `ProblemError` or litestar's `NotAuthorizedException` for nobody that we know."""

PUBLIC = "public"
"""The option (``opt``) of a handler that anybody may call."""

CALLERS = "callers"
"""The option that says whose a handler is: `USERS` or `AGENTS`."""

USERS, AGENTS = "users", "agents"

METHODS = "methods"
"""The option under which a handler knows all methods of its path, as they stand in ``Allow``."""

_PARAMETERS = "query_parameters"


def admitted(authenticate: Authenticator) -> Middleware:
    """Let nobody pass whom `authenticate` does not know, and nothing that cannot be understood (`check_request`).

    It stands between the router and the handler of each address, as the framework's guards do, which copy the handler
    for each request.
    """

    def door(app: ASGIApp) -> ASGIApp:
        async def let_in(scope: Scope, receive: Receive, send: Send) -> None:
            request, handler = cast("dict[str, Any]", scope), cast("BaseRouteHandler", scope["route_handler"])
            connection: Connection = ASGIConnection(scope)
            if PUBLIC not in handler.opt and request["method"] != "OPTIONS":
                principal = request["user"] = await authenticate(connection)
                check_caller(principal, handler.opt.get(CALLERS))
            check_request(connection, handler)
            await app(scope, receive, send)

        return let_in

    return door


def caller(scope: Scope) -> Principal:
    """Whom the guard let pass: the dependency `principal` of handlers."""
    return cast("dict[str, Any]", scope)["user"]


def check_caller(principal: Principal, callers: str | None) -> None:
    """Raises `ProblemError` for an agent that names no user where users do something, and for a user without the key
    of an agent where agents do.
    """
    if callers == USERS and principal.user_id is None:
        raise ProblemError(problems.FORBIDDEN, "this needs a user: send their token, or name them in X-On-Behalf-Of")
    if callers == AGENTS and not principal.is_agent:
        raise ProblemError(problems.FORBIDDEN, "this needs the key of an agent: send it as X-API-Key")


def check_request(connection: Connection, handler: BaseRouteHandler) -> None:
    """Raises `ProblemError` for query parameters that the handler does not know, for a body that is no plain JSON, and
    for callers that take nothing that we have.
    """
    scope = _scope(connection)
    if scope["query_string"]:
        _check_parameters(connection.query_params, handler.opt[_PARAMETERS])
    headers: Headers = scope["headers"]
    if scope["method"] in ("POST", "PATCH", "PUT"):
        _check_media_type(_header(headers, b"content-type"), _header(headers, b"content-encoding"), handler)
    accept = _header(headers, b"accept")
    if accept is not None and "*/*" not in accept and "application/json" not in accept:
        _check_acceptable(accept.lower(), _media_type(handler))


def is_plain(headers: Headers) -> bool:
    """Whether nothing in the head of a request asks for another answer than JSON for whoever calls."""
    for name, value in headers:
        if name == b"origin" or (name == b"accept" and b"*/*" not in value and b"application/json" not in value):
            return False
    return True


def _header(headers: Headers, name: bytes) -> str | None:
    """Of the scope: the framework would make a dictionary of all of them first."""
    return next((value.decode("latin-1") for known, value in headers if known == name), None)


def _scope(connection: Connection) -> dict[str, Any]:
    return cast("dict[str, Any]", connection.scope)


def note_routes(app: Litestar) -> None:
    """Let every handler know the names of its query parameters and the methods of its path, found out once."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler, model in route.route_handler_map.values():
                handler.opt[METHODS] = ", ".join(sorted(route.methods))
                handler.opt[_PARAMETERS] = frozenset(parameter.field_alias for parameter in model.expected_query_params)


def _check_parameters(names: Iterable[str], known: frozenset[str]) -> None:
    for name in names:
        if name not in known:
            raise invalid(name[:100], "is no parameter of this address", problems.BAD_PARAMETER)


def _check_media_type(content_type: str | None, encoding: str | None, handler: BaseRouteHandler) -> None:
    if encoding is not None and encoding.lower() != "identity":
        raise ProblemError(problems.UNSUPPORTED_MEDIA_TYPE, "a body must not be compressed")
    if content_type is not None and content_type.split(";", 1)[0].strip().lower() != "application/json":
        raise ProblemError(problems.UNSUPPORTED_MEDIA_TYPE, "a body must be application/json")


def _media_type(handler: Any) -> str:
    media_type = getattr(handler, "media_type", None)
    return getattr(media_type, "value", media_type) or "application/json"


def _check_acceptable(accept: str, media_type: str) -> None:
    if media_type not in accept and f"{media_type.split('/')[0]}/*" not in accept:
        raise ProblemError(problems.NOT_ACCEPTABLE, f"the answer is {media_type}")
