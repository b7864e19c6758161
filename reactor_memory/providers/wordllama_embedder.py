"""Meanings without a server: static word vectors from a wheel, in practice for English.

Nothing is downloaded: the weights and the tokenizer stand in the wheel. Reading them takes half a second, so it is done
at the first text, in a thread, as is all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from reactor_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from wordllama.inference import WordLlamaInference

DIMENSIONS = 256
NAME = "wordllama-l2_supercat-256"


class WordLlamaEmbedder:
    """`Embedder` over the vectors that the package wordllama brings along (extra ``wordllama``)."""

    name = NAME
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._model: WordLlamaInference | None = None
        self._loading = Lock()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        try:
            return await anyio.to_thread.run_sync(self._embed, list(texts), abandon_on_cancel=True)
        except Exception as error:
            failure = EmbeddingError("failed", f"raised {type(error).__name__}", retryable=False)
        # Outside of the handler: what went wrong may quote the text.
        raise failure

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _embed(self, texts: list[str]) -> list[list[float]]:
        import numpy as np

        model: Any = self._loaded()
        vectors = model.embed(texts, norm=False)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1)).tolist()

    def _loaded(self) -> WordLlamaInference:
        with self._loading:
            if self._model is None:
                import wordllama

                weights = Path(wordllama.__file__).parent
                self._model = wordllama.WordLlama.load(cache_dir=weights, dim=DIMENSIONS, disable_download=True)
            return self._model
