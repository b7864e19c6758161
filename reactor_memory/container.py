"""How the parts are put together: the only module that knows every implementation.

The graph is synchronous and constructors do no I/O; `open_memory` opens what was selected and closes it in reverse.
What the library brings along is a plug-in like any other, of the lowest order, so that an installed plug-in, a setting
and ``container.<part>.override(...)`` replace a part in the same way.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import operator
import random
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import unquote
from uuid import uuid4

import anyio
import msgspec
from dependency_injector import containers, providers

from reactor_memory.chat.conversation import Chat
from reactor_memory.chat.summaries import HierarchicalSummaries, HierarchyOptions
from reactor_memory.chat.tiers import TierSummaries
from reactor_memory.chat_memory.service import ChatMemoryService
from reactor_memory.chat_memory.strategies import NoopStrategy, SummarizationStrategy, WriteSummary
from reactor_memory.context.draft import ContextLimits
from reactor_memory.context.strategies import Hierarchical, Strategy, TakeLast
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, MissingExtraError
from reactor_memory.loading import ContextLoader, JoinedContextSource, LoadingOptions
from reactor_memory.manager import ConversationManager, ManagerOptions
from reactor_memory.meaning import EMBED_SECONDS, MeaningIndex
from reactor_memory.memberships import ConversationStore
from reactor_memory.models import Message
from reactor_memory.notes.memory import LongTermMemory
from reactor_memory.plugins import ConditionReport, Plugin, discover, evaluate
from reactor_memory.principals import AnsweredRequestStore, ApiKeyStore
from reactor_memory.protocols import (
    ActiveSessionStore,
    ChatModel,
    Clock,
    Condenser,
    ContextSource,
    ItemsStore,
    MemoryManagementStrategy,
    MessageStore,
    NotesStore,
    RangeSummaryStore,
    RecallIndex,
    Redactor,
    Summarizer,
    SummaryStore,
    TokenCounter,
    UserData,
)
from reactor_memory.pruning import Pruner
from reactor_memory.recalling import NoRecallIndex, Recaller, RecallOptions
from reactor_memory.redaction import unredacted
from reactor_memory.responses import ResponseSignals, ResponseStore
from reactor_memory.searching import Embedder, SearchStore
from reactor_memory.service.access import Access
from reactor_memory.service.auditing import Audit
from reactor_memory.service.conversations import Conversations
from reactor_memory.service.following import FollowOptions
from reactor_memory.service.messages import Messages
from reactor_memory.service.responses import ResponseStreams, StreamBackend, StreamOptions
from reactor_memory.service.search import MessageSearchService, SearchOptions
from reactor_memory.service.sharing import Sharing
from reactor_memory.service.summaries import Summaries
from reactor_memory.service.watching import Watches
from reactor_memory.sessions.directory import SessionDirectory
from reactor_memory.settings import CONVERSATION_SUMMARY, Settings, canonical_name
from reactor_memory.storage.queries import QUERIES
from reactor_memory.storage.sql_store import SqlStore
from reactor_memory.streams.polling import PolledSignals
from reactor_memory.tiers.background import TierScheduler
from reactor_memory.tiers.classification import COMPRESSED, CONDENSED, Level, TierSizes
from reactor_memory.tiers.condensing import ExtractionCondenser
from reactor_memory.tiers.planning import Writing
from reactor_memory.tiers.service import DISABLED, OTHER_STRATEGY, ProgressiveTiers, TierOptions
from reactor_memory.tiers.strategy import Placement, Progressive, RangedContextSource
from reactor_memory.tiers.writing import TextForm, TierWriter
from reactor_memory.tokens.messages import MessageCounter
from reactor_memory.validation import MessageLimits
from reactor_memory.workers.breaker import CircuitBreaker
from reactor_memory.workers.embedding import GuardedEmbedder
from reactor_memory.workers.extraction import Extractor
from reactor_memory.workers.folding import SummaryFold
from reactor_memory.workers.guarding import ProviderGuard
from reactor_memory.workers.idle import NoSummaries
from reactor_memory.workers.indexing import Indexer
from reactor_memory.workers.jobs import FullJob, LedgerJob
from reactor_memory.workers.poller import WorkPoller
from reactor_memory.workers.scheduler import SummaryWorkers, WorkerOptions
from reactor_memory.workers.search_workers import (
    HintingScheduler,
    IndexingOptions,
    IndexJob,
    IndexWorker,
    SearchWorkers,
)
from reactor_memory.workers.searchable import MeaningIndexing, UnreadMessages, WordIndexing
from reactor_memory.workers.spending import SpendingCaps

# -- what the library brings along ------------------------------------------------------------------------------------


def system_clock(settings: Settings) -> Callable[[], int]:
    return lambda: time.time_ns() // 1000


def memory_database(settings: Settings) -> Database:
    from reactor_memory.database.sqlite_memory import MemoryDatabase

    return MemoryDatabase(QUERIES, timeout_seconds=settings.store.timeout_seconds)


def sqlite_database(settings: Settings) -> Database:
    from reactor_memory.database.sqlite import SqliteDatabase

    store = settings.store
    return SqliteDatabase(
        _sqlite_path(store.url), QUERIES, timeout_seconds=store.timeout_seconds, inline_reads=store.inline_loads
    )


def sqlite_file(settings: Settings) -> Path | None:
    """The file of the database, or None if the settings name another kind of store."""
    return _sqlite_path(settings.store.url) if scheme_of(settings.store.url) == "sqlite" else None


def _sqlite_path(url: str) -> Path:
    path = unquote(url.partition("://")[2].removeprefix("/"))
    if not path or path == ":memory:":
        raise ConfigurationError(
            "store.url", "names no file: write sqlite:///file.db, or memory:// for a store in memory"
        )
    return Path(path)


def postgres_database(settings: Settings) -> Database:
    from reactor_memory.database.postgres import PostgresDatabase

    store = settings.store
    return PostgresDatabase(
        store.url,
        QUERIES,
        pool_size=store.pool_size,
        auto_migrate=store.auto_migrate,
        statement_cache_size=store.statement_cache_size,
        timeout_seconds=store.timeout_seconds,
    )


def tiktoken_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

    return TiktokenCounter(settings.tokens.encoding, cache_dir=settings.tokens.cache_dir)


def quicktok_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.quicktok_counter import QuicktokCounter

    return QuicktokCounter(settings.tokens.encoding)


def estimate_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.estimate import EstimateCounter

    return EstimateCounter()


def extractive_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.summarizers.extractive import ExtractiveSummarizer

    return ExtractiveSummarizer()


def gemini_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.summarizers.gemini import GeminiSummarizer

    summary = settings.summary
    if summary.api_key is None:
        raise ConfigurationError("summary.api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
    return GeminiSummarizer(
        model=summary.llm_model,
        api_key=summary.api_key.get_secret_value(),
        base_url=summary.base_url,
        timeout_seconds=summary.timeout_seconds,
        max_narrative_tokens=summary.max_narrative_tokens,
        max_input_tokens=summary.max_input_tokens,
        max_output_tokens=summary.max_output_tokens,
        counter=counter_of(settings),
    )


def openai_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.summarizers.openai import OpenAISummarizer

    summary = settings.summary
    if "llm_model" not in summary.model_fields_set:
        raise ConfigurationError("summary.llm_model", "must name a model of the server; the default is one of Gemini")
    return OpenAISummarizer(
        model=summary.llm_model,
        api_key=summary.api_key.get_secret_value() if summary.api_key else None,
        base_url=summary.base_url,
        response_format=summary.response_format,
        timeout_seconds=summary.timeout_seconds,
        max_narrative_tokens=summary.max_narrative_tokens,
        max_input_tokens=summary.max_input_tokens,
        max_output_tokens=summary.max_output_tokens,
        counter=counter_of(settings),
    )


def echo_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.chat.echo import EchoModel

    return EchoModel()


def gemini_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.chat.gemini import GeminiChatModel

    asked = asked_by_chat(settings, "gemini")
    model = asked.model or type(settings.summary).model_fields["llm_model"].default
    return GeminiChatModel(model, asked.api_key, base_url=asked.base_url, timeout_seconds=settings.chat.timeout_seconds)


def openai_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.chat.openai import OpenAIChatModel

    asked = asked_by_chat(settings, "openai")
    if asked.model is None:
        raise ConfigurationError("chat.model", "must name a model of the server")
    return OpenAIChatModel(
        asked.model, asked.api_key, base_url=asked.base_url, timeout_seconds=settings.chat.timeout_seconds
    )


def automatic_chat_model(settings: Settings) -> ChatModel:
    """The provider of the summaries, if the settings say enough of it, else nobody: nothing leaves the machine."""
    asked = asked_by_chat(settings, settings.summary.provider)
    if settings.summary.provider == "gemini" and asked.api_key:
        return gemini_chat_model(settings)
    if settings.summary.provider == "openai" and asked.model and (asked.api_key or asked.base_url):
        return openai_chat_model(settings)
    return echo_chat_model(settings)


class AskedByChat(NamedTuple):
    """A model and the way to it."""

    model: str | None
    api_key: str | None
    base_url: str | None


def asked_by_chat(settings: Settings, provider: str) -> AskedByChat:
    """What the chat leaves open is taken from the summaries, if these ask the same provider; their key goes to their
    address and to no other.
    """
    chat, summary = settings.chat, settings.summary
    alike = summary.provider == provider
    named = summary.llm_model if alike and "llm_model" in summary.model_fields_set else None
    base_url = chat.base_url or (summary.base_url if alike else None)
    api_key = chat.api_key or (summary.api_key if alike and base_url == summary.base_url else None)
    return AskedByChat(chat.model or named, api_key.get_secret_value() if api_key else None, base_url)


def counter_of(settings: Settings) -> TokenCounter:
    """The counter that the settings select among those of the library, for parts that count before they send."""
    own = {"tiktoken": tiktoken_counter, "quicktok": quicktok_counter}
    return own.get(settings.tokens.counter, estimate_counter)(settings)


def take_last_strategy(settings: Settings) -> Strategy:
    return TakeLast()


def hierarchical_strategy(settings: Settings) -> Strategy:
    if not settings.summary.enabled:
        raise ConfigurationError("history.strategy", "hierarchical needs summary.enabled: true")
    return Hierarchical()


def automatic_strategy(settings: Settings) -> Strategy:
    return Hierarchical() if settings.summary.enabled else TakeLast()


def progressive_strategy(settings: Settings) -> Strategy:
    if settings.tiers.retention == "delete" and settings.summary.enabled:
        raise ConfigurationError(
            "tiers.retention", "delete would destroy what summary.enabled: true needs: archive them"
        )
    tiers = settings.tiers
    return Progressive(Placement(compressed=tiers.compressed_role, condensed=tiers.condensed_role))


def no_recall_index(settings: Settings) -> RecallIndex:
    return NoRecallIndex()


def no_embedder(settings: Settings) -> None:
    """Nobody knows what a text means."""


def wordllama_embedder(settings: Settings) -> Embedder:
    from reactor_memory.embedders.wordllama import WordLlamaEmbedder

    if find_spec("wordllama") is None:
        raise MissingExtraError("search.embedder", package="wordllama", extra="wordllama")
    return WordLlamaEmbedder()


def gemini_embedder(settings: Settings) -> Embedder:
    from reactor_memory.embedders.gemini import GeminiEmbedder

    search = settings.search
    if search.api_key is None:
        raise ConfigurationError("search.api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
    return GeminiEmbedder(
        search.model,
        search.api_key.get_secret_value(),
        dimensions=search.dimensions,
        base_url=search.base_url,
        timeout_seconds=search.timeout_seconds,
    )


def no_redactor(settings: Settings) -> Redactor:
    return unredacted


def noop_memory_management(settings: Settings) -> MemoryManagementStrategy:
    return NoopStrategy()


def summarizing_memory_management(settings: Settings) -> None:
    """It needs parts of the container, so the container makes it."""


def redis_stream_store(settings: Settings) -> ResponseStore:
    try:
        from reactor_memory.streams.redis_responses import RedisResponses
    except ImportError:
        raise MissingExtraError("streams.backend", package="redis", extra="redis") from None
    streams = settings.streams
    if streams.redis_url is None:
        raise ConfigurationError("streams.redis_url", "is not set: say where Redis or Valkey is")
    try:
        return RedisResponses(
            streams.redis_url.get_secret_value(), keep_microseconds=microseconds(streams.keep_seconds)
        )
    except ValueError:
        raise ConfigurationError(
            "streams.redis_url", "is no address of a server, such as redis://host:6379/0"
        ) from None


PROGRESSIVE = "progressive"
NOOP = "noop"
SUMMARIZING = "summarize"

OWN_PARTS = Plugin(
    name="reactor-memory",
    order=-1,
    provides={
        "database": {
            "memory": memory_database,
            "sqlite": sqlite_database,
            "postgresql": postgres_database,
            "postgres": postgres_database,
        },
        "message_store": {},
        "summary_store": {},
        "summarizer": {
            "extractive": extractive_summarizer,
            "gemini": gemini_summarizer,
            "openai": openai_summarizer,
        },
        "chat_model": {
            "auto": automatic_chat_model,
            "echo": echo_chat_model,
            "gemini": gemini_chat_model,
            "openai": openai_chat_model,
        },
        "token_counter": {
            "tiktoken": tiktoken_counter,
            "quicktok": quicktok_counter,
            "estimate": estimate_counter,
        },
        "strategy": {
            "auto": automatic_strategy,
            "take_last": take_last_strategy,
            "hierarchical": hierarchical_strategy,
            PROGRESSIVE: progressive_strategy,
        },
        "recall_index": {"none": no_recall_index},
        "embedder": {"none": no_embedder, "wordllama": wordllama_embedder, "gemini": gemini_embedder},
        "redactor": {"none": no_redactor},
        "memory_management": {NOOP: noop_memory_management, SUMMARIZING: summarizing_memory_management},
        "stream_store": {"redis": redis_stream_store},
        "clock": {"system": system_clock},
    },
)


# -- how a part is selected -------------------------------------------------------------------------------------------


def conditions_of(settings: Settings) -> ConditionReport:
    """What is available under these settings, and why."""
    return evaluate([OWN_PARTS, *discover()], settings)


def selected(report: ConditionReport, plug_point: str, name: str, key: str, settings: Settings) -> Any:
    """The implementation of a plug point that the setting `key` names."""
    return report.factory(plug_point, name, key=key)(settings)


def scheme_of(url: str) -> str:
    return url.partition("://")[0]


def database_of(report: ConditionReport, url: str, settings: Settings) -> Database:
    """The database that the address of the store names. A store that is none has no notes, no sharing, no search."""
    scheme = scheme_of(url)
    if scheme in report.factories["message_store"] and scheme not in report.factories["database"]:
        raise ConfigurationError(
            "store.url",
            f"{scheme}:// keeps the log and summaries only: use sqlite:///file.db or postgresql:// for this",
        )
    return selected(report, "database", scheme, "store.url", settings)


def message_store_of(
    report: ConditionReport, url: str, database: Callable[[], Database], settings: Settings
) -> MessageStore:
    """A plug-in's store of the log for this scheme, else the log in the database."""
    if scheme_of(url) in report.factories["message_store"]:
        return selected(report, "message_store", scheme_of(url), "store.url", settings)
    return SqlStore(database())


