"""The page of a chat: the sessions of a user, an answer that streams, and the context of each turn one click away."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.params import Body, FromQuery
from litestar.response import Redirect, Stream

from reactor_memory.errors import ReactorMemoryError
from reactor_memory.models import Message, Value
from reactor_memory.studio.rendering import address
from reactor_memory.studio.studio import Studio

NEWEST = 60
OTHERS = 30


class Said(Value, frozen=True, kw_only=True):
    """What the form sends. `user`: whose a new session is to be."""

    id: str
    text: str
    user: str = ""


@get("/chat")
async def chat_page(
    request: Request[Any, Any, Any],
    studio: NamedDependency[Studio],
    id: FromQuery[str | None] = None,  # noqa: A002 (the name in the address)
    user: FromQuery[str] = "",
) -> Response[str] | Redirect:
    """The newest messages of a session, and the other sessions of its user. Without an `id` a new session begins."""
    if id is None:
        return Redirect(address("/chat", id=f"chat-{secrets.token_hex(6)}", user=user), status_code=303)
    owner, messages, is_new = await _said_so_far(studio, id)
    others = await studio.memory.list_sessions(user_id=(user or None) if is_new else owner, limit=OTHERS)
    part = "log" if request.headers.get("x-fragment") == "log" else None
    return await studio.pages.show(
        "chat.html",
        part=part,
        id=id,
        user=user if is_new else owner or "",
        is_new=is_new,
        messages=messages,
        others=others.sessions,
        writes=studio.writes,
        model=studio.memory.container.chat_model(),
    )


async def _said_so_far(studio: Studio, session_id: str) -> tuple[str | None, tuple[Message, ...], bool]:
    """The owner of a session, its newest messages, and whether it is yet to be begun."""
    if not await _exists(studio, session_id):
        return None, (), True
    owner = await studio.owner_of(session_id)
    return owner, await studio.memory.read_messages(session_id, user_id=owner, last=NEWEST), False


async def _exists(studio: Studio, session_id: str) -> bool:
    return any(each.session_id == session_id for each in await studio.memory.overview.forks(session_id))


@post("/chat", status_code=200)
async def say(
    request: Request[Any, Any, Any],
    studio: NamedDependency[Studio],
    data: Annotated[Said, Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> Stream | Redirect:
    """Ask the model. Who accepts an event stream gets the answer as it comes; everybody else the page with it."""
    studio.require_writing()
    if "text/event-stream" in request.headers.get("accept", ""):
        return Stream(_events(studio, data), media_type="text/event-stream")
    async for _ in _pieces(studio, data):
        pass
    return Redirect(address("/chat", id=data.id, user=data.user), status_code=303)


async def _events(studio: Studio, said: Said) -> AsyncGenerator[bytes]:
    """Pieces of the answer, then ``done``, or ``failed`` with what went wrong."""
    try:
        async for piece in _pieces(studio, said):
            yield _event("piece", piece)
    except ReactorMemoryError as error:
        yield _event("failed", str(error))
    else:
        yield _event("done", "")


def _event(name: str, data: str) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


async def _pieces(studio: Studio, said: Said) -> AsyncGenerator[str]:
    """The answer, piece by piece. It is stored once it is complete; what the person said is stored in any case."""
    owner = await studio.owner_of(said.id) if await _exists(studio, said.id) else said.user or None
    container = studio.memory.container
    system = container.settings().chat.system or None
    budget = await studio.budget_of(said.id, None)
    async with (
        studio.memory.turn(said.id, Message.user(said.text), user_id=owner, system=system, budget=budget) as turn,
        aclosing(container.chat_model().stream(turn.messages(), system=system)) as pieces,
    ):
        async for piece in turn.stream(pieces):
            yield piece
