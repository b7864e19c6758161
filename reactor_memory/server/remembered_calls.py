"""Addresses that are asked for again and again: what they ask for is read once, and not by the framework each time.

The framework reads an address the first time, checks it and answers. What it then found, the handler with its
arguments, is remembered; a request with the same path and query goes straight to the handler. Who calls and what a
request says of itself is checked each time, by the same functions, and errors are answered by the same one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send

from reactor_memory.server import guards
from reactor_memory.server.json_answers import JsonAnswer
from reactor_memory.server.problems import answer_error
from reactor_memory.server.request_bodies import JsonRequest

REPEATED = "repeated"
"""The option (``opt``) of a handler of GET whose answer rests on path, query and caller alone: its addresses are
remembered. Its value names the parameters with which an address hardly comes again, words of people among them.
"""

MOST_REMEMBERED, LONGEST_ADDRESS = 4096, 512
"""So many addresses of so many characters: about 4 MB."""

Address: TypeAlias = tuple[str, bytes]
"""A path and a query."""


class _Call(NamedTuple):
    handler: Any
    arguments: Mapping[str, Any]
    template: str


class RememberedCalls:
    """An ASGI application in front of that of the framework."""

    def __init__(self, framework: Litestar, app: ASGIApp, authenticate: guards.Authenticator) -> None:
        self._app = app
        self._authenticate = authenticate
        self._models = _repeated(framework)
        self._calls: OrderedDict[Address, _Call] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = cast("dict[str, Any]", scope)
        address = request["path"], request["query_string"]
        call = self._calls.get(address)
        if call is not None and request["method"] == "GET" and guards.is_plain(request["headers"]):
            self._calls.move_to_end(address)
            await self._answer(call, scope, receive, send)
            return
        await self._app(scope, receive, send)
        if call is None and request.get("route_handler") in self._models and "user" in request:
            await self._remember(address, JsonRequest(scope, receive, send))

    async def _answer(self, call: _Call, scope: Scope, receive: Receive, send: Send) -> None:
        request = cast("dict[str, Any]", scope)
        request["route_handler"], request["path_template"] = call.handler, call.template
        try:
            principal = request["user"] = await self._authenticate(ASGIConnection(scope))
            guards.check_caller(principal, call.handler.opt.get(guards.CALLERS))
            content = await call.handler.fn(principal=principal, **call.arguments)
            answer = JsonAnswer(content).to_asgi_response()
        except Exception as error:
            asked = JsonRequest(scope, receive, send)
            answer = answer_error(asked, error).to_asgi_response(app=None, request=asked)  # pyright: ignore
        await answer(scope, receive, send)

    async def _remember(self, address: Address, request: JsonRequest) -> None:
        """What the framework has read, read once more: it tells nobody."""
        handler: Any = request.route_handler
        model = self._models[handler]
        is_long = len(address[0]) + len(address[1]) > LONGEST_ADDRESS
        if is_long or any(name in request.query_params for name in handler.opt[REPEATED]):
            return
        try:
            guards.check_request(request, handler)
            given = await model.to_kwargs(connection=request)
            given["principal"] = request.scope["user"]
            arguments = handler.signature_model.parse_values_from_connection_kwargs(connection=request, kwargs=given)
        except Exception:  # whatever is wrong with it was answered already
            return
        del arguments["principal"]
        self._calls[address] = _Call(handler, arguments, cast("dict[str, Any]", request.scope)["path_template"])
        while len(self._calls) > MOST_REMEMBERED:
            self._calls.popitem(last=False)


def _repeated(framework: Litestar) -> dict[Any, Any]:
    """Handlers whose addresses are remembered, with what reads their arguments."""
    routes = [route for route in framework.routes if isinstance(route, HTTPRoute)]
    pairs = [route.route_handler_map["GET"] for route in routes if "GET" in route.route_handler_map]
    return {handler: model for handler, model in pairs if REPEATED in handler.opt}