def summary_store_of(
    report: ConditionReport, message_store: MessageStore, url: str, settings: Settings
) -> SummaryStore:
    """A plug-in's summary store for this scheme, else the store of the log, which usually holds both."""
    if scheme_of(url) in report.factories["summary_store"]:
        return selected(report, "summary_store", scheme_of(url), "store.url", settings)
    if not hasattr(message_store, "record_segment"):
        raise ConfigurationError("store.url", "the store keeps no summaries, and no plug-in supplies a summary store")
    return cast("SummaryStore", message_store)


def recall_index_of(report: ConditionReport, message_store: MessageStore, name: str, settings: Settings) -> RecallIndex:
    """The index that the settings name. ``store`` is the store of the log; one that is none is searched directly."""
    if canonical_name(name) != "store" or "store" in report.factories["recall_index"]:
        return selected(report, "recall_index", name, "context.recall_index", settings)
    return cast("RecallIndex", message_store) if hasattr(message_store, "extend") else NoRecallIndex()


def response_store_of(
    report: ConditionReport, message_store: MessageStore, name: str, settings: Settings
) -> ResponseStore | None:
    """What the settings name. ``database`` is the store of the log; one that keeps no responses streams none."""
    if canonical_name(name) == "none":
        return None
    if canonical_name(name) != "database" or "database" in report.factories["stream_store"]:
        return selected(report, "stream_store", name, "streams.backend", settings)
    return cast("ResponseStore", message_store) if hasattr(message_store, "append_pieces") else None


