"""Search over all conversations that a user may read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.core.validation import check_text
from reactor_memory.database.database import Database
from reactor_memory.errors import EmbeddingError, InvalidInputError, SearchTypeUnavailableError, StoreCorruptError
from reactor_memory.features.recall.passages import text_of
from reactor_memory.features.search.highlights import highlight
from reactor_memory.features.search.models import (
    DEEPEST,
    MessageHit,
    MessageHits,
    MessageSearch,
    SearchAnswer,
    SearchCursor,
    SearchQuery,
)
from reactor_memory.features.search.operations import drop_damaged_entries, search_messages
from reactor_memory.models import Value
from reactor_memory.text.analyzer import (
    ANY_ENDING,
    MIN_PREFIX_CHARACTERS,
    QueryWord,
    normal_form,
    query_words,
)
from reactor_memory.text.stems import unaccented

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, Embedder

log = logging.getLogger(__name__)

MAX_QUERY_CHARACTERS = 4_000
"""What stands behind them in a query is not looked for."""

MAX_QUERY_WORDS = 32


class SearchOptions(Value, frozen=True, kw_only=True):
    """`min_similarity`: a message that means less of what is looked for is no answer (cosine, -1 to 1)."""

    min_similarity: float = 0.3


class MessageSearchService:
    """Finds messages by their words and, with an `embedder`, by their meaning."""

    def __init__(self, *, database: Database, embedder: Embedder | None, clock: Clock, options: SearchOptions) -> None:
        self._database = database
        self._embedder = embedder
        self._clock = clock
        self._options = options

    async def search(self, search: MessageSearch) -> MessageHits:
        """The best answers, from where `search.after` says.

        ``keyword`` and ``semantic`` ask words or meanings alone, ``auto`` both, or words alone where there is no
        embedder or it fails. Raises `InvalidInputError` for a blank text or an unknown `before`,
        `SearchTypeUnavailableError` for ``semantic`` without an embedder, `EmbeddingError` if that fails, and
        `StoreError`.
        """
        if not search.text.strip():
            raise InvalidInputError("query", "must not be blank")
        if search.before is not None:
            check_text("before", search.before)
        if search.after is not None and search.after.seen >= 2 * DEEPEST:
            return MessageHits()
        now = self._clock()
        wanted = () if search.search_type == "semantic" else wanted_words(search.text)
        answer, is_damaged = await self._answer(await self._query(search, wanted))
        shown = answer.terms or [term for word in wanted_words(search.text) for term in word.terms]
        return MessageHits(
            # Long messages take longer to read than the event loop may be held.
            hits=await anyio.to_thread.run_sync(_highlighted, answer.hits, shown),
            next=_next(search, now, len(answer.hits)) if answer.is_more else None,
            is_damaged=is_damaged,
        )

    async def _answer(self, query: SearchQuery) -> tuple[SearchAnswer, bool]:
        """Without what cannot be read of the index, which is made again; and whether there was such a thing."""
        try:
            return await self._database.read_long(search_messages, query), False
        except StoreCorruptError:
            size = 2 * len(query.vector) if query.vector else None
            if not await self._database.write(drop_damaged_entries, query.user_id, vector_bytes=size):
                raise
        log.warning("the search index is damaged and made again")
        return await self._database.read_long(search_messages, query), True

    async def _query(self, search: MessageSearch, wanted: tuple[QueryWord, ...]) -> SearchQuery:
        vector = await self._vector(search)
        return SearchQuery(
            user_id=search.user_id,
            conversation_ids=search.conversation_ids,
            agent_names=search.agent_names,
            before=search.before,
            words=wanted,
            vector=vector,
            model=self._embedder.name if self._embedder else "",
            min_similarity=self._options.min_similarity,
            as_of=search.after.as_of if search.after else None,
            seen=search.after.seen if search.after else 0,
            limit=search.limit,
        )

    async def _vector(self, search: MessageSearch) -> tuple[float, ...] | None:
        """What the text means. None if nobody asks, or nobody can tell."""
        if search.search_type == "keyword":
            return None
        if self._embedder is None:
            if search.search_type == "semantic":
                raise SearchTypeUnavailableError("semantic")
            return None
        try:
            [vector] = await self._embedder.embed([search.text[:MAX_QUERY_CHARACTERS]], is_query=True)
        except EmbeddingError as error:
            if search.search_type == "semantic":
                raise
            log.warning("searched by words alone", extra={"reason": error.reason})
            return None
        return tuple(vector)


def wanted_words(text: str) -> tuple[QueryWord, ...]:
    """The words to look for: those that mean something, or all if none does. The last word of a text may be the
    beginning of one.
    """
    text = text[:MAX_QUERY_CHARACTERS]
    words = query_words(text)[:MAX_QUERY_WORDS]
    if not words:
        return ()
    *others, last = words
    is_begun = len(last.beginning) >= MIN_PREFIX_CHARACTERS and _ends_with(text, last.beginning)
    return (*others, last._replace(terms=(*last.terms, last.beginning + ANY_ENDING)) if is_begun else last)


def _ends_with(text: str, beginning: str) -> bool:
    return unaccented(normal_form(text).casefold().rstrip()).endswith(beginning)


def _highlighted(hits: Sequence[MessageHit], wanted: Sequence[str]) -> tuple[MessageHit, ...]:
    return tuple(replace(hit, highlight=highlight(text_of(hit.message), wanted)) for hit in hits)


def _next(search: MessageSearch, now: int, count: int) -> SearchCursor:
    if search.after is None:
        return SearchCursor(as_of=now, seen=count)
    return replace(search.after, seen=search.after.seen + count)
