"""How the search of all conversations is wired."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, MissingExtraError
from reactor_memory.models.requests import Ahead
from reactor_memory.wiring.breakers import breaker_of
from reactor_memory.wiring.plugins import ConditionReport
from reactor_memory.wiring.selection import microseconds, named_by
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, Embedder, MessageStore, Redactor
    from reactor_memory.features.search.message_search import MessageSearchService
    from reactor_memory.features.search.work import MeaningIndexing, WordIndexing


def no_embedder(settings: Settings) -> None:
    """Nobody knows what a text means."""


def wordllama_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.wordllama_embedder import WordLlamaEmbedder

    if find_spec("wordllama") is None:
        raise MissingExtraError("search.embedder", package="wordllama", extra="wordllama")
    return WordLlamaEmbedder()


def gemini_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.gemini_embedder import DEFAULT_MODEL, GeminiEmbedder

    search = settings.search
    if search.api_key is None:
        raise ConfigurationError("search.api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
    return GeminiEmbedder(
        search.model or DEFAULT_MODEL,
        search.api_key.get_secret_value(),
        dimensions=search.dimensions,
        base_url=search.base_url,
        timeout_seconds=search.timeout_seconds,
    )


def openai_embedder(settings: Settings) -> Embedder:
    from reactor_memory.providers.openai_embedder import DEFAULT_MODEL, OpenAIEmbedder

    search = settings.search
    if search.base_url is not None and search.model is None:
        raise ConfigurationError("search.model", "is not set: name a model of the server of search.base_url")
    return OpenAIEmbedder(
        search.model or DEFAULT_MODEL,
        search.api_key.get_secret_value() if search.api_key else None,
        dimensions=search.dimensions,
        base_url=search.base_url,
        timeout_seconds=search.timeout_seconds,
    )


def guarded_embedder_of(report: ConditionReport, redactor: Redactor, settings: Settings) -> Embedder | None:
    """The embedder that the settings name, behind what guards it. Vectors are compared with numpy."""
    embedder: Embedder | None = named_by(report, "embedder", "search.embedder", settings)
    if embedder is None:
        return None
    if find_spec("numpy") is None:
        raise MissingExtraError("search.embedder", package="numpy", extra="vectors")
    from reactor_memory.features.recall.guarded_embedder import GuardedEmbedder

    return GuardedEmbedder(
        embedder, redactor=redactor, breaker=breaker_of(settings), timeout_seconds=settings.search.timeout_seconds
    )


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
        lease_microseconds=microseconds(background.lease_seconds),
        wait_microseconds=microseconds(background.max_backoff_seconds),
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
        batch_messages=settings.search.batch_messages,
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
