"""Who calls the service in these tests, and how they say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def data(self) -> list[dict[str, Any]]:
        """The rows of a list."""
        assert self.status == 200, self
        return self.body["data"]

    @property
    def code(self) -> str:
        """The code of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert (self.status, self.headers["x-request-id"]) == (self.body["status"], self.body["requestId"])
        return self.body["code"]


class Caller:
    """A user or an agent; every call is one request."""

    def __init__(self, http: httpx2.AsyncClient, name: str, headers: Mapping[str, str]) -> None:
        self.name = name
        self._http = http
        self._headers = dict(headers)

    async def get(self, path: str, **params: object) -> Answer:
        return await self._send("GET", path, params=params)

    async def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return await self._send("POST", path, json=body, headers=headers)

    async def post_raw(self, path: str, content: bytes) -> Answer:
        return await self._send("POST", path, content=content, headers={"Content-Type": "application/json"})

    async def patch(self, path: str, body: object) -> Answer:
        return await self._send("PATCH", path, json=body)

    async def delete(self, path: str) -> Answer:
        return await self._send("DELETE", path)

    async def _send(self, method: str, path: str, *, headers: Mapping[str, str] = {}, **request: Any) -> Answer:
        request = {name: value for name, value in request.items() if value is not None}
        answer = await self._http.request(method, path, headers={**self._headers, **headers}, **request)
        return Answer(answer.status_code, answer.json() if answer.content else None, answer.headers)


class User(Caller):
    """What users of a chat do, and that it went well."""

    async def begins(self, title: str | None = None, **fields: object) -> dict[str, Any]:
        return _created(await self.post("/v1/user/conversations", {"title": title, **fields}))

    async def says(self, conversation_id: str, *texts: str) -> list[dict[str, Any]]:
        path = f"/v1/user/conversations/{conversation_id}/messages"
        return [_created(await self.post(path, {"content": text})) for text in texts]

    async def forks(self, conversation_id: str, message_id: str, **body: object) -> dict[str, Any]:
        return _created(await self.post(fork_path(conversation_id, message_id), body))

    async def shares(self, conversation_id: str, user_id: str, level: str) -> dict[str, Any]:
        body = {"userId": user_id, "accessLevel": level}
        return _created(await self.post(f"/v1/user/conversations/{conversation_id}/memberships", body))

    async def sees(self, conversation_id: str, **params: object) -> list[str]:
        """The texts that are listed, on one page."""
        answer = await self.get(f"/v1/user/conversations/{conversation_id}/messages", **params)
        return [message["content"] for message in answer.data]


class Agent(Caller):
    """What an agent does, and that it went well."""

    async def adds(self, conversation_id: str, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        path = f"/v1/agent/conversations/{conversation_id}/messages"
        return _created(await self.post(path, {"messages": list(messages)}))["data"]

    async def lists(self, conversation_id: str, **params: object) -> list[str]:
        answer = await self.get(f"/v1/agent/conversations/{conversation_id}/messages", **params)
        return [message["content"] for message in answer.data]


def fork_path(conversation_id: str, message_id: str) -> str:
    return f"/v1/user/conversations/{conversation_id}/messages/{message_id}/fork"


def answer_of_agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def note_of_agent(text: str) -> dict[str, Any]:
    """What an agent keeps for itself."""
    return {"role": "agent", "visibility": "agent", "content": text}


def _created(answer: Answer) -> Any:
    assert answer.status == 201, answer
    return answer.body
