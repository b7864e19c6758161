"""Messages become searchable, by their words and by their meaning: two kinds of background work, which index a range of
a conversation at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio.to_thread

from reactor_memory.database.database import Database
from reactor_memory.errors import EmbeddingError, RedactionError
from reactor_memory.features.recall.guarded_embedder import MEANINGLESS
from reactor_memory.features.recall.passages import text_of
from reactor_memory.features.redaction import redacted
from reactor_memory.features.search import operations as search
from reactor_memory.features.search.models import IndexedRange, Meaning, WordEntry, is_findable
from reactor_memory.models import Message, Session
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import EMBED_SEARCH, EVER, INDEX_SEARCH, Ahead
from reactor_memory.text.analyzer import ANALYZER_VERSION, terms
from reactor_memory.text.languages import language_of

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, Embedder, MessageStore, Redactor

MAX_TERMS = 5_000
"""The different terms of one message."""

NEAR_CHARACTERS = 100
"""How much of each message says which language is spoken around it."""

WORDS_BATCH = 100
"""Messages that become searchable in one transaction: appends wait meanwhile."""

T = TypeVar("T")


class Unread(NamedTuple):
    """The next messages of a conversation that are to be indexed, up to `end_seq`, and when they were read."""

    session: Session
    after: int
    end_seq: int
    messages: tuple[Message, ...]
    read_at: int

    @property
    def first(self) -> int:
        return first_of(self.session)

    def indexed(
        self, *, words: Sequence[WordEntry] = (), meanings: Sequence[Meaning] = (), parked: int = 0
    ) -> IndexedRange:
        return IndexedRange(
            conversation_id=self.session.session_id,
            owner_id=self.session.owner_id or "",
            first=self.first,
            after=self.after,
            end_seq=self.end_seq,
            words=tuple(words),
            meanings=tuple(meanings),
            parked=parked,
            read_at=self.read_at,
        )


def first_of(session: Session) -> int:
    """The position before the first message of the conversation itself: what a fork inherits is indexed already."""
    return session.branch[-1].start_seq - 1


class UnreadMessages:
    """Reads what is to be indexed next."""

    def __init__(self, messages: MessageStore, *, clock: Clock) -> None:
        self._messages = messages
        self._clock = clock

    async def after(self, conversation_id: str, done: int | None, *, limit: int) -> Unread | None:
        """The findable ones of the next `limit` messages behind `done` (None: of all); None if there are none."""
        read_at = self._clock()
        session = (await self._messages.read_background(conversation_id, limit=1)).session
        after = first_of(session) if done is None else done
        if session.owner_id is None or after >= session.last_seq:
            return None
        rows = await self._messages.read_background(conversation_id, after=after, limit=limit)
        session, read = rows.session, rows.messages
        end = (read[-1].seq or session.last_seq) if len(read) == limit else session.last_seq
        return Unread(session, after, end, tuple(filter(is_findable, read)), read_at)


class WordIndexing:
    """Makes messages searchable by their words."""

    kind = INDEX_SEARCH

    def __init__(
        self,
        *,
        database: Database,
        unread: UnreadMessages,
        redactor: Redactor,
        clock: Clock,
        max_attempts: int,
        ahead: Ahead = EVER,
    ) -> None:
        self._database = database
        self._unread = unread
        self._redactor = redactor
        self._clock = clock
        self._max_attempts = max_attempts
        self._ahead = ahead

    async def find(self, *, after: str, limit: int) -> tuple[str, ...]:
        return await self._database.read_long(
            search.behind_in_words, after=after, now=self._clock(), limit=limit, ahead=self._ahead
        )

    async def step(self, lease: Lease) -> int | None:
        """Index the next messages; None if there were none, or another was faster. Raises `RedactionError`, until a
        message was tried `max_attempts` times: then it is given up alone.
        """
        progress = await self._database.read(search.search_progress, lease.session_id)
        done = progress.indexed_seq if progress and progress.analyzer == ANALYZER_VERSION else None
        unread = await self._unread.after(lease.session_id, done, limit=WORDS_BATCH)
        if unread is None:
            return None
        words, parked = await prepared(self._entries, unread.messages, is_last=_is_last(lease, self._max_attempts))
        part = unread.indexed(words=words, parked=parked)
        is_stored = await self._database.write_relaxed(search.index_words, lease, part)
        return unread.end_seq if is_stored else None

    async def _entries(self, messages: Sequence[Message]) -> list[WordEntry]:
        return await anyio.to_thread.run_sync(self._entries_of, messages, abandon_on_cancel=True)

    def _entries_of(self, messages: Sequence[Message]) -> list[WordEntry]:
        clean = redacted(messages, self._redactor)
        texts = [text_of(message) for message in clean]
        around = language_of(" ".join(text[:NEAR_CHARACTERS] for text in texts))
        return [
            WordEntry(seq=message.seq or 0, terms=terms_of(text, around), sent_at=message.created_at or 0)
            for message, text in zip(clean, texts, strict=True)
        ]


class MeaningIndexing:
    """Makes messages searchable by their meaning. Vectors of an embedder of another name are made anew."""

    kind = EMBED_SEARCH

    def __init__(
        self,
        *,
        database: Database,
        unread: UnreadMessages,
        embedder: Embedder,
        clock: Clock,
        batch_messages: int,
        max_attempts: int,
        ahead: Ahead = EVER,
    ) -> None:
        self._database = database
        self._unread = unread
        self._embedder = embedder
        self._clock = clock
        self._batch = batch_messages
        self._max_attempts = max_attempts
        self._ahead = ahead

    async def find(self, *, after: str, limit: int) -> tuple[str, ...]:
        return await self._database.read_long(
            search.behind_in_meanings,
            model=self._embedder.name,
            after=after,
            now=self._clock(),
            limit=limit,
            ahead=self._ahead,
        )

    async def step(self, lease: Lease) -> int | None:
        """As `WordIndexing.step`. Raises `EmbeddingError`; a text is given up for nothing but what lies in it."""
        progress = await self._database.read(search.search_progress, lease.session_id)
        done = progress.embedded_seq if progress and progress.model == self._embedder.name else None
        unread = await self._unread.after(lease.session_id, done, limit=self._batch)
        if unread is None:
            return None
        meanings, parked = await prepared(self._meanings, unread.messages, is_last=_is_last(lease, self._max_attempts))
        part = unread.indexed(meanings=meanings, parked=parked)
        is_stored = await self._database.write_relaxed(search.index_meanings, lease, part, model=self._embedder.name)
        return unread.end_seq if is_stored else None

    async def _meanings(self, messages: Sequence[Message]) -> list[Meaning]:
        told = [message for message in messages if text_of(message).strip()]
        vectors = await self._embedder.embed([text_of(message) for message in told]) if told else ()
        return [
            Meaning(seq=message.seq or 0, vector=tuple(vector), sent_at=message.created_at or 0)
            for message, vector in zip(told, vectors, strict=True)
            if any(vector)
        ]


def terms_of(text: str, around: str | None = None) -> tuple[str, ...]:
    """The different terms of a text, in its order; `around` is the language of what stands near it, for one that does
    not tell its own.
    """
    return tuple(dict.fromkeys(terms(text, language_of(text) or around)))[:MAX_TERMS]


def _is_last(lease: Lease, max_attempts: int) -> bool:
    return lease.attempts + 1 >= max_attempts


async def prepared(
    prepare: Callable[[Sequence[Message]], Awaitable[list[T]]], messages: Sequence[Message], *, is_last: bool
) -> tuple[list[T], int]:
    """What `prepare` makes of the messages. When it fails at the last attempt because of one of them, what it makes of
    the others, and how many were given up.
    """
    try:
        return await prepare(messages), 0
    except (RedactionError, EmbeddingError) as error:
        if not (is_last and _is_about_a_text(error)):
            raise
    made: list[T] = []
    parked = 0
    for message in messages:
        try:
            made += await prepare([message])
        except (RedactionError, EmbeddingError) as error:
            if not _is_about_a_text(error):
                raise
            parked += 1
    return made, parked


def _is_about_a_text(error: RedactionError | EmbeddingError) -> bool:
    return isinstance(error, RedactionError) or error.reason in MEANINGLESS
