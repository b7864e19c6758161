"""One call of the service: as whom it is sent, how it is repeated, what its answer is."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TypeAlias, TypeVar
from urllib.parse import quote

import anyio
import httpx2
import msgspec

from reactor_memory.client.failures import CallSubject, Failure, refusal, unreachable
from reactor_memory.client.retries import Retries
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.sharing.bodies import Request
from reactor_memory.models import Value

A = TypeVar("A")

Token: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A token, or what gives the one that is good now."""

Params: TypeAlias = Mapping[str, str | int | float | bool | None]

_REPEATABLE = ("GET", "POST")
_QUERY = "reactor_memory.query"
_JSON = {b"Content-Type": b"application/json"}


class Identity(Value, frozen=True, kw_only=True):
    """Who calls: a user by token, an agent by key, an agent on behalf of a user."""

    token: Token | None = None
    api_key: str | None = None
    on_behalf_of: str | None = None

    def __repr__(self) -> str:
        return f"Identity(on_behalf_of={self.on_behalf_of!r})"  # tokens and keys are nothing for a log

    async def headers(self) -> dict[bytes, bytes]:
        named = {"X-API-Key": self.api_key, "X-On-Behalf-Of": self.on_behalf_of, "Authorization": await self._bearer()}
        return {name.encode(): value.encode() for name, value in named.items() if value is not None}

    async def _bearer(self) -> str | None:
        token = self.token() if callable(self.token) else self.token
        if isawaitable(token):
            token = await token
        return None if token is None else f"Bearer {token}"


class Call(Value, frozen=True, kw_only=True):
    """What is sent. `accepted` are statuses of failure that come with an answer all the same."""

    method: str
    path: str
    params: Params = {}
    body: Request | None = None
    accepted: tuple[int, ...] = ()
    asked: CallSubject = CallSubject()

    def headers(self) -> dict[bytes, bytes]:
        key = self.asked.idempotency_key
        return {**({b"Idempotency-Key": key.encode()} if key else {}), **({} if self.body is None else _JSON)}

    def content(self) -> bytes | None:
        return None if self.body is None else msgspec.json.encode(self.body)


class QuietTransport(httpx2.AsyncBaseTransport):
    """Adds the query to the address where the log lines of httpx2 do not see it: what is looked for may be private."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url.copy_merge_params(request.extensions.pop(_QUERY, {}))
        return await self._inner.handle_async_request(
            httpx2.Request(
                request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
            )
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class Caller:
    """Sends calls as `identity`, and repeats those that do no harm twice. `http` goes through a `QuietTransport`."""

    def __init__(self, http: httpx2.AsyncClient, identity: Identity, retries: Retries) -> None:
        self.http = http
        self.identity = identity
        self.retries = retries

    async def answer(self, call: Call, kind: type[A], *, empty: A | None = None) -> A:
        """What came, as `kind`; `empty` for an answer without a body. Raises what a refusal stands for, and
        `StoreUnavailableError` where no answer came.
        """
        response = await self.done(call)
        if empty is not None and not response.content:
            return empty
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError:
            failure = refusal(response.status_code, response.headers, b"", call.asked)
        raise failure.error

    async def done(self, call: Call) -> httpx2.Response:
        """As `answer`, without a look into it."""
        repetition = 0
        while isinstance(outcome := await self._try(call), Failure):
            repetition += 1
            wait = self._wait(repetition, call, outcome)
            if wait is None:
                raise outcome.error
            await anyio.sleep(wait)
        return outcome

    @asynccontextmanager
    async def opened(
        self, call: Call, headers: Mapping[bytes, bytes], *, read_seconds: float
    ) -> AsyncGenerator[httpx2.Response | Failure]:
        """The answer while it comes in, or why there is none. `read_seconds` bounds each wait for more of it."""
        request = await self._request(call, headers)
        request.extensions["timeout"] = {**request.extensions["timeout"], "read": read_seconds}
        try:
            response = await self.http.send(request, stream=True)
            outcome = response if _is_good(response, call) else await _refusal(response, call)
        except httpx2.TransportError as error:
            yield unreachable(error)
            return
        try:
            yield outcome
        finally:
            await response.aclose()

    async def _try(self, call: Call) -> httpx2.Response | Failure:
        try:
            response = await self.http.send(await self._request(call))
        except httpx2.TransportError as error:
            return unreachable(error)
        return response if _is_good(response, call) else await _refusal(response, call)

    async def _request(self, call: Call, headers: Mapping[bytes, bytes] = {}) -> httpx2.Request:
        return self.http.build_request(
            call.method,
            call.path,
            content=call.content(),
            headers={**call.headers(), **headers, **await self.identity.headers()},
            extensions={_QUERY: {name: value for name, value in call.params.items() if value is not None}},
        )

    def _wait(self, repetition: int, call: Call, failure: Failure) -> float | None:
        if call.method not in _REPEATABLE or not failure.passing:
            return None
        return self.retries.wait(repetition, failure.asked_seconds, random.random)


def path_of(*parts: str) -> str:
    """The path with these parts below ``/v1``, each of which stays one part whatever is in it.

    Raises `InvalidInputError` for one that would lead elsewhere.
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise InvalidInputError("id", f"must be the id of something, not {part!r}")
    return "/".join(("/v1", *(quote(part, safe="") for part in parts)))


def _is_good(response: httpx2.Response, call: Call) -> bool:
    return response.is_success or response.status_code in call.accepted


async def _refusal(response: httpx2.Response, call: Call) -> Failure:
    return refusal(response.status_code, response.headers, await response.aread(), call.asked)
