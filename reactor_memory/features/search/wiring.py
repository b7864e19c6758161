"""How the search of all conversations is wired, and the recall by meaning, which asks its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from reactor_memory.background.kinds import Kind
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, MissingExtraError
from reactor_memory.models.requests import Ahead
from reactor_memory.providers.asked_models import VECTOR_SECONDS, key_of, new_breaker, of_model

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, Embedder, MessageStore, RecallIndex, Redactor
    from reactor_memory.features.recall.recaller import RecallOptions
    from reactor_memory.features.search.message_search import MessageSearchService
    from reactor_memory.features.search.work import MeaningIndexing, WordIndexing
    from reactor_memory.settings.settings import Settings


BATCH_MESSAGES = 50
"""Messages that are embedded at a time."""

INDEXED_AT_ONCE = 2
"""Conversations that are made searchable at the same time."""

SWEEP_SECONDS = 30.0
"""How often to look for messages that no hint told of (of other processes, or before a crash), and for what failed."""


def no_embedder(settings: Settings) -> None:
    """Nobody knows what a text means."""


def wordllama_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.wordllama_embedder import WordLlamaEmbedder

    if find_spec("wordllama") is None:
        raise MissingExtraError("search.embedder", package="wordllama", extra="wordllama")
    return WordLlamaEmbedder()


def gemini_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.gemini_embedder import DEFAULT_MODEL, GeminiEmbedder

    name = settings.search.embedder
    asked = settings.model(name)
    with of_model(name):
        return GeminiEmbedder(
            asked.embedding_model or DEFAULT_MODEL,
            key_of(asked) or "",
            dimensions=asked.dimensions,
            base_url=asked.base_url,
            timeout_seconds=asked.timeout_seconds or VECTOR_SECONDS,
        )


def openai_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.openai_embedder import DEFAULT_MODEL, OpenAIEmbedder

    name = settings.search.embedder
    asked = settings.model(name)
    with of_model(name):
        if asked.base_url is not None and asked.embedding_model is None:
            raise ConfigurationError("embedding_model", "is not set: name a model of the server of base_url")
        return OpenAIEmbedder(
            asked.embedding_model or DEFAULT_MODEL,
            key_of(asked),
            dimensions=asked.dimensions,
            base_url=asked.base_url,
            timeout_seconds=asked.timeout_seconds or VECTOR_SECONDS,
        )


def guarded_embedder_of(embedder: Embedder | None, redactor: Redactor, settings: Settings) -> Embedder | None:
    """The embedder behind what guards it. Vectors are compared with numpy."""
    if embedder is None:
        return None
    if find_spec("numpy") is None:
        raise MissingExtraError("search.embedder", package="numpy", extra="vectors")
    from reactor_memory.features.recall.guarded_embedder import GuardedEmbedder

    seconds = settings.model(settings.search.embedder).timeout_seconds or VECTOR_SECONDS
    return GuardedEmbedder(embedder, redactor=redactor, breaker=new_breaker(), timeout_seconds=seconds)


def index_jobs(
    database: Database,
    messages: MessageStore,
    embedder: Embedder | None,
    redactor: Redactor,
    clock: Clock,
    settings: Settings,
) -> tuple[WordIndexing | MeaningIndexing, ...]:
    """Words, and meanings if anybody knows them."""
    from reactor_memory.features.search.work import MeaningIndexing, UnreadMessages, WordIndexing

    background = settings.background
    unread = UnreadMessages(messages, clock=clock)
    ahead = Ahead(
        lease_microseconds=background.lease_microseconds,
        wait_microseconds=int(background.max_backoff_seconds * 1e6),
    )
    words = WordIndexing(
        database=database,
        unread=unread,
        redactor=redactor,
        clock=clock,
        max_attempts=background.max_attempts,
        ahead=ahead,
    )
    if embedder is None:
        return (words,)
    meanings = MeaningIndexing(
        database=database,
        unread=unread,
        embedder=embedder,
        clock=clock,
        batch_messages=BATCH_MESSAGES,
        max_attempts=background.max_attempts,
        ahead=ahead,
    )
    return words, meanings


def message_search_of(
    database: Database, embedder: Embedder | None, clock: Clock, settings: Settings
) -> MessageSearchService:
    from reactor_memory.features.search.message_search import MessageSearchService, SearchOptions

    options = SearchOptions(min_similarity=settings.search.min_similarity)
    return MessageSearchService(database=database, embedder=embedder, clock=clock, options=options)


def recall_of(
    words: RecallIndex,
    where: str,
    database: Database,
    embedder: Callable[[], Embedder | None],
    options: RecallOptions,
    settings: Settings,
) -> RecallIndex:
    """What a load asks: the index, and meanings too if that is in the database, which keeps the vectors. An embedder
    that is too slow for a load may be good for all else, so whether to ask it is decided apart.
    """
    known = embedder() if where == "database" and settings.search.enabled else None
    if known is None:
        return words
    from reactor_memory.features.recall.guarded_embedder import GuardedEmbedder
    from reactor_memory.features.redaction import unredacted
    from reactor_memory.features.search.hybrid_recall import MeaningIndex

    search = settings.search
    seconds = min(options.seconds / 3, settings.model(search.embedder).timeout_seconds or VECTOR_SECONDS)
    patient = GuardedEmbedder(known, redactor=unredacted, breaker=new_breaker(), timeout_seconds=seconds)
    return MeaningIndex(
        words, database=database, embedder=patient, min_similarity=search.min_similarity, seconds=options.seconds / 2
    )


def search_work(
    settings: Settings, index: Callable[[], tuple[WordIndexing | MeaningIndexing, ...]], *, in_database: bool
) -> Iterator[Kind]:
    """What makes messages searchable, where this process does it."""
    if settings.search.enabled and not in_database:
        raise ConfigurationError(
            "search.enabled", "needs a database: let store.url begin with sqlite://, postgresql:// or memory://"
        )
    if not (settings.search.enabled and settings.background.enabled):
        return
    for each in index():
        yield Kind(
            name=each.kind,
            step=each.step,
            find=each.find,
            wants=lambda _, last_seq: True,
            every_seconds=SWEEP_SECONDS,
            concurrency=INDEXED_AT_ONCE,
            parks=False,
        )
