"""Meanings from a Gemini model: one question for a batch of texts, one answer or one `EmbeddingError`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import anyio

from reactor_memory.errors import ConfigurationError, EmbeddingError, SummarizationError
from reactor_memory.providers.gemini_client import GeminiConnection, failure_of, open_connection
from reactor_memory.providers.on_demand import OnDemand

DEFAULT_MODEL = "gemini-embedding-001"


class GeminiEmbedder:
    """`Embedder` that asks `model` for vectors of `dimensions` numbers. Never repeats a question by itself, follows no
    redirect, and never puts what a provider said into an error.
    """

    def __init__(
        self, model: str, api_key: str, *, dimensions: int, base_url: str | None, timeout_seconds: float
    ) -> None:
        if not api_key.strip():
            raise ConfigurationError("api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
        self._model = model
        self._api_key = api_key.strip()
        self._dimensions = dimensions
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._connection = OnDemand(self._open)

    @property
    def name(self) -> str:
        return f"{self._model}-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        try:
            connection = await self._connection.get()
            with anyio.fail_after(self._timeout_seconds):
                return await self._ask(connection, list(texts), "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT")
        except EmbeddingError:
            raise
        except SummarizationError as error:
            failure = embedding_failure(error)
        except Exception as error:
            failure = embedding_failure(failure_of(error))
        # Outside of the handler: what went wrong may quote the texts, so it must not become the cause.
        raise failure

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _ask(self, connection: GeminiConnection, texts: list[str], task: str) -> list[list[float]]:
        from google.genai import types

        answer = await connection.client.aio.models.embed_content(  # pyright: ignore[reportUnknownMemberType]
            model=self._model,
            contents=[types.Content(parts=[types.Part(text=text)]) for text in texts],
            config=types.EmbedContentConfig(task_type=task, output_dimensionality=self._dimensions),
        )
        vectors = [embedding.values or [] for embedding in answer.embeddings or []]
        if len(vectors) != len(texts) or any(len(vector) != self._dimensions for vector in vectors):
            raise EmbeddingError("malformed", "the answer holds other vectors than were asked for")
        return [of_length_one(vector) for vector in vectors]

    def _open(self) -> GeminiConnection:
        return open_connection(self._api_key, self._base_url, timeout_seconds=self._timeout_seconds)


def of_length_one(vector: Sequence[float]) -> list[float]:
    """The vector in its direction; one without a direction stays as it is."""
    length = math.sqrt(math.fsum(number * number for number in vector))
    return [number / length for number in vector] if length else list(vector)


def embedding_failure(failure: SummarizationError) -> EmbeddingError:
    """What went wrong on the way to a model, as the failure of an embedder."""
    return EmbeddingError(failure.reason, failure.problem, retryable=failure.retryable)