def responses_apart_from(message_store: MessageStore, store: ResponseStore | None) -> ResponseStore | None:
    """The store of responses, if it is not the one of the log: that deletes and erases both in one transaction."""
    return None if cast("object", store) is message_store else store


def stream_backend_of(store: ResponseStore | None, settings: Settings) -> StreamBackend | None:
    """A store that tells of no changes is polled."""
    if store is None:
        return None
    if isinstance(store, ResponseSignals):
        return StreamBackend(store, Watches(store))
    streams = settings.streams
    polled = PolledSignals(store, min_seconds=streams.poll_min_seconds, max_seconds=streams.poll_max_seconds)
    return StreamBackend(store, Watches(polled))


def stream_options(settings: Settings) -> StreamOptions:
    streams = settings.streams
    return StreamOptions(
        expires_microseconds=microseconds(streams.expires_seconds),
        max_size=streams.max_bytes,
        max_events=streams.max_pieces,
        max_open=streams.max_open_per_caller,
        follow=FollowOptions(
            keep_microseconds=microseconds(streams.keep_seconds),
            recheck_seconds=streams.recheck_seconds,
            heartbeat_seconds=streams.heartbeat_seconds,
        ),
    )


def guarded_embedder_of(
    report: ConditionReport, name: str, redactor: Redactor, breaker: CircuitBreaker, settings: Settings
) -> Embedder | None:
    """The embedder that the settings name, behind what guards it. Vectors are compared with numpy."""
    embedder: Embedder | None = selected(report, "embedder", name, "search.embedder", settings)
    if embedder is None:
        return None
    if find_spec("numpy") is None:
        raise MissingExtraError("search.embedder", package="numpy", extra="vectors")
    return GuardedEmbedder(
        embedder, redactor=redactor, breaker=breaker, timeout_seconds=settings.search.timeout_seconds
    )


