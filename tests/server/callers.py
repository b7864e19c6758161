"""Asking a service as somebody: the test says who calls by headers that no real authenticator would trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import httpx2

from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Principal
from reactor_memory.server.guards import Connection
from reactor_memory.server.problems import UNAUTHENTICATED, ProblemError

EVERYTHING = Grant(agent_names=("*",), operations=OPERATIONS)


async def who_says_so(connection: Connection) -> Principal:
    """Whoever the headers name. An agent may do everything."""
    user_id, client_id = connection.headers.get("x-test-user"), connection.headers.get("x-test-agent")
    if user_id is None and client_id is None:
        raise ProblemError(UNAUTHENTICATED, "say who you are", headers={"WWW-Authenticate": "Bearer"})
    return Principal(user_id=user_id, client_id=client_id, grant=EVERYTHING if client_id else None)


@dataclass(frozen=True)
class Service:
    """A service as one caller sees it; `path` is relative to their part of it."""

    client: httpx2.AsyncClient
    user: str | None = None
    agent: str | None = None

    def of(self, user: str | None) -> Service:
        return replace(self, user=user, agent=None)

    def by(self, agent: str, user: str | None = None) -> Service:
        return replace(self, user=user, agent=agent)

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The answer of the service to a request of this caller."""
        named = {"x-test-user": self.user, "x-test-agent": self.agent}
        headers = {name: value for name, value in named.items() if value is not None} | options.pop("headers", {})
        prefix = "/v1/user" if self.agent is None else "/v1/agent"
        address = path if path.startswith("/v1") else prefix + path
        if body is not None:
            options["json"] = body
        return await self.client.request(method, address, headers=headers, **options)

    async def get(self, path: str, **options: Any) -> Any:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, body: Any = None, key: str | None = None, **options: Any) -> Any:
        if key is not None:
            options["headers"] = {"Idempotency-Key": key} | options.get("headers", {})
        return await self.ask("POST", path, body, **options)

    async def created(self, **fields: Any) -> str:
        """The id of a new conversation."""
        answer = await self.post("/conversations", fields)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def said(self, conversation_id: str, *texts: str) -> list[str]:
        """The ids of new messages of this user."""
        answers = [await self.post(f"/conversations/{conversation_id}/messages", {"content": text}) for text in texts]
        return [answer.json()["id"] for answer in answers]
