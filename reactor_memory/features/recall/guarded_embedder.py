"""What stands between the library and an embedder: redaction, breaker, deadline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from reactor_memory.errors import EmbeddingError, RedactionError
from reactor_memory.features.redaction import redacted_text
from reactor_memory.providers.breaker import CircuitBreaker

if TYPE_CHECKING:
    from reactor_memory.core.ports import Embedder, Redactor

MEANINGLESS = frozenset({"refused", "malformed", "too_long", "redaction"})
"""Reasons that lie in a text and not in the embedder: another text may have a meaning."""


class GuardedEmbedder:
    """`Embedder` that asks another one: of what the redactor leaves of the texts, within `timeout_seconds`, and not at
    all while that failed too often.
    """

    def __init__(
        self, embedder: Embedder, *, redactor: Redactor, breaker: CircuitBreaker, timeout_seconds: float
    ) -> None:
        self._embedder = embedder
        self._redactor = redactor
        self._breaker = breaker
        self._timeout_seconds = timeout_seconds

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        try:
            with anyio.fail_after(self._timeout_seconds):
                clean = await anyio.to_thread.run_sync(self._redacted, texts, abandon_on_cancel=True)
        except (RedactionError, TimeoutError):
            raise EmbeddingError("redaction", "not asked, the redactor failed", retryable=True) from None
        if not self._breaker.try_acquire():
            raise EmbeddingError("breaker_open", "not asked, it failed too often")
        return self._checked(await self._in_time(clean, is_query), len(texts))

    async def aclose(self) -> None:
        await self._embedder.aclose()

    def _redacted(self, texts: Sequence[str]) -> list[str]:
        return [redacted_text(text, self._redactor) for text in texts]

    async def _in_time(self, texts: Sequence[str], is_query: bool) -> Sequence[Sequence[float]]:
        try:
            with anyio.fail_after(self._timeout_seconds):
                vectors = await self._embedder.embed(texts, is_query=is_query)
        except Exception as error:
            failure = self._failure_of(error)
        except BaseException:
            self._breaker.abandoned()
            raise
        else:
            self._breaker.succeeded()
            return vectors
        # Outside of the handler: what an embedder raises may quote the text.
        raise failure

    def _failure_of(self, error: Exception) -> EmbeddingError:
        """A text that has no meaning says nothing about the embedder."""
        if isinstance(error, EmbeddingError) and error.reason in MEANINGLESS:
            self._breaker.succeeded()
            return error
        self._breaker.failed()
        if isinstance(error, EmbeddingError):
            return error
        if isinstance(error, TimeoutError):
            return EmbeddingError("timeout", f"no answer within {self._timeout_seconds:g} seconds")
        return EmbeddingError("failed", f"raised {type(error).__name__}")

    def _checked(self, vectors: Sequence[Sequence[float]], count: int) -> Sequence[Sequence[float]]:
        if len(vectors) != count or any(len(vector) != self.dimensions for vector in vectors):
            raise EmbeddingError("malformed", "the answer holds other vectors than were asked for")
        return vectors
