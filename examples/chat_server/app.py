"""The HTTP interface: one turn of a chat, and which session a client should use.

======  ====================================  =========================================================================
POST    /api/chat                             ``{message, session_id, agent_id}`` -> ``{answer, session_id, is_active}``
POST    /api/sessions/resolve                 ``{agent_id, cached_id?}`` -> ``{session_id, source}``
GET     /api/sessions/active?agent_id=        the active session; 404 if there is none
PUT     /api/sessions/active                  ``{agent_id, expected?, session_id}``: switch; 409 if it has changed
POST    /api/sessions/new                     ``{agent_id}``: start a new one
GET     /api/sessions                         the active session with each agent
GET     /api/sessions/{session_id}/messages   what was said
======  ====================================  =========================================================================

401 without a user, 404 for what does not exist or belongs to someone else, 410 for a deleted session, 422 for a body
that makes no sense, 503 while the database is out of reach.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from examples.chat_server.agents import answer, check_agent
from examples.chat_server.identity import user_of
from examples.chat_server.models import OfflineModel
from reactor_memory import (
    ActiveSessionConflictError,
    BudgetExceededError,
    Container,
    InvalidInputError,
    Memory,
    ReactorMemoryError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    Settings,
    StoreError,
    open_memory,
)
from reactor_memory.features.active_sessions.directory import SessionDirectory
from reactor_memory.features.active_sessions.models import ActiveSession

T = TypeVar("T")

STATUS: dict[type[ReactorMemoryError], tuple[int, str]] = {
    InvalidInputError: (422, ""),
    SessionOwnershipError: (404, "no such session"),
    SessionNotFoundError: (404, "no such session"),
    SessionDeletedError: (410, "the session was deleted; resolve again"),
    ActiveSessionConflictError: (409, "another session became active; resolve again"),
    BudgetExceededError: (413, "this is more than the model takes in; say less"),
    StoreError: (503, "the database is out of reach; try again"),
}
"""What to answer for an error of the library: whose a session is, nobody learns."""


class ChatRequest(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    session_id: str
    agent_id: str


class ResolveRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    cached_id: str | None = None


class SwitchRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    session_id: str
    expected: str | None = None


class NewRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str


def create_app(
    settings: Settings | None = None,
    *,
    model: BaseChatModel | None = None,
    configure: Callable[[Container], None] | None = None,
) -> Starlette:
    """The server. Notes are in the contexts unless `settings` are given; `configure` replaces parts of the memory."""
    settings = settings or Settings(notes={"enabled": True})  # pyright: ignore

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, Any]]:
        async with open_memory(settings, configure=configure) as memory:
            yield {"memory": memory, "model": model or OfflineModel()}

    handlers: dict[Any, Any] = dict.fromkeys(STATUS, _refused) | {HTTPException: _problem}
    return Starlette(routes=ROUTES, lifespan=lifespan, exception_handlers=handlers)


async def chat(request: Request) -> Response:
    user_id, asked = user_of(request), await _body(request, ChatRequest)
    check_agent(asked.agent_id)
    if not asked.message.strip():
        raise InvalidInputError("message", "is blank; say something")
    text = await answer(
        _memory(request),
        request.state.model,
        user_id=user_id,
        agent_id=asked.agent_id,
        session_id=asked.session_id,
        text=asked.message,
    )
    is_active = await _directory(request).heartbeat(user_id, asked.agent_id, asked.session_id)
    return JSONResponse({"answer": text, "session_id": asked.session_id, "is_active": is_active})


async def resolve(request: Request) -> Response:
    user_id, asked = user_of(request), await _body(request, ResolveRequest)
    check_agent(asked.agent_id)
    resolved = await _directory(request).resolve(user_id, asked.agent_id, cached_id=asked.cached_id)
    return JSONResponse({"session_id": resolved.session_id, "source": resolved.source})


async def active_session(request: Request) -> Response:
    user_id, agent_id = user_of(request), request.query_params.get("agent_id", "")
    check_agent(agent_id)
    found = (active for active in await _directory(request).list(user_id) if active.agent_name == agent_id)
    active = next(found, None)
    if active is None or active.session_id is None:
        raise HTTPException(404, "no session is active")
    return JSONResponse(_shown(active))


async def switch(request: Request) -> Response:
    user_id, asked = user_of(request), await _body(request, SwitchRequest)
    check_agent(asked.agent_id)
    active = await _directory(request).switch(user_id, asked.agent_id, expected=asked.expected, new=asked.session_id)
    return JSONResponse(_shown(active))


async def start_new(request: Request) -> Response:
    user_id, asked = user_of(request), await _body(request, NewRequest)
    check_agent(asked.agent_id)
    return JSONResponse(_shown(await _directory(request).start_new(user_id, asked.agent_id)), status_code=201)


async def sessions(request: Request) -> Response:
    found = await _directory(request).list(user_of(request))
    return JSONResponse([_shown(active) for active in found if active.session_id is not None])


async def messages(request: Request) -> Response:
    user_id, session_id = user_of(request), request.path_params["session_id"]
    found = await _memory(request).read_messages(session_id, user_id=user_id, last=100)
    shown = [message for message in found if message.role in ("user", "assistant") and message.content]
    return JSONResponse([{"seq": each.seq, "role": each.role, "content": each.content} for each in shown])


async def page(request: Request) -> Response:
    return FileResponse(Path(__file__).with_name("index.html"))


ROUTES = [
    Route("/", page),
    Route("/api/chat", chat, methods=["POST"]),
    Route("/api/sessions/resolve", resolve, methods=["POST"]),
    Route("/api/sessions/active", active_session),
    Route("/api/sessions/active", switch, methods=["PUT"]),
    Route("/api/sessions/new", start_new, methods=["POST"]),
    Route("/api/sessions", sessions),
    Route("/api/sessions/{session_id}/messages", messages),
]


def _memory(request: Request) -> Memory:
    return request.state.memory


def _directory(request: Request) -> SessionDirectory:
    return _memory(request).sessions


async def _body(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.MsgspecError as error:
        raise HTTPException(422, str(error)) from None


def _shown(active: ActiveSession) -> dict[str, Any]:
    return {
        "agent_id": active.agent_name,
        "session_id": active.session_id,
        "last_active_at": active.last_active_at,
        "created_at": active.created_at,
    }


async def _refused(request: Request, error: Exception) -> Response:
    status, told = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return JSONResponse({"detail": told or str(error)}, status_code=status)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code)