def recall_of(
    words: RecallIndex,
    message_store: MessageStore,
    store: Callable[[], SearchStore],
    embedder: Callable[[], Embedder | None],
    breaker: CircuitBreaker,
    settings: Settings,
) -> RecallIndex:
    """What a load asks: the index, and meanings too if that is the store, which keeps the vectors. An embedder that is
    too slow for a load may be good for all else, so whether to ask it is decided apart.
    """
    is_store = cast("object", words) is message_store
    known = embedder() if is_store and settings.search.enabled else None
    if known is None:
        return words
    seconds = min(EMBED_SECONDS, settings.search.timeout_seconds)
    patient = GuardedEmbedder(known, redactor=unredacted, breaker=breaker, timeout_seconds=seconds)
    return MeaningIndex(words, store=store(), embedder=patient, min_similarity=settings.search.min_similarity)


def search_store_of(message_store: MessageStore) -> SearchStore:
    if not hasattr(message_store, "search_messages"):
        raise ConfigurationError("search.enabled", "the store has no index over its conversations: choose another one")
    return cast("SearchStore", message_store)


def index_jobs(
    store: SearchStore,
    unread: UnreadMessages,
    embedder: Embedder | None,
    redactor: Redactor,
    clock: Clock,
    settings: Settings,
) -> tuple[IndexJob, ...]:
    """Words, and meanings if anybody knows them."""
    attempts = settings.background.max_attempts
    words = WordIndexing(store=store, unread=unread, redactor=redactor, clock=clock, max_attempts=attempts)
    if embedder is None:
        return (words,)
    meanings = MeaningIndexing(
        store=store,
        unread=unread,
        embedder=embedder,
        clock=clock,
        batch_messages=settings.search.batch_messages,
        max_attempts=attempts,
    )
    return words, meanings


def search_workers_of(
    jobs: Sequence[IndexJob],
    leases: SummaryStore,
    clock: Clock,
    random: Callable[[], float],
    options: IndexingOptions,
) -> SearchWorkers:
    return SearchWorkers([IndexWorker(job, leases=leases, clock=clock, random=random, options=options) for job in jobs])


def indexing_options(settings: Settings) -> IndexingOptions:
    background, search = settings.background, settings.search
    return IndexingOptions(
        concurrency=search.max_concurrent_conversations,
        sweep_seconds=search.sweep_seconds,
        lease_seconds=background.lease_seconds,
        backoff_seconds=background.backoff_seconds,
        max_backoff_seconds=background.max_backoff_seconds,
    )


def is_indexing(settings: Settings) -> str:
    """Whether this process makes messages searchable."""
    return on_or_off(settings.search.enabled and settings.background.enabled)


def active_session_store_of(message_store: MessageStore) -> ActiveSessionStore:
    if not hasattr(message_store, "get_or_create_active"):
        raise ConfigurationError("store.url", "the store keeps no active sessions; override active_session_store")
    return cast("ActiveSessionStore", message_store)


def notes_store_of(message_store: MessageStore) -> NotesStore:
    if not hasattr(message_store, "put_notes"):
        raise ConfigurationError("store.url", "the store keeps no notes; override notes_store")
    return cast("NotesStore", message_store)


def items_store_of(message_store: MessageStore) -> ItemsStore:
    if not hasattr(message_store, "change_items"):
        raise ConfigurationError("store.url", "the store keeps no items; override items_store")
    return cast("ItemsStore", message_store)


def conversation_store_of(message_store: MessageStore) -> ConversationStore:
    if not hasattr(message_store, "list_memberships"):
        raise ConfigurationError(
            "store.url", "the store shares no conversations: use sqlite:///file.db or postgresql://"
        )
    return cast("ConversationStore", message_store)


def answered_request_store_of(message_store: MessageStore) -> AnsweredRequestStore:
    if not hasattr(message_store, "claim_request"):
        raise ConfigurationError("store.url", "the store keeps no answers: use sqlite:///file.db or postgresql://")
    return cast("AnsweredRequestStore", message_store)


def api_key_store_of(message_store: MessageStore) -> ApiKeyStore:
    if not hasattr(message_store, "find_api_key"):
        raise ConfigurationError("store.url", "the store keeps no keys: use sqlite:///file.db or postgresql://")
    return cast("ApiKeyStore", message_store)


def user_data_of(message_store: MessageStore, *places: Callable[[], object]) -> tuple[UserData, ...]:
    """Those of the stores that keep something about users, each once: the store of the log, and what is elsewhere."""
    stores: list[object] = [message_store]
    for place in places:
        with suppress(ConfigurationError):  # the store keeps nothing of this kind, so there is nothing to forget
            stores.append(place())
    return tuple({id(store): cast("UserData", store) for store in stores if hasattr(store, "forget_user")}.values())


def context_source_of(message_store: MessageStore, summary_store: SummaryStore, strategy: Strategy) -> ContextSource:
    """One store answers a load in one round trip; two stores are joined. A strategy that says so by `reads_ranges` gets
    summaries of ranges, too, for one round trip more.
    """
    one = cast("object", summary_store) is message_store
    source = message_store if one else JoinedContextSource(message_store, summary_store)
    if not getattr(strategy, "reads_ranges", False):
        return source
    return RangedContextSource(source, range_summary_store_of(message_store))


def range_summary_store_of(message_store: MessageStore) -> RangeSummaryStore:
    """The store of the log, which alone can take messages out of view together with their summary."""
    if not hasattr(message_store, "put_range_summaries"):
        raise ConfigurationError("store.url", "the store keeps no summaries of ranges: choose another one")
    return cast("RangeSummaryStore", message_store)


def condenser_of(summarizer: Summarizer, counter: MessageCounter) -> Condenser:
    """The summarizer itself if it can tell a run in fewer words, else what it extracts."""
    if hasattr(summarizer, "condense"):
        return cast("Condenser", summarizer)
    return ExtractionCondenser(summarizer, count=counter.of_text)


def memory_management_of(
    report: ConditionReport, name: str, summarizing: Callable[[], MemoryManagementStrategy], settings: Settings
) -> MemoryManagementStrategy:
    """The strategy of the chat memory, or if its factory leaves that to the container, `summarizing`."""
    return selected(report, "memory_management", name, "chat_memory.strategy", settings) or summarizing()


