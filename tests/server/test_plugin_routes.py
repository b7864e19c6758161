"""Controllers of plug-ins: below a prefix of their own, behind the door and the error bodies of the service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from litestar import Controller, Response, WebSocket, get, post, websocket
from litestar.params import FromPath, JSONBody
from litestar.testing import AsyncTestClient
from msgspec import Struct

from reactor_memory.errors import PluginError
from reactor_memory.extend import (
    Caller,
    InvalidInputError,
    Memory,
    Plugin,
    Principal,
    check_granted,
    not_found,
    user_of,
)
from reactor_memory.server.app import create_app
from reactor_memory.server.chat_server import chat_routes
from reactor_memory.wiring import stores
from tests.scenes.tables import each_row
from tests.server.running import RunningService, running_service

pytestmark = pytest.mark.anyio

SESSIONS = "/v1/plugins/counting/sessions"


class Said(Struct, forbid_unknown_fields=True):
    text: str


class Counting(Controller):
    memory: Memory

    @get("/sessions")
    async def sessions(self, principal: Caller) -> dict[str, int]:
        check_granted(principal, "read")
        return {"sessions": len((await self.memory.list_sessions(user_id=user_of(principal))).sessions)}

    @post("/sessions/{session_id:str}")
    async def say(self, principal: Caller, session_id: FromPath[str], data: JSONBody[Said]) -> dict[str, int]:
        check_granted(principal, "append")
        appended = await self.memory.save_history(session_id, data.text, user_id=user_of(principal))
        return {"seq": appended.last_seq}

    @get("/odd/{how:str}")
    async def odd(self, how: FromPath[str]) -> None:
        if how == "missing":
            raise not_found()
        if how == "wrong":
            raise InvalidInputError("name", "is too long")
        raise ZeroDivisionError("s3cret")


@asynccontextmanager
async def serving(
    monkeypatch: pytest.MonkeyPatch, *routes: Any, path: str = "memory://", **sections: Any
) -> AsyncGenerator[tuple[RunningService, AsyncTestClient[Any]]]:
    monkeypatch.setattr(stores, "discover", lambda: (Plugin(name="counting", routes=routes),))
    async with running_service(path, **sections) as service, AsyncTestClient(service.app) as client:
        yield service, client


async def test_callers_reach_what_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch, f"{__name__}:Counting") as (service, client):
        for name in ("s1", "s2"):
            said = await client.post(f"{SESSIONS}/{name}", headers=service.user("ann"), json={"text": "hello"})
            assert (said.status_code, said.json()) == (201, {"seq": 1})
        assert (await client.get(SESSIONS, headers=service.user("ann"))).json() == {"sessions": 2}
        assert (await client.get(SESSIONS, headers=service.user("bob"))).json() == {"sessions": 0}
        taken = await client.post(f"{SESSIONS}/s1", headers=service.user("bob"), json={"text": "mine"})
        assert (taken.status_code, taken.json()["code"]) == (404, "not_found")
        key = {"X-API-Key": await service.key("bot", operations=("read",))} | service.user("ann")
        denied = await client.post(f"{SESSIONS}/s1", headers=key, json={"text": "hello"})
        assert (denied.status_code, denied.json()["code"]) == (403, "forbidden")


@each_row(
    "method, path, options, status, code",
    [
        ("GET", SESSIONS, {"headers": {}}, 401, "unauthenticated"),
        ("GET", f"{SESSIONS}?x=1", {}, 400, "bad_parameter"),
        ("GET", SESSIONS, {"accept": "text/html"}, 406, "not_acceptable"),
        ("DELETE", SESSIONS, {}, 405, "method_not_allowed"),
        ("GET", "/v1/plugins/counting/none", {}, 404, "not_found"),
        ("GET", "/v1/plugins/other/sessions", {}, 404, "not_found"),
        ("POST", f"{SESSIONS}/s", {"json": {"text": 5}}, 422, "invalid"),
        ("POST", f"{SESSIONS}/s", {"json": {"text": "x", "more": 1}}, 422, "invalid"),
        ("POST", f"{SESSIONS}/s", {"content": b"{", "type": "application/json"}, 400, "malformed"),
        ("POST", f"{SESSIONS}/s", {"content": b"a", "type": "text/plain"}, 415, "unsupported_media_type"),
        ("POST", f"{SESSIONS}/s", {"json": {"text": "x" * 2_000}}, 413, "too_large"),
        ("GET", "/v1/plugins/counting/odd/missing", {}, 404, "not_found"),
        ("GET", "/v1/plugins/counting/odd/wrong", {}, 400, "bad_parameter"),
        ("GET", "/v1/plugins/counting/odd/broken", {}, 500, "internal"),
    ],
)
@pytest.mark.slow
async def test_what_is_refused_is_refused_as_everywhere(
    monkeypatch: pytest.MonkeyPatch, method: str, path: str, options: dict[str, Any], status: int, code: str
) -> None:
    async with serving(monkeypatch, Counting, http={"max_body_bytes": 1_024}) as (service, client):
        headers = options.pop("headers", service.user("ann"))
        headers |= {"Accept": options.pop("accept")} if "accept" in options else {}
        headers |= {"Content-Type": options.pop("type")} if "type" in options else {}
        answer = await client.request(method, path, headers=headers, **options)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-request-id"] == answer.json()["requestId"]
        assert "s3cret" not in answer.text


async def test_requests_are_counted_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"user_requests_per_minute": 4, "agent_requests_per_minute": 0, "failures_per_minute": 0}
    async with serving(monkeypatch, Counting, auth=few) as (service, client):
        answers = [(await client.get(SESSIONS, headers=service.user("ann"))).status_code for _ in range(8)]
        assert answers[-1] == 429


class Public(Controller):
    @get("/x", opt={"public": True})
    async def x(self) -> None: ...


class PublicWhole(Controller):
    opt = {"public": True}

    @get("/x")
    async def x(self) -> None: ...


class OwnErrors(Controller):
    exception_handlers = {Exception: lambda request, error: Response(str(error))}

    @get("/x")
    async def x(self) -> None: ...


class OwnErrorsInside(Controller):
    @get("/x", exception_handlers={Exception: lambda request, error: Response(str(error))})
    async def x(self) -> None: ...


class AnySize(Controller):
    @post("/x", request_max_body_size=None)
    async def x(self) -> None: ...


class Larger(Controller):
    request_max_body_size = 10**9

    @post("/x")
    async def x(self) -> None: ...


class Socket(Controller):
    @websocket("/x")
    async def x(self, socket: WebSocket[Any, Any, Any]) -> None: ...


class Unknown(Controller):
    wishes: Memory

    @get("/x")
    async def x(self) -> None: ...


@each_row(
    "route, problem",
    [
        (Public, "is public: every address of a plug-in needs a caller"),
        (PublicWhole, "is public: every address of a plug-in needs a caller"),
        (OwnErrors, "sets exception_handlers, which the service decides"),
        (OwnErrorsInside, "sets exception_handlers, which the service decides"),
        (AnySize, "sets request_max_body_size, which the service decides"),
        (Larger, "sets request_max_body_size, which the service decides"),
        (Socket, "is none of HTTP"),
        (Unknown, "declare the part 'wishes'; there are: conversations"),
        (Memory, "is no litestar.Controller"),
        ("no_such_module:Routes", "cannot be served: ModuleNotFoundError"),
    ],
)
@pytest.mark.slow
async def test_what_would_go_round_the_door_is_not_served(
    monkeypatch: pytest.MonkeyPatch, route: Any, problem: str
) -> None:
    with pytest.raises(PluginError, match=problem):
        async with serving(monkeypatch, route):
            raise AssertionError


async def test_the_chat_server_serves_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch, Counting) as (service, _):
        chat = create_app(service.container, authenticator=known, routes=chat_routes())
        assert SESSIONS in {route.path for route in chat.routes}


async def known(connection: object) -> Principal:
    return Principal(user_id="ann")
