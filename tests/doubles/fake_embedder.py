"""An embedder that knows a few words, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.errors import EmbeddingError

ALIKE = ("cat kitten pet", "weather rain sun", "money refund price")
"""Words of one line mean the same."""


class FakeEmbedder:
    """Tells what a text is about. Fails with `failure` if it is set, and for texts that hold `poison`."""

    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.dimensions = len(ALIKE)
        self.failure: EmbeddingError | None = None
        self.poison = ""
        self.asked: list[Sequence[str]] = []

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        self.asked.append(texts)
        if self.failure is not None:
            raise self.failure
        if self.poison and any(self.poison in text for text in texts):
            raise EmbeddingError("refused", "the text cannot be read", retryable=False)
        return [self._vector(text) for text in texts]

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _vector(self, text: str) -> Sequence[float]:
        about = [float(any(word in text for word in line.split())) for line in ALIKE]
        length = sum(about) ** 0.5
        return [side / length for side in about] if length else about