def chat_summaries_written_by(writer: TierWriter) -> WriteSummary:
    """Written as the condensed texts of tiers are."""

    async def write(conversation_id: str, messages: Sequence[Message]) -> str:
        start, end = messages[0].seq or 0, messages[-1].seq or 0
        writing = Writing(kind=CONDENSED, start_seq=start, end_seq=end, messages=tuple(messages))
        return (await writer.write(conversation_id, writing)).text

    return write


# -- values out of the settings ---------------------------------------------------------------------------------------


def context_limits(settings: Settings) -> ContextLimits:
    summary, context = settings.summary, settings.context
    limits = ContextLimits(
        budget=context.max_tokens - context.reserved_output_tokens,
        overhead=settings.tokens.overhead_per_message,
        take_last_count=2 * settings.history.max_conversation_turns,
        trigger_message_count=summary.trigger_message_count,
        recent_message_count=summary.recent_message_count,
        segment_message_count=summary.segment_message_count if summary.mode == "ledger" else 0,
        max_window_tokens=context.max_window_tokens,
        window_min_share=context.window_min_share,
        max_memory_share=summary.max_memory_share,
        memory_role=summary.memory_role,
    )
    return tiered_limits(limits, settings) if settings.history.strategy == PROGRESSIVE else limits


def tiered_limits(limits: ContextLimits, settings: Settings) -> ContextLimits:
    """A load of tiers reads what may wait to be summarised, and a long turn more."""
    tiers = settings.tiers
    waiting = tiers.auto_threshold + 1 + limits.longest_turn
    return msgspec.structs.replace(
        limits, take_last_count=max(limits.take_last_count, waiting), recent_message_count=tiers.recent_count
    )


def tier_options(settings: Settings) -> TierOptions:
    tiers = settings.tiers
    disabled = "" if settings.history.strategy == PROGRESSIVE else OTHER_STRATEGY
    return TierOptions(
        sizes=TierSizes(
            recent_count=tiers.recent_count,
            condensed_count=tiers.condensed_count,
            longest_turn=context_limits(settings).longest_turn,
        ),
        auto_threshold=tiers.auto_threshold if tiers.auto_summarize else None,
        retention=tiers.retention,
        disabled=disabled if tiers.enabled else DISABLED,
    )


def tier_forms(settings: Settings) -> dict[Level, TextForm]:
    tiers = settings.tiers
    return {
        CONDENSED: TextForm(prompt=tiers.condensed_prompt, max_tokens=tiers.condensed_max_tokens),
        COMPRESSED: TextForm(prompt=tiers.compressed_prompt, max_tokens=tiers.compressed_max_tokens),
    }


def work_of_tiers(settings: Settings, summary_store: SummaryStore) -> SummaryStore | None:
    """The list of due work, where no worker of the ledger keeps it."""
    return None if settings.summary.enabled else summary_store


def tiered_or_not(settings: Settings) -> str:
    """Whether tiers grow by themselves."""
    options = tier_options(settings)
    return on_or_off(options.auto_threshold is not None and not options.disabled)


def is_progressive(settings: Settings) -> bool:
    return canonical_name(settings.history.strategy) == PROGRESSIVE


def progressive_or_not(settings: Settings) -> str:
    """Whether the commands of a chat are about tiers."""
    return on_or_off(is_progressive(settings))


def loading_options(settings: Settings) -> LoadingOptions:
    limits = context_limits(settings)
    return LoadingOptions(
        limits=limits,
        window_growth=settings.context.window_growth,
        lazy_timeout_seconds=settings.summary.lazy_timeout_seconds,
        settings_fingerprint=fingerprint_of(limits, settings),
    )


def recall_options(settings: Settings) -> RecallOptions:
    return RecallOptions(share=settings.context.recall_share, overhead=settings.tokens.overhead_per_message)


LAYOUT_FORM = 3
"""How layouts are stored. One of another form is not read, and made again."""


def fingerprint_of(limits: ContextLimits, settings: Settings) -> str:
    """Names everything that decides what a layout looks like: a layout made under other settings is not used."""
    window, tokens = settings.context.window_growth, settings.tokens
    deciding = (LAYOUT_FORM, settings.history.strategy, limits, window, tokens.encoding, tokens.counter)
    return hashlib.blake2b(msgspec.json.encode(deciding), digest_size=8).hexdigest()


def message_limits(settings: Settings) -> MessageLimits:
    return MessageLimits(**settings.limits.model_dump())


def manager_options(settings: Settings) -> ManagerOptions:
    return ManagerOptions(
        timeout_seconds=settings.store.timeout_seconds,
        limits=message_limits(settings),
        work_every=settings.summary.segment_message_count,
        delete_grace_days=settings.store.delete_grace_days,
        max_pins=settings.context.max_pins,
        max_pin_tokens=settings.context.max_pin_tokens,
    )


def worker_options(settings: Settings) -> WorkerOptions:
    background = settings.background
    return WorkerOptions(
        trigger_message_count=settings.summary.trigger_message_count,
        max_concurrent_sessions=background.max_concurrent_sessions,
        lease_seconds=background.lease_seconds,
        max_attempts=background.max_attempts,
        backoff_seconds=background.backoff_seconds,
        max_backoff_seconds=background.max_backoff_seconds,
        close_grace_seconds=background.close_grace_seconds,
        run_jobs=background.enabled,
    )


def hierarchy_options(settings: Settings) -> HierarchyOptions:
    summary = settings.summary
    return HierarchyOptions(
        enabled=summary.enabled,
        trigger_message_count=summary.trigger_message_count,
        recent_message_count=summary.recent_message_count,
        segment_message_count=summary.segment_message_count if summary.mode == "ledger" else None,
        summarizer=summary.provider,
    )


def microseconds(seconds: float) -> int:
    return int(seconds * 1e6)


def chat_summarizer_kind(settings: Settings) -> Literal["usual", "own"]:
    """Whether the chat memory shares the summarizer of the section `summary`, its breaker included."""
    return "usual" if settings.chat_memory.summarizer == CONVERSATION_SUMMARY else "own"


def seconds_of_days(days: int) -> float:
    return days * 86_400.0


