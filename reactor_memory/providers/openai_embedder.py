"""Meanings from a server with OpenAI's embeddings: OpenAI, Ollama, vLLM, llama.cpp, ...

The transport is httpx2, imported at the first question and in a thread, as for summaries. It follows no redirect, reads
a bounded answer, and asks a server on this machine through no proxy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import msgspec

from reactor_memory.errors import EmbeddingError, SummarizationError
from reactor_memory.providers.failures import status_failure, transport_failure
from reactor_memory.providers.gemini_embedder import embedding_failure, of_length_one
from reactor_memory.providers.on_demand import OnDemand
from reactor_memory.providers.openai_answer import is_quota, is_too_long
from reactor_memory.providers.openai_client import DEFAULT_BASE_URL, authorization, http_client

if TYPE_CHECKING:
    import httpx2

DEFAULT_MODEL = "text-embedding-3-small"
NUMBER_BYTES = 25
"""The most that a number of a vector takes in an answer."""


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


_DECODER = msgspec.json.Decoder(_Embeddings)


class OpenAIEmbedder:
    """`Embedder` that asks `model` at `base_url` (None: OpenAI itself, which needs a key and shortens its vectors to
    `dimensions`; any other server must answer with vectors of so many numbers). Never repeats a question by itself, and
    never puts what a server said into an error.
    """

    def __init__(
        self, model: str, api_key: str | None, *, dimensions: int, base_url: str | None, timeout_seconds: float
    ) -> None:
        self._model = model
        self._dimensions = dimensions
        self._is_openai = base_url is None
        self._url = f"{(base_url or DEFAULT_BASE_URL).rstrip('/')}/embeddings"
        self._headers = {"Content-Type": "application/json", **authorization(api_key, base_url)}
        self._timeout_seconds = timeout_seconds
        self._connection = OnDemand(partial(http_client, self._url, timeout_seconds))

    @property
    def name(self) -> str:
        return f"{self._model}-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        told = [text for text in texts if text.strip()]  # OpenAI refuses a batch with an empty text
        try:
            with anyio.fail_after(self._timeout_seconds):
                found = iter(await self._vectors(told))
            return [next(found) if text.strip() else [0.0] * self._dimensions for text in texts]
        except EmbeddingError:
            raise
        except SummarizationError as error:
            failure = embedding_failure(error)
        except Exception as error:
            failure = embedding_failure(transport_failure(error))
        # Outside of the handler: what went wrong may quote the texts, so it must not become the cause.
        raise failure

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """In as many questions as it takes for answers that may be read."""
        from reactor_memory.providers.bounded_http import MAX_ANSWER_BYTES

        http = await self._connection.get()
        size = max(1, MAX_ANSWER_BYTES // (NUMBER_BYTES * self._dimensions))
        vectors: list[list[float]] = []
        for start in range(0, len(texts), size):
            vectors += await self._ask(http, texts[start : start + size])
        return vectors

    async def _ask(self, http: httpx2.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
        from reactor_memory.providers.bounded_http import bounded

        question: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._is_openai:
            question["dimensions"] = self._dimensions
        content = msgspec.json.encode(question)
        async with http.stream("POST", self._url, content=content, headers=self._headers) as response:
            body = await bounded(response)
            if response.status_code != 200:
                raise _failure(response, body.decode(errors="replace").lower())
        return self._checked(_DECODER.decode(body).data, len(texts))

    def _checked(self, found: Sequence[_Embedding], count: int) -> list[list[float]]:
        vectors = {each.index: each.embedding for each in found}
        if len(found) != count or vectors.keys() != set(range(count)):
            raise EmbeddingError("malformed", "the answer holds other vectors than were asked for")
        lengths = {len(vector) for vector in vectors.values()}
        if lengths != {self._dimensions}:
            problem = f"the model makes vectors of {max(lengths)} numbers: set its dimensions in models to that"
            raise EmbeddingError("rejected", problem, retryable=False)
        return [of_length_one(vectors[index]) for index in range(count)]


def _failure(response: httpx2.Response, complaint: str) -> SummarizationError:
    if response.status_code in (400, 413, 422) and is_too_long(complaint):
        return SummarizationError("too_long", "the model takes in less than the longest text", retryable=False)
    if response.status_code == 429 and is_quota(complaint):
        return SummarizationError("rejected", "the quota of the key is used up", retryable=False)
    return status_failure(response.status_code, response.headers)
