"""A service on a real socket for the tests, and a client that reads server-sent events as a browser does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, contextmanager

import httpx2
import msgspec
import uvicorn
from litestar import Litestar

from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Principal
from reactor_memory.server.guards import Connection
from reactor_memory.server.problems import UNAUTHENTICATED, ProblemError


class Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self):
        """The signals of the tests are not for it."""
        yield


async def who_says_so(connection: Connection) -> Principal:
    """Whom the headers name: a user, an agent, or one on behalf of the other; `x-test-grant` limits the agent."""
    user, agent = connection.headers.get("x-test-user"), connection.headers.get("x-test-agent")
    if user is None and agent is None:
        raise ProblemError(UNAUTHENTICATED, "no")
    operations = tuple(connection.headers.get("x-test-grant", ",".join(OPERATIONS)).split(","))
    names = tuple(connection.headers.get("x-test-names", "*").split(","))
    grant = Grant(agent_names=names, operations=operations) if agent else None
    return Principal(user_id=user, client_id=agent, grant=grant)


@asynccontextmanager
async def serving(app: Litestar) -> AsyncGenerator[str]:
    """The address under which the application is served."""
    server = Server(uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 (it tells in no other way)
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


def user(name: str) -> dict[str, str]:
    return {"x-test-user": name}


def agent(name: str = "bot", *, of: str | None = None, grant: str | None = None) -> dict[str, str]:
    return {"x-test-agent": name, **(user(of) if of else {}), **({"x-test-grant": grant} if grant else {})}


class Event(msgspec.Struct, frozen=True):
    """One event. `data` is its JSON; `last_id` what a client would send to go on behind it."""

    kind: str
    data: dict[str, object] | None
    last_id: str | None


@asynccontextmanager
async def open_stream(
    client: httpx2.AsyncClient, path: str, headers: dict[str, str]
) -> AsyncGenerator[AsyncIterator[Event]]:
    async with client.stream("GET", path, headers={"accept": "text/event-stream", **headers}) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events_of(answer)


async def events_of(answer: httpx2.Response) -> AsyncIterator[Event]:
    """As the specification of server-sent events reads them; comments are events of the kind ``comment``."""
    kind, data, last_id = "message", list[str](), None
    async for line in lines_of(answer):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line.startswith(":"):
            yield Event("comment", None, last_id)
        elif name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
        elif not line and data:
            yield Event(kind, msgspec.json.decode("\n".join(data)), last_id)
            kind, data = "message", []


async def lines_of(answer: httpx2.Response) -> AsyncIterator[str]:
    """Split at what the specification splits at, and at nothing else that Python takes for the end of a line."""
    rest = b""
    async for chunk in answer.aiter_bytes():
        *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            yield line.decode()


async def text_until_end(events: AsyncIterator[Event]) -> str:
    text = ""
    async for event in events:
        if event.kind == "piece":
            assert event.data is not None
            text += str(event.data["text"])
        elif event.kind in ("end", "revoked"):
            return text
    raise AssertionError("the stream ended without an event that says so")