def new_session_id() -> str:
    return str(uuid4())


def on_or_off(enabled: bool) -> str:
    return "on" if enabled else "off"


# -- the graph --------------------------------------------------------------------------------------------------------


class Container(containers.DeclarativeContainer):
    """Every part of the library, in the order in which data flows. Override any of them before it is first used."""

    settings = providers.Dependency(instance_of=Settings)
    conditions = providers.Singleton(conditions_of, settings)

    clock = providers.Singleton(selected, conditions, "clock", settings.provided.clock, "clock", settings)
    random = providers.Object(random.SystemRandom().random)

    token_counter = providers.Singleton(
        selected, conditions, "token_counter", settings.provided.tokens.counter, "tokens.counter", settings
    )
    message_counter = providers.Singleton(
        MessageCounter, token_counter, media_part_tokens=settings.provided.tokens.media_part_tokens
    )

    database = providers.Singleton(database_of, conditions, settings.provided.store.url, settings)
    message_store = providers.Singleton(
        message_store_of, conditions, settings.provided.store.url, database.provider, settings
    )
    summary_store = providers.Singleton(
        summary_store_of, conditions, message_store, settings.provided.store.url, settings
    )
    recall_index = providers.Singleton(
        recall_index_of, conditions, message_store, settings.provided.context.recall_index, settings
    )

    strategy = providers.Singleton(
        selected, conditions, "strategy", settings.provided.history.strategy, "history.strategy", settings
    )

    context_source = providers.Singleton(context_source_of, message_store, summary_store, strategy)

    redactor = providers.Singleton(selected, conditions, "redactor", settings.provided.redactor, "redactor", settings)

    # `provided.summary.provider` would be the provider's own attribute of that name.
    summarizer = providers.Singleton(
        selected,
        conditions,
        "summarizer",
        settings.provided.value.call("summary.provider"),
        "summary.provider",
        settings,
    )
    chat_model = providers.Singleton(
        selected, conditions, "chat_model", settings.provided.value.call("chat.provider"), "chat.provider", settings
    )
    breaker = providers.Singleton(
        CircuitBreaker,
        failures=settings.provided.summary.breaker_failures,
        open_seconds=settings.provided.summary.breaker_open_seconds,
        monotonic=time.monotonic,
    )
    spending_caps = providers.Singleton(
        SpendingCaps,
        summaries=summary_store,
        clock=clock,
        max_tokens_per_session=settings.provided.summary.max_tokens_per_session,
        max_tokens_per_day=settings.provided.summary.max_tokens_per_day,
    )
    provider_guard = providers.Singleton(
        ProviderGuard,
        redactor=redactor,
        caps=spending_caps,
        breaker=breaker,
        timeout_seconds=settings.provided.summary.timeout_seconds,
    )
    extractor = providers.Singleton(
        Extractor,
        summarizer,
        fallback=providers.Singleton(extractive_summarizer, settings),
        guard=provider_guard,
    )
    fold = providers.Singleton(
        SummaryFold,
        max_fact_tokens=settings.provided.summary.max_fact_tokens,
        max_narrative_tokens=settings.provided.summary.max_narrative_tokens,
        count=message_counter.provided.of_text,
    )
    indexer = providers.Singleton(
        Indexer, messages=message_store, summaries=summary_store, index=recall_index, redactor=redactor
    )
    job = providers.Selector(
        settings.provided.summary.mode,
        ledger=providers.Singleton(
            LedgerJob,
            messages=message_store,
            summaries=summary_store,
            indexer=indexer,
            extractor=extractor,
            fold=fold,
            clock=clock,
            trigger_message_count=settings.provided.summary.trigger_message_count,
            segment_message_count=settings.provided.summary.segment_message_count,
            lease_microseconds=providers.Callable(microseconds, settings.provided.background.lease_seconds),
        ),
        full=providers.Singleton(
            FullJob,
            messages=message_store,
            summaries=summary_store,
            extractor=extractor,
            fold=fold,
            clock=clock,
            trigger_message_count=settings.provided.summary.trigger_message_count,
            recent_message_count=settings.provided.summary.recent_message_count,
        ),
    )
    summary_workers = providers.Selector(
        providers.Callable(on_or_off, settings.provided.summary.enabled),
        on=providers.Singleton(
            SummaryWorkers,
            job=job,
            summaries=summary_store,
            breaker=breaker,
            clock=clock,
            random=random,
            options=providers.Callable(worker_options, settings),
        ),
        off=providers.Singleton(NoSummaries),
    )

    tier_writer = providers.Singleton(
        TierWriter,
        providers.Singleton(condenser_of, summarizer, message_counter),
        fallback=providers.Singleton(
            condenser_of, providers.Singleton(extractive_summarizer, settings), message_counter
        ),
        guard=provider_guard,
        counter=message_counter,
        forms=providers.Callable(tier_forms, settings),
        chunk_tokens=settings.provided.tiers.chunk_tokens,
    )
    range_summary_store = providers.Singleton(range_summary_store_of, message_store)
    tiers = providers.Singleton(
        ProgressiveTiers,
        messages=message_store,
        ranges=range_summary_store,
        writer=tier_writer,
        counter=message_counter,
        clock=clock,
        options=providers.Callable(tier_options, settings),
    )
    summary_scheduler = providers.Selector(
        providers.Callable(tiered_or_not, settings),
        on=providers.Singleton(
            TierScheduler,
            summary_workers,
            tiers=tiers,
            work=providers.Callable(work_of_tiers, settings, summary_store),
            clock=clock,
            max_concurrent_sessions=settings.provided.background.max_concurrent_sessions,
            close_grace_seconds=settings.provided.background.close_grace_seconds,
            run_jobs=settings.provided.background.enabled,
        ),
        off=summary_workers,
    )
    work_poller = providers.Singleton(
        WorkPoller,
        workers=summary_scheduler,
        messages=message_store,
        summaries=summary_store,
        clock=clock,
        random=random,
        poll_seconds=settings.provided.background.poll_seconds,
        delete_grace_seconds=providers.Callable(seconds_of_days, settings.provided.store.delete_grace_days),
    )

    response_store = providers.Singleton(
        response_store_of, conditions, message_store, settings.provided.streams.backend, settings
    )
    responses_apart = providers.Callable(responses_apart_from, message_store, response_store)

    pruner = providers.Singleton(
        Pruner,
        messages=message_store,
        summaries=summary_store,
        index=recall_index,
        scheduler=summary_scheduler,
        clock=clock,
        purge=providers.Callable(operator.not_, settings.provided.store.delete_grace_days),
        responses_apart=responses_apart,
    )

    embedder = providers.Singleton(
        guarded_embedder_of,
        conditions,
        settings.provided.search.embedder,
        redactor,
        providers.Singleton(
            CircuitBreaker,
            failures=settings.provided.summary.breaker_failures,
            open_seconds=settings.provided.summary.breaker_open_seconds,
            monotonic=time.monotonic,
        ),
        settings,
    )
    search_store = providers.Singleton(search_store_of, message_store)
    search_workers = providers.Selector(
        providers.Callable(is_indexing, settings),
        on=providers.Singleton(
            search_workers_of,
            providers.Singleton(
                index_jobs,
                search_store,
                providers.Singleton(UnreadMessages, message_store, clock=clock),
                embedder,
                redactor,
                clock,
                settings,
            ),
            summary_store,
            clock,
            random,
            providers.Callable(indexing_options, settings),
        ),
        off=providers.Singleton(SearchWorkers, ()),
    )
    message_search = providers.Singleton(
        MessageSearchService,
        store=search_store,
        embedder=embedder,
        clock=clock,
        options=providers.Factory(SearchOptions, min_similarity=settings.provided.search.min_similarity),
    )
    save_scheduler = providers.Selector(
        providers.Callable(is_indexing, settings),
        on=providers.Singleton(HintingScheduler, summary_scheduler, search=search_workers),
        off=summary_scheduler,
    )

    recaller = providers.Singleton(
        Recaller,
        index=providers.Singleton(
            recall_of,
            recall_index,
            message_store,
            search_store.provider,
            embedder.provider,
            providers.Singleton(
                CircuitBreaker,
                failures=settings.provided.summary.breaker_failures,
                open_seconds=settings.provided.summary.breaker_open_seconds,
                monotonic=time.monotonic,
            ),
            settings,
        ),
        messages=message_store,
        summaries=summary_store,
        counter=message_counter,
        redactor=redactor,
        options=providers.Callable(recall_options, settings),
    )
    active_session_store = providers.Singleton(active_session_store_of, message_store)
    items_store = providers.Singleton(items_store_of, message_store)
    notes_store = providers.Singleton(notes_store_of, message_store)
    shown_notes = providers.Selector(
        providers.Callable(on_or_off, settings.provided.notes.enabled), on=notes_store, off=providers.Object(None)
    )
    context_loader = providers.Singleton(
        ContextLoader,
        source=context_source,
        messages=message_store,
        summaries=summary_store,
        scheduler=summary_scheduler,
        strategy=strategy,
        recaller=recaller,
        counter=message_counter,
        options=providers.Callable(loading_options, settings),
        notes=shown_notes,
    )
    conversation_manager = providers.Singleton(
        ConversationManager,
        messages=message_store,
        summaries=summary_store,
        index=recall_index,
        loader=context_loader,
        scheduler=save_scheduler,
        counter=message_counter,
        redactor=redactor,
        user_data=providers.Callable(
            user_data_of, message_store, active_session_store.provider, notes_store.provider, items_store.provider
        ),
        refold=fold.provided.whole,
        clock=clock,
        random=providers.Object(secrets.token_hex),
        options=providers.Callable(manager_options, settings),
        responses_apart=responses_apart,
    )

    session_directory = providers.Singleton(
        SessionDirectory,
        active=active_session_store,
        messages=message_store,
        clock=clock,
        new_id=providers.Object(new_session_id),
    )
    long_term_memory = providers.Singleton(
        LongTermMemory,
        store=notes_store,
        clock=clock,
        max_chars=settings.provided.notes.max_chars,
        allow_destructive=settings.provided.notes.allow_destructive,
    )
    chat_summarizer = providers.Singleton(
        selected,
        conditions,
        "summarizer",
        settings.provided.chat_memory.summarizer,
        "chat_memory.summarizer",
        settings,
    )
    own_chat_writer = providers.Singleton(
        TierWriter,
        providers.Singleton(condenser_of, chat_summarizer, message_counter),
        fallback=providers.Singleton(
            condenser_of, providers.Singleton(extractive_summarizer, settings), message_counter
        ),
        guard=providers.Singleton(
            ProviderGuard,
            redactor=redactor,
            caps=spending_caps,
            breaker=providers.Singleton(
                CircuitBreaker,
                failures=settings.provided.summary.breaker_failures,
                open_seconds=settings.provided.summary.breaker_open_seconds,
                monotonic=time.monotonic,
            ),
            timeout_seconds=settings.provided.summary.timeout_seconds,
        ),
        counter=message_counter,
        forms=providers.Callable(tier_forms, settings),
        chunk_tokens=settings.provided.tiers.chunk_tokens,
    )
    chat_writer = providers.Selector(
        providers.Callable(chat_summarizer_kind, settings),
        usual=tier_writer,
        own=own_chat_writer,
    )
    summarization_strategy = providers.Singleton(
        SummarizationStrategy,
        messages=message_store,
        ranges=range_summary_store,
        write=providers.Callable(chat_summaries_written_by, chat_writer),
        count=message_counter.provided.of_text,
        tokenizer=message_counter.provided.name,
        clock=clock,
        every=settings.provided.chat_memory.summarize_every_n,
        retention=settings.provided.chat_memory.retention,
    )
    memory_management = providers.Singleton(
        memory_management_of,
        conditions,
        settings.provided.chat_memory.strategy,
        summarization_strategy.provider,
        settings,
    )
    chat_memory = providers.Singleton(
        ChatMemoryService,
        manager=conversation_manager,
        messages=message_store,
        ranges=range_summary_store,
        strategy=memory_management,
        on_hook_error=settings.provided.chat_memory.on_hook_error,
    )

    # conversations that people share

    conversation_store = providers.Singleton(conversation_store_of, message_store)
    audit = providers.Singleton(Audit, store=conversation_store, clock=clock)
    access = providers.Singleton(Access, store=conversation_store, audit=audit)
    conversations = providers.Singleton(
        Conversations,
        access=access,
        store=conversation_store,
        manager=conversation_manager,
        scheduler=save_scheduler,
        audit=audit,
        clock=clock,
        limits=providers.Callable(message_limits, settings),
        purge=providers.Callable(operator.not_, settings.provided.store.delete_grace_days),
    )
    shared_messages = providers.Singleton(
        Messages, access=access, store=conversation_store, manager=conversation_manager
    )
    answered_request_store = providers.Singleton(answered_request_store_of, message_store)
    api_key_store = providers.Singleton(api_key_store_of, message_store)
    posted_summaries = providers.Singleton(
        Summaries, access=access, store=conversation_store, manager=conversation_manager
    )
    sharing = providers.Singleton(Sharing, access=access, store=conversation_store, audit=audit, clock=clock)

    response_streams = providers.Singleton(
        ResponseStreams,
        access=access,
        conversations=conversation_store,
        backend=providers.Singleton(stream_backend_of, response_store, settings),
        clock=clock,
        options=providers.Callable(stream_options, settings),
    )

    chat = providers.Factory(
        Chat,
        manager=conversation_manager,
        model=chat_model,
        summaries=providers.Selector(
            providers.Callable(progressive_or_not, settings),
            on=providers.Factory(
                TierSummaries,
                tiers=tiers,
                ranges=range_summary_store,
            ),
            off=providers.Factory(
                HierarchicalSummaries,
                manager=conversation_manager,
                summaries=summary_store,
                scheduler=summary_scheduler,
                options=providers.Callable(hierarchy_options, settings),
            ),
        ),
        system=settings.provided.chat.system,
    )


