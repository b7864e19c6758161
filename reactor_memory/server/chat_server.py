"""The chat server: one turn of a chat over HTTP, and which session a client should use.

======  ==================================  ===========================================================================
POST    /api/chat                           ``{message, session_id, agent_id}`` -> ``{answer, session_id, is_active}``;
                                            with ``stream: true`` its pieces as server-sent events
POST    /api/sessions/resolve               ``{agent_id, cached_id?}`` -> ``{session_id, source}``
GET     /api/sessions/active?agent_id=      the active session; 404 if there is none
PUT     /api/sessions/active                ``{agent_id, expected?, session_id}``: switch; 409 if it has changed
POST    /api/sessions/new                   ``{agent_id}``: start a new one
GET     /api/sessions                       the active session with each agent
GET     /api/sessions/{id}/messages         what was said
GET     /api/agents                         the agents that the settings name
GET     /                                   the page of the chat
======  ==================================  ===========================================================================

Users are told by their tokens, as in the service; what belongs to somebody else is not there (404).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
from litestar import Controller, MediaType, Response, Router, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import ServerSentEventMessage, Stream

from reactor_memory.errors import ChatModelError, InvalidInputError, ReactorMemoryError
from reactor_memory.features.active_sessions.directory import SessionDirectory
from reactor_memory.features.active_sessions.models import ActiveSession
from reactor_memory.features.sharing.access import check_granted, user_of
from reactor_memory.memory import Memory
from reactor_memory.server import guards, problems
from reactor_memory.server.chat_agents import Asked, ChatAgent, ChatAgents, agents_of
from reactor_memory.server.parameters import Caller
from reactor_memory.server.problems import Kind, ProblemError, problem_of
from reactor_memory.server.process import run
from reactor_memory.server.routes import SYSTEM, Parts, Routes, router_of
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer

MODEL_FAILED = Kind(status=502, code="model_failed", title="The model did not answer")
SHOWN = 100
"""Messages that a client gets of a session."""

_POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
}


class ChatRequest(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    session_id: str
    agent_id: str
    stream: bool = False


class ChatAnswer(msgspec.Struct):
    """`is_active` False: another session of the user and the agent became active meanwhile."""

    answer: str
    session_id: str
    is_active: bool


class ResolveRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    cached_id: str | None = None


class SwitchRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    session_id: str
    expected: str | None = None


class NewRequest(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str


class ChatController(Controller):
    chat_agents: ChatAgents
    chat_memory: Memory
    directory: SessionDirectory

    @post("/chat", status_code=200)
    async def chat(self, principal: Caller, data: JSONBody[ChatRequest]) -> Response[Any] | Stream:
        """One turn. It is stored when its answer is complete; if the model fails, what the user said stays alone."""
        check_granted(principal, "append")
        agent, system = self.chat_agents.of(data.agent_id)
        if not data.message.strip():
            raise InvalidInputError("message", "is blank; say something")
        asked = Asked(
            user_id=user_of(principal),
            agent_id=data.agent_id,
            session_id=data.session_id,
            message=data.message,
            system=system,
        )
        pieces = _told(agent.answer(self.chat_memory, asked))
        if not data.stream:
            text = "".join([piece async for piece in pieces])
            return Response(await self._answered(asked, text))
        first = await anext(pieces, "")  # so that what fails before it is told as an error
        return Stream(self._events(asked, first, pieces), media_type="text/event-stream", headers=_UNBUFFERED)

    async def _answered(self, asked: Asked, text: str) -> ChatAnswer:
        is_active = await self.directory.heartbeat(asked.user_id, asked.agent_id, asked.session_id)
        return ChatAnswer(answer=text, session_id=asked.session_id, is_active=is_active)

    async def _events(self, asked: Asked, first: str, pieces: AsyncGenerator[str]) -> AsyncGenerator[bytes]:
        said = [first]
        try:
            yield _event("piece", {"text": first})
            async for piece in pieces:
                said.append(piece)
                yield _event("piece", {"text": piece})
            yield _event("done", await self._answered(asked, "".join(said)))
        except (ProblemError, ReactorMemoryError) as error:
            problem = problem_of(error)
            yield _event("error", {"status": problem.kind.status, "code": problem.code, "detail": problem.detail})
        finally:
            await pieces.aclose()

    @post("/sessions/resolve", status_code=200)
    async def resolve(self, principal: Caller, data: JSONBody[ResolveRequest]) -> dict[str, str]:
        self.chat_agents.check(data.agent_id)
        resolved = await self.directory.resolve(user_of(principal), data.agent_id, cached_id=data.cached_id)
        return {"session_id": resolved.session_id, "source": resolved.source}

    @get("/sessions/active")
    async def active_session(self, principal: Caller, agent_id: FromQuery[str]) -> dict[str, Any]:
        self.chat_agents.check(agent_id)
        active = {each.agent_name: each for each in await self.directory.list(user_of(principal))}.get(agent_id)
        if active is None or active.session_id is None:
            raise ProblemError(problems.NOT_FOUND, "no session is active")
        return _shown(active)

    @put("/sessions/active")
    async def switch(self, principal: Caller, data: JSONBody[SwitchRequest]) -> dict[str, Any]:
        check_granted(principal, "append")
        self.chat_agents.check(data.agent_id)
        user_id = user_of(principal)
        return _shown(await self.directory.switch(user_id, data.agent_id, expected=data.expected, new=data.session_id))

    @post("/sessions/new", status_code=201)
    async def start_new(self, principal: Caller, data: JSONBody[NewRequest]) -> dict[str, Any]:
        check_granted(principal, "append")
        self.chat_agents.check(data.agent_id)
        return _shown(await self.directory.start_new(user_of(principal), data.agent_id))

    @get("/sessions")
    async def sessions(self, principal: Caller) -> list[dict[str, Any]]:
        found = await self.directory.list(user_of(principal))
        return [_shown(active) for active in found if active.session_id is not None]

    @get("/sessions/{session_id:str}/messages")
    async def messages(self, principal: Caller, session_id: FromPath[str]) -> list[dict[str, Any]]:
        check_granted(principal, "read")
        found = await self.chat_memory.read_messages(session_id, user_id=user_of(principal), last=SHOWN)
        shown = [message for message in found if message.role in ("user", "assistant") and message.content]
        return [{"seq": each.seq, "role": each.role, "content": each.content} for each in shown]

    @get("/agents")
    async def agents(self, principal: Caller) -> list[str]:
        return self.chat_agents.ids


class ChatPageController(Controller):
    """The client, which keeps the id of its session in the browser and shows what is said."""

    opt = {guards.PUBLIC: True}

    @get("/", include_in_schema=False, sync_to_thread=True)
    def get_page(self) -> Response[str]:
        return Response(_file("chat.html"), media_type=MediaType.HTML, headers=_POLICY)

    @get("/chat.js", include_in_schema=False, sync_to_thread=True)
    def get_script(self) -> Response[str]:
        return Response(_file("chat.js"), media_type="text/javascript")


def chat_routes(agent: ChatAgent | None = None) -> Routes:
    """What `process.run` serves as a chat server; `agent` answers where the settings name nobody else."""

    def routes(container: ServiceContainer, parts: Parts) -> list[Router]:
        agents, memory = agents_of(container, agent), Memory(container)
        own = parts | {
            "chat_agents": lambda: agents,
            "chat_memory": lambda: memory,
            "directory": container.session_directory,
        }
        return [
            router_of("/", "chat", (ChatPageController,), own, {}),
            router_of("/v1", "system", SYSTEM, own, {}),
            router_of("/api", "chat", (ChatController,), own, {guards.CALLERS: guards.USERS}),
        ]

    return routes


async def serve_chat(agent: ChatAgent | None = None, settings: ServiceSettings | None = None) -> int:
    """As ``reactor-memory chat-server``, with an agent of the application; the exit code. Without settings, which users
    come is said by the environment, and notes are in the contexts. Raises what `process.run` raises.
    """
    settings = settings or ServiceSettings(notes={"enabled": True})  # pyright: ignore
    return await run(settings, routes=chat_routes(agent))


_UNBUFFERED = {"X-Accel-Buffering": "no"}


async def _told(pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """A model that fails is no failure of ours."""
    try:
        async for piece in pieces:
            yield piece
    except ChatModelError as error:
        raise ProblemError(MODEL_FAILED, f"{error}; say it again") from None
    finally:
        await pieces.aclose()


def _event(name: str, value: object) -> bytes:
    return ServerSentEventMessage(event=name, data=msgspec.json.encode(value).decode()).encode()


def _shown(active: ActiveSession) -> dict[str, Any]:
    return {
        "agent_id": active.agent_name,
        "session_id": active.session_id,
        "last_active_at": active.last_active_at,
        "created_at": active.created_at,
    }


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
