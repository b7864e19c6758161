"""How the parts are put together: the only module that knows every implementation.

The graph is synchronous and constructors do no I/O; `open_memory` opens what was selected and closes it in reverse.
What the library brings along is a plug-in like any other, of the lowest order, so that an installed plug-in, a setting
and ``container.<part>.override(...)`` replace a part in the same way.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import random
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import anyio
import msgspec
from dependency_injector import containers, providers

from reactor_memory.context.draft import ContextLimits
from reactor_memory.context.strategies import Hierarchical, Strategy, TakeLast
from reactor_memory.errors import ConfigurationError, MissingExtraError
from reactor_memory.loading import ContextLoader, JoinedContextSource, LoadingOptions
from reactor_memory.manager import ConversationManager, ManagerOptions
from reactor_memory.plugins import ConditionReport, Plugin, discover, evaluate
from reactor_memory.protocols import (
    ContextSource,
    MessageStore,
    RecallIndex,
    Redactor,
    Summarizer,
    SummaryStore,
    TokenCounter,
)
from reactor_memory.recalling import NoRecallIndex, Recaller, RecallOptions
from reactor_memory.redaction import unredacted
from reactor_memory.settings import Settings, canonical_name
from reactor_memory.tokens.messages import MessageCounter
from reactor_memory.validation import MessageLimits
from reactor_memory.workers.breaker import CircuitBreaker
from reactor_memory.workers.extraction import Extractor
from reactor_memory.workers.folding import SummaryFold
from reactor_memory.workers.idle import NoSummaries
from reactor_memory.workers.indexing import Indexer
from reactor_memory.workers.jobs import FullJob, LedgerJob
from reactor_memory.workers.poller import WorkPoller
from reactor_memory.workers.scheduler import SummaryWorkers, WorkerOptions
from reactor_memory.workers.spending import SpendingCaps

# -- what the library brings along ------------------------------------------------------------------------------------


def system_clock(settings: Settings) -> Callable[[], int]:
    return lambda: time.time_ns() // 1000


def in_memory_store(settings: Settings) -> MessageStore:
    from reactor_memory.storage.in_memory import InMemoryStore

    return InMemoryStore()


def sqlite_store(settings: Settings) -> MessageStore:
    from reactor_memory.storage.sqlite import SqliteStore

    store = settings.store
    return SqliteStore(
        _sqlite_path(store.url), busy_timeout_seconds=store.busy_timeout_seconds, inline_loads=store.inline_loads
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


def postgres_store(settings: Settings) -> MessageStore:
    from reactor_memory.storage.postgres import PostgresStore

    store = settings.store
    return PostgresStore(
        store.url,
        pool_size=store.pool_size,
        auto_migrate=store.auto_migrate,
        statement_cache_size=store.statement_cache_size,
        command_timeout_seconds=store.command_timeout_seconds,
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


def no_recall_index(settings: Settings) -> RecallIndex:
    return NoRecallIndex()


def no_redactor(settings: Settings) -> Redactor:
    return unredacted


OWN_PARTS = Plugin(
    name="reactor-memory",
    order=-1,
    provides={
        "message_store": {
            "memory": in_memory_store,
            "sqlite": sqlite_store,
            "postgresql": postgres_store,
            "postgres": postgres_store,
        },
        "summary_store": {},
        "summarizer": {
            "extractive": extractive_summarizer,
            "gemini": gemini_summarizer,
            "openai": openai_summarizer,
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
        },
        "recall_index": {"none": no_recall_index},
        "redactor": {"none": no_redactor},
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


def context_source_of(message_store: MessageStore, summary_store: SummaryStore) -> ContextSource:
    """One store answers a load in one round trip; two stores are joined."""
    if cast("object", summary_store) is message_store:
        return message_store
    return JoinedContextSource(message_store, summary_store)


# -- values out of the settings ---------------------------------------------------------------------------------------


def context_limits(settings: Settings) -> ContextLimits:
    summary, context = settings.summary, settings.context
    return ContextLimits(
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


def manager_options(settings: Settings) -> ManagerOptions:
    return ManagerOptions(
        limits=MessageLimits(**settings.limits.model_dump()),
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


def microseconds(seconds: float) -> int:
    return int(seconds * 1e6)


def seconds_of_days(days: int) -> float:
    return days * 86_400.0


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

    message_store = providers.Singleton(
        selected,
        conditions,
        "message_store",
        providers.Callable(scheme_of, settings.provided.store.url),
        "store.url",
        settings,
    )
    summary_store = providers.Singleton(
        summary_store_of, conditions, message_store, settings.provided.store.url, settings
    )
    context_source = providers.Singleton(context_source_of, message_store, summary_store)
    recall_index = providers.Singleton(
        recall_index_of, conditions, message_store, settings.provided.context.recall_index, settings
    )

    strategy = providers.Singleton(
        selected, conditions, "strategy", settings.provided.history.strategy, "history.strategy", settings
    )

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
    extractor = providers.Singleton(
        Extractor,
        summarizer,
        fallback=providers.Singleton(extractive_summarizer, settings),
        redactor=redactor,
        caps=spending_caps,
        breaker=breaker,
        timeout_seconds=settings.provided.summary.timeout_seconds,
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
    summary_scheduler = providers.Selector(
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

    recaller = providers.Singleton(
        Recaller,
        index=recall_index,
        messages=message_store,
        summaries=summary_store,
        counter=message_counter,
        redactor=redactor,
        options=providers.Callable(recall_options, settings),
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
    )
    conversation_manager = providers.Singleton(
        ConversationManager,
        messages=message_store,
        summaries=summary_store,
        index=recall_index,
        loader=context_loader,
        scheduler=summary_scheduler,
        counter=message_counter,
        redactor=redactor,
        refold=fold.provided.whole,
        clock=clock,
        random=providers.Object(secrets.token_hex),
        options=providers.Callable(manager_options, settings),
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
    message_store, summary_store = container.message_store(), container.summary_store()
    if container.settings().summary.enabled:
        opened.push_async_callback(container.summarizer().aclose)
    stores = {id(part): part for part in (message_store, summary_store, container.recall_index())}
    for part in (*stores.values(), container.summary_scheduler()):
        opened.push_async_callback(part.close)
        await part.open()
    _warm_up(container.token_counter(), opened)


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