@asynccontextmanager
async def open_memory(
    settings: Settings | None = None, *, configure: Callable[[Container], None] | None = None
) -> AsyncGenerator[Container]:
    """A container whose stores are open and whose background work runs; all of it is closed at the end of the block.

    `configure` is called with the container before anything is made: the place to override parts. Raises
    `ConfigurationError` for settings that cannot be met, and `StoreError` if the database cannot be opened.
    """
    container = Container(settings=settings if settings is not None else Settings())
    if container.settings().telemetry.enabled:
        _observe(container)
    if configure is not None:
        configure(container)
    opened = AsyncExitStack()
    try:
        await _open_parts(container, opened)
        yield container
    finally:
        await _close_all(opened)


def _observe(container: Container) -> None:
    """Let parts that are observed take the place of those that they extend. What a caller overrides is not observed."""
    try:
        from reactor_memory import telemetry
    except ImportError:
        raise MissingExtraError("telemetry.enabled", package="opentelemetry-api", extra="otel") from None
    instruments = telemetry.Telemetry()
    _extend(container.conversation_manager, telemetry.ObservedManager, telemetry=instruments)
    _extend(container.context_loader, telemetry.ObservedLoader, telemetry=instruments)
    _extend(container.recaller, telemetry.ObservedRecaller, telemetry=instruments)
    _extend(container.extractor, telemetry.ObservedExtractor, telemetry=instruments)
    for writer in (container.tier_writer, container.own_chat_writer):
        _extend(writer, telemetry.ObservedTierWriter, telemetry=instruments)


