"""One question to a Gemini model, one answer or one `SummarizationError`.

Importing the client library takes a second, so it is imported at the first question and in a thread. The transport
is always ours: left to itself the library picks another one as soon as aiohttp is installed, with errors of its own,
and either of them carries the API key along when it is redirected.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio

from reactor_memory.errors import ConfigurationError, SummarizationError
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.failures import refusal, status_failure, transport_failure
from reactor_memory.providers.gemini_failures import finish_failure, retry_info_seconds
from reactor_memory.providers.on_demand import OnDemand
from reactor_memory.providers.questions import Reply, Request

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentConfig, GenerateContentResponse

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/"
_API_VERSION = "v1"


class GeminiClient:
    """Asks `model` for an answer in the schema of the request. Never repeats a question by itself, follows no
    redirect.
    """

    def __init__(
        self,
        model: str,
        api_key: str,
        *,
        base_url: str | None,
        timeout_seconds: float,
        max_output_tokens: int,
        service_tier: str | None = None,
    ) -> None:
        if not api_key.strip():
            raise ConfigurationError("api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
        self._model = model
        self._api_key = api_key.strip()
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._max_output_tokens = max_output_tokens
        self._service_tier = service_tier
        self._connection = OnDemand(self._open)

    async def ask(self, request: Request) -> Reply:
        return _reply(await self._generate(request))

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _generate(self, request: Request) -> GenerateContentResponse:
        try:
            connection = await self._connection.get()
            with anyio.fail_after(self._timeout_seconds):
                return await connection.client.aio.models.generate_content(  # pyright: ignore[reportUnknownMemberType]
                    model=self._model, contents=request.document, config=self._config(request)
                )
        except SummarizationError:
            raise
        except Exception as error:
            failure = failure_of(error)
        # Outside of the handler: what went wrong may quote the conversation, so it must not become the cause.
        raise failure

    def _config(self, request: Request) -> GenerateContentConfig:
        from google.genai import types

        return types.GenerateContentConfig(
            system_instruction=request.instruction,
            response_mime_type="application/json",
            response_schema=request.schema,
            max_output_tokens=self._max_output_tokens,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            **one_answer(),
            **_tier(self._service_tier),
        )

    def _open(self) -> GeminiConnection:
        return open_connection(self._api_key, self._base_url, timeout_seconds=self._timeout_seconds)


class GeminiConnection(NamedTuple):
    client: Client
    http: Any

    async def aclose(self) -> None:
        self.client.close()
        await self.client.aio.aclose()
        await self.http.aclose()


def open_connection(api_key: str, base_url: str | None, *, timeout_seconds: float | None) -> GeminiConnection:
    """A client of `base_url` (None: Google) that knows this key and no other. It takes a second: call it in a thread.

    `timeout_seconds` bounds a whole answer, also at the server; None: no bound. An answer that is too long is refused.
    """
    from google.genai import Client, types

    from reactor_memory.providers.bounded_http import bounded_client

    http = bounded_client(_transport())(follow_redirects=False, timeout=timeout_seconds)
    client = Client(
        api_key=api_key,
        # This, the address and the version the library would else take from the environment.
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=base_url or DEFAULT_BASE_URL,
            api_version=_API_VERSION,
            timeout=None if timeout_seconds is None else max(1, round(timeout_seconds * 1000)),
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_async_client=http,
        ),
    )
    return GeminiConnection(client, http)


def one_answer() -> dict[str, Any]:
    """What keeps the library from asking on by itself where an answer was cut short: older ones never do."""
    from google.genai.types import GenerateContentConfig

    name = "automatic_continuation"
    return {name: False} if name in GenerateContentConfig.model_fields else {}


def _tier(named: str | None) -> dict[str, Any]:
    """The field for the tier. Raises `SummarizationError` if the installed library knows none."""
    from google.genai.types import GenerateContentConfig

    if not named:
        return {}
    if "service_tier" not in GenerateContentConfig.model_fields:
        problem = "the installed google-genai knows no service_tier: update it, or leave the setting out"
        raise SummarizationError("rejected", problem, retryable=False)
    return {"service_tier": named}


def _transport() -> Any:
    """The HTTP library that google-genai requires and knows the answers of: httpx2 since 3.0, httpx before."""
    from google.genai.version import __version__

    return import_module("httpx2" if int(__version__.partition(".")[0]) >= 3 else "httpx")


def failure_of(error: Exception) -> SummarizationError:
    """What an exception of the client library, or of the way there, stands for."""
    from google.genai.errors import APIError

    if isinstance(error, APIError):
        stated = retry_info_seconds(getattr(error, "details", None))
        return status_failure(error.code, _headers(error), stated_seconds=stated)
    return transport_failure(error)


def _headers(error: Exception) -> Mapping[str, str]:
    headers: object = getattr(getattr(error, "response", None), "headers", None)
    return cast("Mapping[str, str]", headers) if isinstance(headers, Mapping) else {}


def _reply(response: GenerateContentResponse) -> Reply:
    """The text of the answer without thoughts. Blocked or cut short, it is a failure that was paid for."""
    usage = _usage(response)
    if response.prompt_feedback is not None and response.prompt_feedback.block_reason is not None:
        return Reply("", usage, refusal())
    if not response.candidates:
        return Reply("", usage, SummarizationError("malformed", "the answer holds no candidate"))
    candidate = response.candidates[0]
    parts = candidate.content.parts if candidate.content else None
    text = "".join(part.text for part in parts or () if part.text and not part.thought)
    failure = finish_failure(candidate.finish_reason.value) if candidate.finish_reason else None
    return Reply(text, usage, failure)


def _usage(response: GenerateContentResponse) -> Usage:
    usage = response.usage_metadata
    if usage is None:
        return Usage()
    written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return Usage(tokens_read=usage.prompt_token_count or 0, tokens_written=written)
