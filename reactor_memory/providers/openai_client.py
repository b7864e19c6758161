"""One question to a server with OpenAI's chat completions, one answer or one `SummarizationError`.

The transport is httpx2, imported at the first question and in a thread, because that takes a while. It follows no
redirect: the key goes to the address of the settings and to no other. A server on this machine is never asked through
a proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio
import msgspec

from reactor_memory.errors import ConfigurationError, SummarizationError
from reactor_memory.providers.failures import status_failure, transport_failure
from reactor_memory.providers.on_demand import OnDemand
from reactor_memory.providers.openai_answer import is_quota, is_too_long, reply_of
from reactor_memory.providers.openai_dialect import ResponseFormat, dialect_for
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.text.addresses import is_loopback

if TYPE_CHECKING:
    import httpx2

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_UNDERSTOOD = frozenset({400, 422})
"""Statuses of a server that read the question and did not like it."""


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class OpenAIClient:
    """Asks `model` for an answer in the schema of the request.

    A server that refuses the form of a question (the schema, the name of the limit, the tier) is asked again in a
    simpler one, which is kept for later questions. `response_format` other than ``auto`` fixes the form of the answer.
    """

    def __init__(
        self,
        model: str,
        api_key: str | None,
        *,
        base_url: str | None,
        response_format: ResponseFormat,
        timeout_seconds: float,
        max_output_tokens: int,
        service_tier: str | None = None,
    ) -> None:
        self._model = model
        self._url = f"{(base_url or DEFAULT_BASE_URL).rstrip('/')}/chat/completions"
        self._headers = {"Content-Type": "application/json", **authorization(api_key, base_url)}
        self._dialect = dialect_for(response_format, is_openai=base_url is None, service_tier=service_tier)
        self._timeout_seconds = timeout_seconds
        self._max_output_tokens = max_output_tokens
        self._connection = OnDemand(partial(http_client, self._url, timeout_seconds))

    async def ask(self, request: Request) -> Reply:
        try:
            http = await self._connection.get()
            with anyio.fail_after(self._timeout_seconds):
                answer = await self._answered(http, request)
            return reply_of(answer.body)
        except SummarizationError:
            raise
        except Exception as error:
            failure = transport_failure(error)
        # Outside of the handler: what went wrong may quote the conversation, so it must not become the cause.
        raise failure

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _answered(self, http: httpx2.AsyncClient, request: Request) -> _Answer:
        """The first answer of status 200, in the best form that the server takes."""
        dialect = self._dialect
        while True:
            answer = await self._post(http, dialect.question(self._model, request, self._max_output_tokens))
            if answer.status == 200:
                self._dialect = dialect
                return answer
            complaint = answer.body.decode(errors="replace").lower()
            refused = answer.status in _UNDERSTOOD and not is_too_long(complaint)
            simpler = dialect.without(complaint) if refused else None
            if simpler is None:
                raise _failure(answer, complaint)
            dialect = simpler

    async def _post(self, http: httpx2.AsyncClient, question: object) -> _Answer:
        from reactor_memory.providers.bounded_http import bounded

        content = msgspec.json.encode(question)
        async with http.stream("POST", self._url, content=content, headers=self._headers) as response:
            return _Answer(response.status_code, response.headers, await bounded(response))


def http_client(url: str, timeout_seconds: float) -> httpx2.AsyncClient:
    """What asks a server at `url`: it follows no redirect, and asks one on this machine through no proxy."""
    import httpx2

    return httpx2.AsyncClient(follow_redirects=False, timeout=timeout_seconds, trust_env=not is_loopback(url))


def authorization(api_key: str | None, base_url: str | None) -> dict[str, str]:
    """The header with the key, if there is one. Raises `ConfigurationError`, which names the argument."""
    key = (api_key or "").strip()
    if not key and base_url is None:
        raise ConfigurationError("api_key", "is not set: set it or OPENAI_API_KEY, or base_url for another server")
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("api_key", "must consist of printable ASCII characters")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _failure(answer: _Answer, complaint: str) -> SummarizationError:
    if answer.status in (*_UNDERSTOOD, 413) and is_too_long(complaint):
        problem = "the model takes in less: lower its max_input_tokens or max_output_tokens in models"
        return SummarizationError("too_long", problem, retryable=False)
    if answer.status == 429 and is_quota(complaint):
        return SummarizationError("rejected", "the quota of the key is used up", retryable=False)
    return status_failure(answer.status, answer.headers)
