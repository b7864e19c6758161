"""Search over many conversations: by words, by meaning, and both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from reactor_memory.models import Message, Value

SearchType: TypeAlias = Literal["auto", "keyword", "semantic"]

INDEX_SEARCH = "index"
"""The kind of background work that brings new messages into the index."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike they are. `name` is stored with every vector."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        """One vector of length 1 for each text. Raises `EmbeddingError` and nothing else; never retries by itself."""
        ...

    async def aclose(self) -> None: ...


class MessageSearch(Value, frozen=True, kw_only=True):
    """What a user looks for in the conversations that they may read: of `user_id`, or with None of `conversation_ids`
    alone (who asks was checked).

    `before` (conversation and seq) leaves out what is not older than this message. `after` are the score and place of
    the last hit seen.
    """

    text: str
    user_id: str | None
    conversation_ids: tuple[str, ...] | None = None
    before: tuple[str, int] | None = None
    search_type: SearchType = "auto"
    after: tuple[float, str, int] | None = None
    limit: int = 20


class MessageHit(Value, frozen=True, kw_only=True):
    """A message that answers. `conversation_id` is a conversation in which the user can see it; `highlight` a part of
    its text.
    """

    conversation_id: str
    message: Message
    score: float
    highlight: str = ""
