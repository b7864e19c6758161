"""The chat model that asks a server with OpenAI's chat completions: OpenAI, Ollama, vLLM, ..."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from reactor_memory.errors import SummarizationError
from reactor_memory.features.chat.streaming import in_time, or_chat_model_error
from reactor_memory.forms.requests import to_openai
from reactor_memory.models import Message
from reactor_memory.providers.failures import status_failure, transport_failure, truncation
from reactor_memory.providers.on_demand import OnDemand
from reactor_memory.providers.openai_answer import finish_failure, is_quota, is_too_long
from reactor_memory.providers.openai_client import DEFAULT_BASE_URL, authorization, http_client

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_DATA, _DONE = b"data:", b"[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Piece(msgspec.Struct):
    choices: list[_Choice] = []


_DECODER = msgspec.json.Decoder(_Piece)


class OpenAIChatModel:
    """Asks `model` at `base_url` (None: OpenAI itself, which needs a key). `timeout_seconds` bounds the wait for each
    piece of an answer.
    """

    def __init__(
        self, model: str, api_key: str | None = None, *, base_url: str | None = None, timeout_seconds: float = 60.0
    ) -> None:
        self.name = model
        self.notice = f"What you say is sent to {base_url or 'OpenAI'}, with what the context shows of this session."
        self._url = f"{(base_url or DEFAULT_BASE_URL).rstrip('/')}/chat/completions"
        self._headers = {"Content-Type": "application/json", **authorization(api_key, base_url)}
        self._timeout_seconds = timeout_seconds
        self._connection = OnDemand(partial(http_client, self._url, timeout_seconds))

    def stream(self, messages: Sequence[Message], *, system: str | None = None) -> AsyncGenerator[str]:
        return or_chat_model_error(self._pieces(messages, system), transport_failure)

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _pieces(self, messages: Sequence[Message], system: str | None) -> AsyncGenerator[str]:
        http = await self._connection.get()
        question = {"model": self.name, "messages": to_openai(messages, system=system), "stream": True}
        async with aclosing(in_time(self._events(http, question), self._timeout_seconds)) as events:
            async for event in events:
                if event == _DONE:
                    return
                for choice in _DECODER.decode(event).choices[:1]:
                    yield choice.delta.content or ""
                    if _ends(choice):
                        return
        raise truncation()

    async def _events(self, http: httpx2.AsyncClient, question: object) -> AsyncGenerator[bytes]:
        """The JSON of each piece, and `_DONE`. Raises `SummarizationError` for an answer that is none."""
        content = msgspec.json.encode(question)
        async with http.stream("POST", self._url, content=content, headers=self._headers) as response:
            if response.status_code != 200:
                raise _failure(response.status_code, response.headers, (await _start(response)).lower())
            async with aclosing(_lines(response)) as lines:
                async for line in lines:
                    if line.startswith(_DATA):
                        yield line.removeprefix(_DATA).strip()


async def _lines(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """The lines of a body that ends some time."""
    rest, read = b"", 0
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            read += len(chunk)
            if read > MAX_ANSWER_BYTES:
                raise SummarizationError("malformed", f"the answer has more than {MAX_ANSWER_BYTES} bytes")
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line
    yield rest


async def _start(response: httpx2.Response) -> str:
    """The beginning of a refusal, which says what it is about."""
    body = b""
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                break
    return body.decode(errors="replace")


def _ends(choice: _Choice) -> bool:
    """Whether this is the last piece. Raises `SummarizationError` if the answer was cut off."""
    failure = finish_failure(choice.finish_reason)
    if failure is not None:
        raise failure
    return choice.finish_reason is not None


def _failure(status: int, headers: Mapping[str, str], complaint: str) -> SummarizationError:
    if status in (400, 413, 422) and is_too_long(complaint):
        problem = "the model takes in less: lower context.max_tokens, or give a --budget"
        return SummarizationError("too_long", problem, retryable=False)
    if status == 429 and is_quota(complaint):
        return SummarizationError("rejected", "the quota of the key is used up", retryable=False)
    return status_failure(status, headers)