def _extend(part: providers.Singleton[Any], extended: type[Any], **arguments: object) -> None:
    """Make `extended` with these arguments, beside those that the part is made with."""
    part.set_provides(extended)
    part.add_kwargs(**arguments)


async def _close_all(opened: AsyncExitStack) -> None:
    """Close everything, also while being cancelled: what stays open would hold threads, connections and leases.

    That is bounded by the grace time of the background work. A task that is cancelled again gives up the wait.
    """
    with anyio.CancelScope(shield=True):
        closing = asyncio.ensure_future(opened.aclose())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise


async def _open_parts(container: Container, opened: AsyncExitStack) -> None:
    """Make every part, so that a mistake shows here, then open what has a life, in the order in which data flows."""
    for closer in container.conditions().closers:
        opened.push_async_callback(_finished, closer)
    container.conversation_manager()
    if container.settings().chat_memory.strategy != NOOP:
        container.chat_memory()
    message_store, summary_store = container.message_store(), container.summary_store()
    for summarizer in _summarizers_in_use(container):
        opened.push_async_callback(summarizer.aclose)
    stores = {
        id(part): part
        for part in (message_store, summary_store, container.recall_index(), container.response_store())
        if part is not None
    }
    if container.settings().search.enabled and (embedder := container.embedder()) is not None:
        opened.push_async_callback(embedder.aclose)
    await _open_each(opened, stores.values())
    if not _is_read_only(message_store):
        await _open_each(opened, (container.summary_scheduler(), container.search_workers()))
    _warm_up(container.token_counter(), opened)


async def _open_each(opened: AsyncExitStack, parts: Iterable[Any]) -> None:
    for part in parts:
        opened.push_async_callback(part.close)
        await part.open()


def _is_read_only(store: MessageStore) -> bool:
    """Then nothing works in the background, where every claim would fail."""
    return isinstance(store, SqlStore) and store.database.is_read_only


def _summarizers_in_use(container: Container) -> Iterator[Summarizer]:
    settings = container.settings()
    is_chat_summarizing = settings.chat_memory.strategy == SUMMARIZING
    is_shared = chat_summarizer_kind(settings) == "usual"
    if settings.summary.enabled or settings.history.strategy == PROGRESSIVE or (is_chat_summarizing and is_shared):
        yield container.summarizer()
    if is_chat_summarizing and not is_shared:
        yield container.chat_summarizer()


def _warm_up(counter: TokenCounter, opened: AsyncExitStack) -> None:
    """Let the tokenizer load in a thread while the caller goes on, so that the first save does not wait for it."""
    loading = asyncio.get_running_loop().run_in_executor(None, counter.count, "")
    loading.add_done_callback(_seen)
    opened.push_async_callback(asyncio.wait, [loading])


def _seen(loading: asyncio.Future[int]) -> None:
    """Take note of a failure without raising it: whoever counts meets the same error."""
    if not loading.cancelled():
        loading.exception()


async def _finished(closer: Callable[[], Awaitable[None] | None]) -> None:
    result = closer()
    if inspect.isawaitable(result):
        await result


__all__ = ["Container", "open_memory"]
