"""Recall by meaning: what an index finds by words, and the messages that mean what is looked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from reactor_memory.core.log.branches import group_of, ranges_between
from reactor_memory.core.log.rows import to_json
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import EmbeddingError, StoreCorruptError, StoreReadOnlyError
from reactor_memory.features.recall.passages import PASSAGE_CHARACTERS
from reactor_memory.features.recall.question import MAX_CHARACTERS
from reactor_memory.features.recall.ranking import scored
from reactor_memory.features.recall.vectors import Near, NearQuery
from reactor_memory.features.search.operations import LAST_SEQ, Visible, drop_damaged, everything_of, nearest_places
from reactor_memory.models.index_requests import IndexAnswer, IndexHit, IndexPart, Passage, RecallQuery
from reactor_memory.models.leases import Lease

if TYPE_CHECKING:
    from reactor_memory.core.ports import Embedder, RecallIndex

log = logging.getLogger(__name__)

NEAREST = 200
"""How many messages are looked at for their meaning: as many as for their words."""

SHORT_TOKENS = 30
"""About what a short message takes."""

FULL_SCORE = 8.0
"""What a message counts that means exactly the same: as much as one that holds a rare term."""


class MeaningIndex:
    """`RecallIndex` that asks `words`, which keeps all entries, and the vectors of `database`.

    Of a message that is not embedded, or while the embedder or the database fails, words alone tell. `min_similarity`:
    a message that means less of what is looked for is no answer (cosine, -1 to 1). What is near is waited for
    `seconds`.
    """

    def __init__(
        self, words: RecallIndex, *, database: Database, embedder: Embedder, min_similarity: float, seconds: float
    ) -> None:
        self._words = words
        self._database = database
        self._embedder = embedder
        self._min_similarity = min_similarity
        self._seconds = seconds

    async def open(self) -> None:
        await self._words.open()

    async def close(self) -> None:
        await self._words.close()

    async def indexed_until(self, conversation_id: str) -> int:
        return await self._words.indexed_until(conversation_id)

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        return await self._words.extend(lease, part)

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        await self._words.truncate(session_ids, seq=seq)

    async def forget(self, session_ids: Sequence[str]) -> None:
        await self._words.forget(session_ids)

    async def search(self, query: RecallQuery) -> IndexAnswer:
        by_words = await self._words.search(query)
        if not by_words.indexed_until:
            return by_words
        try:
            with anyio.fail_after(self._seconds):
                near = await self._near(query, by_words.indexed_until)
        except StoreCorruptError:
            await self._make_again(query)
            return replace(by_words, is_damaged=True)
        except Exception as error:  # an embedder is anybody's code, and recall does without it
            reason = error.reason if isinstance(error, EmbeddingError) else type(error).__name__
            log.warning("recalled by words alone", extra={"session_id": query.session_id, "reason": reason})
            return by_words
        return with_meanings(by_words, near, above=self._min_similarity, limit=query.limit)

    async def _make_again(self, query: RecallQuery) -> None:
        log.warning("meanings are damaged and made again", extra={"session_id": query.session_id})
        ids = [part.conversation_id for part in query.branch]
        with suppress(StoreReadOnlyError):
            await self._database.write(drop_damaged, ids, vector_bytes=None)

    async def _near(self, query: RecallQuery, until: int) -> tuple[Near, ...]:
        [vector] = await self._embedder.embed([query.text[:MAX_CHARACTERS]], is_query=True)
        if not any(vector):
            return ()
        return await self._database.read_long(
            nearest_in_branch,
            NearQuery(
                branch=query.branch,
                until=until,
                vector=tuple(vector),
                model=self._embedder.name,
                min_similarity=self._min_similarity,
                limit=NEAREST,
            ),
        )


def with_meanings(by_words: IndexAnswer, near: Sequence[Near], *, above: float, limit: int) -> IndexAnswer:
    """The findings with what is `near`: a passage that words found counts more; of a message without one, its beginning
    is added. Nothing that is just as alike as `above` counts for it, and what is the same `FULL_SCORE`.
    """
    if not near:
        return by_words
    worth = {each.seq: FULL_SCORE * (each.similarity - above) / max(1 - above, 0.001) for each in near}
    lifted = [replace(hit, similarity=hit.similarity + _worth_of(hit.passage, worth)) for hit in by_words.found]
    held = {seq for hit in by_words.found for seq in range(hit.passage.seq, hit.passage.end_seq + 1)}
    # Of the usual length, so that nothing that was found by its words counts as longer than before.
    usual = round(sum(hit.length for hit in by_words.found) / max(1, len(by_words.found)))
    added = [
        IndexHit(passage=_beginning(each.seq), length=usual, similarity=worth[each.seq])
        for each in near
        if each.seq not in held
    ]
    best = scored(replace(by_words, found=(*lifted, *added)))
    return replace(best, found=best.found[:limit])


def _worth_of(passage: Passage, worth: dict[int, float]) -> float:
    return max(worth.get(seq, 0.0) for seq in range(passage.seq, passage.end_seq + 1))


def _beginning(seq: int) -> Passage:
    """The index does not tell how long the message is: it is taken for a short one, as most are."""
    return Passage(seq=seq, start=0, end_seq=seq, end=PASSAGE_CHARACTERS, tokens=SHORT_TOKENS)


def nearest_in_branch(query: NearQuery) -> Steps[tuple[Near, ...]]:
    """The messages of a branch that mean what is looked for, nearest first; of equals the newer one. Never what no
    context of the branch shows. Nothing here checks an owner: who asks has read the session.
    """
    parts = [
        Visible(
            0, part.start_seq, part.end_seq or query.until, part.conversation_id, "", group_of(part.conversation_id)
        )
        for part in ranges_between(query.branch, 0, query.until)
    ]
    similarities = yield from nearest_places(query, everything_of(parts, query.limit))
    if not similarities:
        return ()
    ends = {part.conversation_id: LAST_SEQ if part.end_seq is None else part.end_seq for part in query.branch}
    places = [(held_by, seq, ends[held_by]) for held_by, seq in similarities]
    rows = yield Query("messages_in_view", {"group_id": parts[0].group_id, "places": to_json(places)})
    found = (Near(seq=seq, similarity=similarities[held_by, seq]) for held_by, seq in rows)
    return tuple(sorted(found, key=lambda near: (-near.similarity, -near.seq)))
