"""How the parts are put together: the only module that knows every implementation.

The graph is synchronous and constructors do no I/O; `open_container` opens what was selected and closes it in reverse.
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
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote
from uuid import uuid4

import anyio
import msgspec
from dependency_injector import containers, providers

from reactor_memory.background.breaker import CircuitBreaker
from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.kinds import Kind
from reactor_memory.background.worker import WorkOptions
from reactor_memory.core.batches import BatchMaker
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import Strategy, TakeLast
from reactor_memory.core.loading import ContextLoader, JoinedContextSource, LoadingOptions
from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.core.manager import ConversationManager, ManagerOptions
from reactor_memory.core.ports import (
    ERASE,
    ERASE_USER,
    FORGET,
    SUMMARIZE,
    Clock,
    ContextSource,
    KeptElsewhere,
    LedgerFold,
    MessageStore,
    RecallIndex,
    Redactor,
    Summarizer,
    SummaryStore,
    TokenCounter,
)
from reactor_memory.database.absent import AbsentDatabase
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, MissingExtraError
from reactor_memory.models import Session
from reactor_memory.wiring.plugins import ConditionReport, Plugin, discover, evaluate
from reactor_memory.wiring.queries import QUERIES
from reactor_memory.wiring.selection import (
    PROGRESSIVE,
    breaker_of,
    context_limits,
    estimate_counter,
    imported,
    is_in_database,
    message_limits,
    microseconds,
    named_by,
    on_or_off,
    progressive_or_not,
    quicktok_counter,
    refuse_without_database,
    scheme_of,
    selected,
    tiktoken_counter,
)
from reactor_memory.wiring.settings import CONVERSATION_SUMMARY, Settings, canonical_name

if TYPE_CHECKING:
    from reactor_memory.features.active_sessions.directory import SessionDirectory
    from reactor_memory.features.chat.conversation import Chat
    from reactor_memory.features.erasure.eraser import Aftermath, Erasure
    from reactor_memory.features.explain.explainer import Explainer
    from reactor_memory.features.facts.extractor import Extractor
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.facts.fold import SummaryFold
    from reactor_memory.features.facts.jobs import SummaryJob
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.features.pins.pins import Pins, PinWriter
    from reactor_memory.features.posted_summaries.posting import PostedSummaries
    from reactor_memory.features.recall.recaller import Recaller
    from reactor_memory.features.recall.segment_index import Indexer
    from reactor_memory.features.replay.replayer import Replayer
    from reactor_memory.features.responses.models import ResponseStore
    from reactor_memory.features.responses.service import ResponseStreams
    from reactor_memory.features.retention.pruner import Pruner
    from reactor_memory.features.search.work import MeaningIndexing, WordIndexing
    from reactor_memory.features.sharing.access import Access
    from reactor_memory.features.sharing.audit import Audit
    from reactor_memory.features.sharing.conversations import Conversations
    from reactor_memory.features.sharing.members import Sharing
    from reactor_memory.features.sharing.messages import Messages
    from reactor_memory.features.sharing.models import Quotas
    from reactor_memory.features.sharing.summaries import Summaries
    from reactor_memory.features.tiers.ranges import Ranges
    from reactor_memory.features.tiers.service import ProgressiveTiers
    from reactor_memory.features.tiers.writer import TierWriter


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
        _sqlite_path(store.url),
        QUERIES,
        timeout_seconds=store.timeout_seconds,
        inline_reads=store.inline_loads,
        file_mode=int(store.file_mode, 8),
    )


def sqlite_file(settings: Settings) -> Path | None:
    """The file of the database, or None if the settings name another kind of store."""
    return _sqlite_path(settings.store.url) if scheme_of(settings.store.url) == "sqlite" else None


def _sqlite_path(url: str) -> Path:
    path = unquote(url.partition("://")[2].removeprefix("/"))
    if not path or path == ":memory:":
        raise ConfigurationError(
            "store.url", "names no file: write sqlite:///file.db, or memory:// for a database in memory"
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


def take_last_strategy(settings: Settings) -> Strategy:
    return TakeLast()


def no_redactor(settings: Settings) -> Redactor:
    from reactor_memory.features.redaction import unredacted

    return unredacted


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
            "extractive": imported("reactor_memory.wiring.facts:extractive_summarizer"),
            "gemini": imported("reactor_memory.wiring.facts:gemini_summarizer"),
            "openai": imported("reactor_memory.wiring.facts:openai_summarizer"),
        },
        "chat_model": {
            "auto": imported("reactor_memory.wiring.chat:automatic_chat_model"),
            "echo": imported("reactor_memory.wiring.chat:echo_chat_model"),
            "gemini": imported("reactor_memory.wiring.chat:gemini_chat_model"),
            "openai": imported("reactor_memory.wiring.chat:openai_chat_model"),
        },
        "token_counter": {
            "tiktoken": tiktoken_counter,
            "quicktok": quicktok_counter,
            "estimate": estimate_counter,
        },
        "strategy": {
            "auto": imported("reactor_memory.wiring.facts:automatic_strategy"),
            "take_last": take_last_strategy,
            "hierarchical": imported("reactor_memory.wiring.facts:hierarchical_strategy"),
            PROGRESSIVE: imported("reactor_memory.wiring.tiers:progressive_strategy"),
        },
        "recall_index": {"none": imported("reactor_memory.wiring.recall:no_recall_index")},
        "embedder": {
            "none": imported("reactor_memory.wiring.search:no_embedder"),
            "wordllama": imported("reactor_memory.wiring.search:wordllama_embedder"),
            "gemini": imported("reactor_memory.wiring.search:gemini_embedder"),
            "openai": imported("reactor_memory.wiring.search:openai_embedder"),
        },
        "redactor": {"none": no_redactor},
        "memory_management": {
            NOOP: imported("reactor_memory.wiring.chat_memory:noop_memory_management"),
            SUMMARIZING: imported("reactor_memory.wiring.chat_memory:summarizing_memory_management"),
        },
        "stream_store": {"redis": imported("reactor_memory.wiring.responses:redis_stream_store")},
        "clock": {"system": system_clock},
    },
)


# -- how a part is selected -------------------------------------------------------------------------------------------


def conditions_of(settings: Settings) -> ConditionReport:
    """What is available under these settings, and why."""
    return evaluate([OWN_PARTS, *discover()], settings)


def database_of(report: ConditionReport, url: str, settings: Settings) -> Database:
    """The database that the address of the store names; none if that is a plug-in's store."""
    scheme = scheme_of(url)
    if scheme in report.factories["message_store"]:
        return AbsentDatabase(scheme)
    return selected(report, "database", scheme, "store.url", settings)


def message_store_of(
    report: ConditionReport, url: str, database: Database, forget_in: int | None, settings: Settings
) -> MessageStore:
    """A plug-in's store of the log for this scheme, else the log in the database."""
    if scheme_of(url) in report.factories["message_store"]:
        return selected(report, "message_store", scheme_of(url), "store.url", settings)
    return SqlMessageStore(database, forget_in=forget_in)


def plugged_summary_store(report: ConditionReport, settings: Settings) -> SummaryStore:
    """What a plug-in supplies beside its store of the log."""
    return selected(report, "summary_store", scheme_of(settings.store.url), "store.url", settings)


STORE_INDEX = "store"
"""The name, among recall indexes, of the one in the database of the log; a store that is none is searched directly."""


def where_index_is(report: ConditionReport, settings: Settings) -> str:
    name = canonical_name(settings.context.recall_index)
    if name != STORE_INDEX or STORE_INDEX in report.factories["recall_index"]:
        return "elsewhere"
    return "database" if is_in_database(report, settings) == "on" else "nowhere"


def recall_index_of(where: str, database: Database, report: ConditionReport, settings: Settings) -> RecallIndex:
    if where == "elsewhere":
        return named_by(report, "recall_index", "context.recall_index", settings)
    from reactor_memory.features.recall.database_index import NoRecallIndex, SqlRecallIndex

    return SqlRecallIndex(database) if where == "database" else NoRecallIndex()


IN_DATABASE = "database"
"""The name, among backends of streams, of the database of the log; a store that is none streams nothing."""


def where_responses_are(report: ConditionReport, settings: Settings) -> str:
    name = canonical_name(settings.streams.backend)
    if name == "none":
        return "nowhere"
    if name != IN_DATABASE or IN_DATABASE in report.factories["stream_store"]:
        return "elsewhere"
    return "database" if is_in_database(report, settings) == "on" else "nowhere"


def response_store_of(
    where: str, database: Database, report: ConditionReport, settings: Settings
) -> ResponseStore | None:
    if where == "elsewhere":
        return named_by(report, "stream_store", "streams.backend", settings)
    if where == "nowhere":
        return None
    from reactor_memory.features.responses.database_store import SqlResponseStore

    return SqlResponseStore(database)


def kept_elsewhere_of(
    summaries: SummaryStore,
    in_database: str,
    index: Callable[[], RecallIndex],
    where_index: str,
    responses: Callable[[], ResponseStore | None],
    where_responses: str,
    refold: LedgerFold,
    clock: Clock,
) -> tuple[KeptElsewhere, ...]:
    """What follows when messages of the log go, because it is not in its database."""
    if in_database == "on" and "elsewhere" not in (where_index, where_responses):
        return ()
    from reactor_memory.features.erasure.kept_elsewhere import IndexElsewhere, ResponsesElsewhere, SummariesElsewhere

    parts: list[KeptElsewhere] = []
    if in_database == "off":
        parts.append(SummariesElsewhere(summaries, refold=refold, clock=clock))
    if where_index == "elsewhere":
        parts.append(IndexElsewhere(index()))
    if where_responses == "elsewhere" and (store := responses()) is not None:
        parts.append(ResponsesElsewhere(store))
    return tuple(parts)


def refold_of(fold: Callable[[], SummaryFold]) -> LedgerFold:
    """The fold of a whole ledger, made when something has to be folded."""
    return lambda ledger: fold().whole(ledger)


def forget_in_of(elsewhere: Sequence[KeptElsewhere], in_database: str, settings: Settings) -> int | None:
    """In how many microseconds anybody may do what a deletion leaves to do elsewhere: not while the process may live
    that began it. None where there is nothing to do, or no database to note it in.
    """
    return microseconds(settings.background.lease_seconds) if elsewhere and in_database == "on" else None


def posted_block_of(
    in_database: str, database: Database, counter: MessageCounter
) -> Callable[[Draft, Session], Awaitable[Draft]] | None:
    """What adds posted summaries to drafts. None without a database, where nothing can be posted."""

    async def add_to(draft: Draft, session: Session) -> Draft:
        from reactor_memory.features.posted_summaries.block import PostedBlock

        return await PostedBlock(database, count=counter.of_text).add_to(draft, session)

    return add_to if in_database == "on" else None


def is_given(value: object) -> bool:
    return value is not None


def quotas_of(settings: Settings) -> Quotas:
    from reactor_memory.features.sharing.models import Quotas

    asked = settings.quotas
    return Quotas(
        max_conversations=asked.max_conversations,
        max_forks=asked.max_forks,
        max_members=asked.max_members,
        max_stored_bytes=asked.max_stored_bytes,
    )


def is_indexing(settings: Settings, in_database: str) -> bool:
    """Whether this process makes messages searchable."""
    if settings.search.enabled and in_database == "off":
        raise ConfigurationError(
            "search.enabled", "needs a database: let store.url begin with sqlite://, postgresql:// or memory://"
        )
    return settings.search.enabled and settings.background.enabled


def context_source_of(
    message_store: MessageStore,
    summary_store: SummaryStore,
    in_database: str,
    strategy: Strategy,
    needed_database: Callable[[], Database],
) -> ContextSource:
    """A database answers a load in one round trip; two stores are joined. A strategy that says so by `reads_ranges`
    gets summaries of ranges, too, for one round trip more.
    """
    source = message_store if in_database == "on" else JoinedContextSource(message_store, summary_store)
    if not getattr(strategy, "reads_ranges", False):
        return source
    from reactor_memory.features.tiers.strategy import RangedContextSource

    return RangedContextSource(source, needed_database())


# -- values out of the settings ---------------------------------------------------------------------------------------


def grows_tiers(settings: Settings) -> bool:
    """Whether tiers grow by themselves."""
    tiers = settings.tiers
    return tiers.enabled and tiers.auto_summarize and settings.history.strategy == PROGRESSIVE


def loading_options(settings: Settings) -> LoadingOptions:
    limits = context_limits(settings)
    return LoadingOptions(
        limits=limits,
        window_growth=settings.context.window_growth,
        lazy_timeout_seconds=settings.summary.lazy_timeout_seconds,
        settings_fingerprint=settings_fingerprint(settings),
    )


LAYOUT_FORM = 3
"""How layouts are stored. One of another form is not read, and made again."""


def fingerprint_of(limits: ContextLimits, settings: Settings) -> str:
    """Names everything that decides what a layout looks like: a layout made under other settings is not used."""
    window, tokens = settings.context.window_growth, settings.tokens
    deciding = (LAYOUT_FORM, settings.history.strategy, limits, window, tokens.encoding, tokens.counter)
    return hashlib.blake2b(msgspec.json.encode(deciding), digest_size=8).hexdigest()


def settings_fingerprint(settings: Settings) -> str:
    return fingerprint_of(context_limits(settings), settings)


def records_loads(settings: Settings) -> str:
    return on_or_off(settings.context.record != "off")


def manager_options(settings: Settings) -> ManagerOptions:
    return ManagerOptions(
        timeout_seconds=settings.store.timeout_seconds,
        limits=message_limits(settings),
        delete_grace_days=settings.store.delete_grace_days,
        max_fork_depth=settings.store.max_fork_depth,
    )


def batches_of(counter: MessageCounter, clock: Clock, settings: Settings) -> BatchMaker:
    return BatchMaker(
        counter=counter,
        clock=clock,
        limits=message_limits(settings),
        work_every=settings.summary.segment_message_count,
    )


def work_options(settings: Settings) -> WorkOptions:
    background = settings.background
    return WorkOptions(
        max_attempts=background.max_attempts,
        backoff_seconds=background.backoff_seconds,
        max_backoff_seconds=background.max_backoff_seconds,
        close_grace_seconds=background.close_grace_seconds,
        lease_seconds=background.lease_seconds,
        poll_seconds=background.poll_seconds,
        enabled=background.enabled,
    )


def chat_summarizer_kind(settings: Settings) -> Literal["usual", "own"]:
    """Whether the chat memory shares the summarizer of the section `summary`, its breaker included."""
    return "usual" if settings.chat_memory.summarizer == CONVERSATION_SUMMARY else "own"


def purges(settings: Settings) -> bool:
    """Whether what is deleted goes at once."""
    return not settings.store.delete_grace_days


def new_session_id() -> str:
    return str(uuid4())


# -- parts and the settings that they need -----------------------------------------------------------------------------


def message_counter_of(counter: TokenCounter, settings: Settings) -> MessageCounter:
    return MessageCounter(counter, media_part_tokens=settings.tokens.media_part_tokens)


def work_kinds(
    settings: Settings,
    *,
    in_database: str,
    summaries: SummaryStore,
    messages: MessageStore,
    clock: Clock,
    job: Callable[[], SummaryJob],
    tiers: Callable[[], ProgressiveTiers],
    index: Callable[[], Sequence[WordIndexing | MeaningIndexing]],
    aftermath: Callable[[], Aftermath],
    database: Database,
) -> Iterator[Kind]:
    """The kinds of background work that these settings ask for."""
    background = settings.background
    usual = partial(Kind, concurrency=background.max_concurrent_sessions)
    swept = partial(usual, every_seconds=settings.search.sweep_seconds)
    if settings.summary.enabled:
        from reactor_memory.features.facts.jobs import covered_in

        trigger = settings.summary.trigger_message_count
        yield usual(
            name=SUMMARIZE,
            step=job().step,
            reached=covered_in(summaries),
            wants=lambda _, last_seq: last_seq > trigger,
        )
    if grows_tiers(settings):
        from reactor_memory.features.tiers.background import TIERS, TierWork

        work = TierWork(tiers(), database=database)
        yield swept(name=TIERS, step=work.step, find=work.find, wants=work.wants, forget=work.forget)
    if is_indexing(settings, in_database):
        searching = partial(swept, concurrency=settings.search.max_concurrent_conversations, parks=False)
        for each in index():
            yield searching(name=each.kind, step=each.step, find=each.find, wants=lambda _, last_seq: True)
    if in_database == "on":
        yield usual(name=ERASE, step=lambda lease: aftermath().go_on_with_messages(lease), parks=False)
        yield usual(name=FORGET, step=lambda lease: aftermath().go_on_with_session(lease), parks=False)
        yield usual(name=ERASE_USER, step=lambda lease: aftermath().go_on_with_group(lease), parks=False)
    if "delete_grace_days" in settings.store.model_fields_set:
        from reactor_memory.features.retention.purge_work import PURGE, Purging

        purging = Purging(messages, clock=clock, grace_seconds=settings.store.delete_grace_days * 86_400.0)
        yield usual(
            name=PURGE, step=purging.step, find=purging.find, every_seconds=background.poll_seconds, is_leased=False
        )


def background_work_of(
    settings: Settings,
    breaker: CircuitBreaker,
    clock: Clock,
    random: Callable[[], float],
    summaries: SummaryStore,
    **parts: Any,
) -> WorkEngine:
    return WorkEngine(
        work_kinds(settings, clock=clock, summaries=summaries, **parts),
        leases=summaries,
        breaker=breaker,
        clock=clock,
        random=random,
        options=work_options(settings),
    )


# -- the graph --------------------------------------------------------------------------------------------------------


class Container(containers.DeclarativeContainer):
    """Every part of the library, in the order in which data flows. Override any of them before it is first used.

    A container is a copy of all providers, at some 50 us each. So a provider stands for a part with a name and nothing
    smaller: what a part needs of the settings is taken out of them where the part is made.
    """

    auto_load_config = False  # there is no provider of a configuration to look for

    settings = providers.Dependency(instance_of=Settings)
    conditions = providers.Singleton(conditions_of, settings)

    clock = providers.Singleton(named_by, conditions, "clock", "clock", settings)
    random = providers.Object(random.SystemRandom().random)

    token_counter = providers.Singleton(named_by, conditions, "token_counter", "tokens.counter", settings)
    message_counter = providers.Singleton(message_counter_of, token_counter, settings)

    database = providers.Singleton(database_of, conditions, settings.provided.store.url, settings)
    in_database = providers.Callable(is_in_database, conditions, settings)
    needed_database = providers.Selector(
        in_database, on=database, off=providers.Callable(refuse_without_database, settings)
    )
    summary_store = providers.Selector(
        in_database,
        on=providers.Singleton(imported("reactor_memory.features.facts.database_store:SqlSummaryStore"), database),
        off=providers.Singleton(plugged_summary_store, conditions, settings),
    )
    amendments = providers.Selector(
        in_database,
        on=providers.Singleton(imported("reactor_memory.features.facts.amendments:SqlAmendments"), database),
        off=providers.Singleton(imported("reactor_memory.features.facts.amendments:NoAmendments")),
    )
    where_index_is = providers.Callable(where_index_is, conditions, settings)
    recall_index = providers.Singleton(recall_index_of, where_index_is, database, conditions, settings)

    strategy = providers.Singleton(named_by, conditions, "strategy", "history.strategy", settings)

    redactor = providers.Singleton(named_by, conditions, "redactor", "redactor", settings)
    fold = providers.Singleton(imported("reactor_memory.wiring.facts:fold_of"), message_counter, settings)
    refold = providers.Singleton(refold_of, fold.provider)
    where_responses_are = providers.Callable(where_responses_are, conditions, settings)
    response_store = providers.Singleton(response_store_of, where_responses_are, database, conditions, settings)
    kept_elsewhere = providers.Callable(
        kept_elsewhere_of,
        summary_store,
        in_database,
        recall_index.provider,
        where_index_is,
        response_store.provider,
        where_responses_are,
        refold,
        clock,
    )
    forget_in = providers.Callable(forget_in_of, kept_elsewhere, in_database, settings)
    message_store = providers.Singleton(
        message_store_of, conditions, settings.provided.store.url, database, forget_in, settings
    )
    context_source = providers.Singleton(
        context_source_of, message_store, summary_store, in_database, strategy, needed_database.provider
    )

    summarizer = providers.Singleton(named_by, conditions, "summarizer", "summary.provider", settings)
    fallback_summarizer = providers.Singleton(imported("reactor_memory.wiring.facts:extractive_summarizer"), settings)
    chat_model = providers.Singleton(named_by, conditions, "chat_model", "chat.provider", settings)
    breaker = providers.Singleton(breaker_of, settings)
    spending_caps = providers.Singleton(
        imported("reactor_memory.wiring.facts:spending_caps_of"), database, clock, settings
    )
    provider_guard = providers.Singleton(
        imported("reactor_memory.wiring.facts:provider_guard_of"), redactor, spending_caps, breaker, settings
    )
    extractor: providers.Singleton[Extractor] = providers.Singleton(
        imported("reactor_memory.features.facts.extractor:Extractor"),
        summarizer,
        fallback=fallback_summarizer,
        guard=provider_guard,
    )
    indexer: providers.Singleton[Indexer] = providers.Singleton(
        imported("reactor_memory.features.recall.segment_index:Indexer"),
        messages=message_store,
        summaries=summary_store,
        index=recall_index,
        redactor=redactor,
    )
    job = providers.Selector(
        settings.provided.summary.mode,
        ledger=providers.Singleton(
            imported("reactor_memory.wiring.facts:ledger_job_of"),
            settings,
            messages=message_store,
            summaries=summary_store,
            amendments=amendments,
            indexer=indexer,
            extractor=extractor,
            fold=fold,
            clock=clock,
        ),
        full=providers.Singleton(
            imported("reactor_memory.wiring.facts:full_job_of"),
            settings,
            messages=message_store,
            summaries=summary_store,
            amendments=amendments,
            extractor=extractor,
            fold=fold,
            clock=clock,
        ),
    )
    condenser = providers.Singleton(imported("reactor_memory.wiring.tiers:condenser_of"), summarizer, message_counter)
    fallback_condenser = providers.Singleton(
        imported("reactor_memory.wiring.tiers:condenser_of"), fallback_summarizer, message_counter
    )
    text_forms = providers.Callable(imported("reactor_memory.wiring.tiers:tier_forms"), settings)
    tier_writer: providers.Singleton[TierWriter] = providers.Singleton(
        imported("reactor_memory.features.tiers.writer:TierWriter"),
        condenser,
        fallback=fallback_condenser,
        guard=provider_guard,
        counter=message_counter,
        forms=text_forms,
    )
    ranges: providers.Factory[Ranges] = providers.Factory(
        imported("reactor_memory.features.tiers.ranges:Ranges"),
        messages=message_store,
        database=needed_database,
        counter=message_counter,
        clock=clock,
    )
    tiers = providers.Singleton(
        imported("reactor_memory.wiring.tiers:tiers_of"), ranges.provider, tier_writer, message_store, settings
    )

    is_purging = providers.Callable(purges, settings)
    embedder = providers.Singleton(
        imported("reactor_memory.wiring.search:guarded_embedder_of"), conditions, redactor, settings
    )
    search_kinds = providers.Singleton(
        imported("reactor_memory.wiring.search:index_jobs"),
        database,
        message_store,
        embedder,
        redactor,
        clock,
        settings,
    )
    message_search = providers.Singleton(
        imported("reactor_memory.wiring.search:message_search_of"), database, embedder, clock, settings
    )
    recaller: providers.Singleton[Recaller] = providers.Singleton(
        imported("reactor_memory.features.recall.recaller:Recaller"),
        index=providers.Singleton(
            imported("reactor_memory.wiring.recall:recall_of"),
            recall_index,
            where_index_is,
            database,
            embedder.provider,
            settings,
        ),
        messages=message_store,
        summaries=summary_store,
        counter=message_counter,
        redactor=redactor,
        options=providers.Callable(imported("reactor_memory.wiring.recall:recall_options"), settings),
    )
    shown_notes = providers.Singleton(
        imported("reactor_memory.wiring.notes:shown_notes_of"), needed_database.provider, message_counter, settings
    )
    aftermath: providers.Singleton[Aftermath] = providers.Singleton(
        imported("reactor_memory.features.erasure.eraser:Aftermath"),
        database=database,
        elsewhere=kept_elsewhere,
        notes_sessions=providers.Callable(is_given, forget_in),
        clock=clock,
    )
    background_work = providers.Singleton(
        background_work_of,
        settings,
        breaker,
        clock,
        random,
        in_database=in_database,
        summaries=summary_store,
        messages=message_store,
        database=database,
        job=job.provider,
        tiers=tiers.provider,
        index=search_kinds.provider,
        aftermath=aftermath.provider,
    )
    pruner: providers.Singleton[Pruner] = providers.Singleton(
        imported("reactor_memory.features.retention.pruner:Pruner"),
        database=database,
        aftermath=aftermath,
        background=background_work,
        clock=clock,
        purge=is_purging,
        forget_in=forget_in,
    )

    context_loader = providers.Singleton(
        ContextLoader,
        source=context_source,
        messages=message_store,
        summaries=summary_store,
        background=background_work,
        strategy=strategy,
        recall=recaller.provider,
        counter=message_counter,
        options=providers.Callable(loading_options, settings),
        first=shown_notes,
        posted=providers.Callable(posted_block_of, in_database, database, message_counter),
    )
    timeout_seconds = settings.provided.store.timeout_seconds
    pin_writer: providers.Singleton[PinWriter] = providers.Singleton(
        imported("reactor_memory.features.pins.pins:PinWriter"),
        database=database,
        messages=message_store,
        summaries=summary_store,
        counter=message_counter,
        clock=clock,
        max_pins=settings.provided.context.max_pins,
        max_tokens=settings.provided.context.max_pin_tokens,
    )
    pins: providers.Singleton[Pins] = providers.Singleton(
        imported("reactor_memory.features.pins.pins:Pins"),
        database=database,
        writer=pin_writer,
        timeout_seconds=timeout_seconds,
    )
    batches = providers.Singleton(batches_of, message_counter, clock, settings)
    summary_poster: providers.Singleton[PostedSummaries] = providers.Singleton(
        imported("reactor_memory.features.posted_summaries.posting:PostedSummaries"),
        database=database,
        batches=batches,
        background=background_work,
        refold=refold,
        timeout_seconds=timeout_seconds,
    )
    conversation_manager = providers.Singleton(
        ConversationManager,
        messages=message_store,
        summaries=summary_store,
        database=database,
        aftermath=aftermath.provider,
        loader=context_loader,
        background=background_work,
        batches=batches,
        poster=summary_poster.provider,
        refold=refold,
        clock=clock,
        random=secrets.token_hex,
        options=providers.Callable(manager_options, settings),
        recorder=providers.Selector(
            providers.Callable(records_loads, settings),
            on=providers.Callable(
                imported("reactor_memory.wiring.replay:load_recorder_of"),
                needed_database,
                clock,
                message_counter,
                providers.Callable(settings_fingerprint, settings),
                settings,
            ),
            off=providers.Object(None),
        ),
        after_save=providers.Callable(
            imported("reactor_memory.wiring.agent_settings:after_save_of"), settings, in_database, database, clock
        ),
    )
    replayer: providers.Singleton[Replayer] = providers.Singleton(
        imported("reactor_memory.features.replay.replayer:Replayer"),
        manager=conversation_manager,
        database=needed_database,
        nearest=providers.Callable(imported("reactor_memory.wiring.replay:nearest_of"), settings),
        timeout_seconds=timeout_seconds,
    )
    erasure: providers.Singleton[Erasure] = providers.Singleton(
        imported("reactor_memory.features.erasure.eraser:Erasure"),
        database=database,
        messages=message_store,
        aftermath=aftermath,
        background=background_work,
        refold=refold,
        clock=clock,
        lease_seconds=settings.provided.background.lease_seconds,
        timeout_seconds=timeout_seconds,
    )
    facts: providers.Singleton[Facts] = providers.Singleton(
        imported("reactor_memory.features.facts.facts:Facts"),
        manager=conversation_manager,
        background=background_work,
        redactor=redactor,
        database=database,
        messages=message_store,
        summaries=summary_store,
        refold=refold,
        clock=clock,
        hooks=providers.List(pin_writer),
        timeout_seconds=timeout_seconds,
    )
    overview: providers.Singleton[Overview] = providers.Singleton(
        imported("reactor_memory.features.overview.overview:Overview"),
        database=needed_database,
        timeout_seconds=timeout_seconds,
    )
    explainer: providers.Singleton[Explainer] = providers.Singleton(
        imported("reactor_memory.features.explain.explainer:Explainer"),
        manager=conversation_manager,
        messages=message_store,
        summaries=summary_store,
        loader=context_loader,
        redactor=redactor,
        refold=refold,
    )

    session_directory: providers.Singleton[SessionDirectory] = providers.Singleton(
        imported("reactor_memory.features.active_sessions.directory:SessionDirectory"),
        database=needed_database,
        messages=message_store,
        clock=clock,
        new_id=new_session_id,
    )
    long_term_memory = providers.Singleton(
        imported("reactor_memory.wiring.notes:long_term_memory_of"), needed_database, clock, settings
    )
    chat_summarizer = providers.Singleton(named_by, conditions, "summarizer", "chat_memory.summarizer", settings)
    own_chat_writer: providers.Singleton[TierWriter] = providers.Singleton(
        imported("reactor_memory.features.tiers.writer:TierWriter"),
        providers.Singleton(imported("reactor_memory.wiring.tiers:condenser_of"), chat_summarizer, message_counter),
        fallback=fallback_condenser,
        guard=providers.Singleton(
            imported("reactor_memory.wiring.facts:own_guard_of"), redactor, spending_caps, settings
        ),
        counter=message_counter,
        forms=text_forms,
    )
    chat_writer = providers.Selector(
        providers.Callable(chat_summarizer_kind, settings),
        usual=tier_writer,
        own=own_chat_writer,
    )
    summarization_strategy = providers.Singleton(
        imported("reactor_memory.wiring.chat_memory:summarization_strategy_of"), ranges.provider, chat_writer, settings
    )
    memory_management = providers.Singleton(
        imported("reactor_memory.wiring.chat_memory:memory_management_of"),
        conditions,
        summarization_strategy.provider,
        settings,
    )
    chat_memory = providers.Singleton(
        imported("reactor_memory.wiring.chat_memory:chat_memory_of"),
        settings,
        manager=conversation_manager,
        erasure=erasure,
        messages=message_store,
        database=needed_database,
        strategy=memory_management,
    )

    # conversations that people share

    audit: providers.Singleton[Audit] = providers.Singleton(
        imported("reactor_memory.features.sharing.audit:Audit"), database=database, clock=clock
    )
    access: providers.Singleton[Access] = providers.Singleton(
        imported("reactor_memory.features.sharing.access:Access"), database=database, audit=audit
    )
    quotas = providers.Callable(quotas_of, settings)
    conversations: providers.Singleton[Conversations] = providers.Singleton(
        imported("reactor_memory.features.sharing.conversations:Conversations"),
        access=access,
        database=database,
        manager=conversation_manager,
        background=background_work,
        audit=audit,
        clock=clock,
        limits=providers.Callable(message_limits, settings),
        max_fork_depth=settings.provided.store.max_fork_depth,
        quotas=quotas,
        purge=is_purging,
        forget_in=forget_in,
    )
    shared_messages: providers.Singleton[Messages] = providers.Singleton(
        imported("reactor_memory.features.sharing.messages:Messages"),
        access=access,
        database=database,
        manager=conversation_manager,
        quotas=quotas,
    )
    posted_summaries: providers.Singleton[Summaries] = providers.Singleton(
        imported("reactor_memory.features.sharing.summaries:Summaries"),
        access=access,
        database=database,
        poster=summary_poster,
        quotas=quotas,
    )
    sharing: providers.Singleton[Sharing] = providers.Singleton(
        imported("reactor_memory.features.sharing.members:Sharing"),
        access=access,
        database=database,
        audit=audit,
        clock=clock,
        quotas=quotas,
    )

    response_streams: providers.Singleton[ResponseStreams] = providers.Singleton(
        imported("reactor_memory.features.responses.service:ResponseStreams"),
        access=access,
        database=database,
        backend=providers.Singleton(
            imported("reactor_memory.wiring.responses:stream_backend_of"), response_store, settings
        ),
        clock=clock,
        options=providers.Callable(imported("reactor_memory.wiring.responses:stream_options"), settings),
    )

    chat: providers.Factory[Chat] = providers.Factory(
        imported("reactor_memory.features.chat.conversation:Chat"),
        manager=conversation_manager,
        facts=facts,
        pins=pins,
        model=chat_model,
        summaries=providers.Selector(
            providers.Callable(progressive_or_not, settings),
            on=providers.Factory(
                imported("reactor_memory.features.chat.tiers:TierSummaries"),
                tiers=tiers,
                database=needed_database,
            ),
            off=providers.Factory(
                imported("reactor_memory.features.chat.summaries:HierarchicalSummaries"),
                facts=facts,
                pins=pins,
                summaries=summary_store,
                background=background_work,
                options=providers.Callable(imported("reactor_memory.wiring.chat:hierarchy_options"), settings),
            ),
        ),
        system=settings.provided.chat.system,
    )


@asynccontextmanager
async def open_container(
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
        from reactor_memory.wiring import telemetry
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
    _warm_up(container.token_counter(), opened)
    message_store, summary_store = container.message_store(), container.summary_store()
    for summarizer in _summarizers_in_use(container):
        opened.push_async_callback(summarizer.aclose)
    stores = {
        id(part): part
        for part in (
            container.database(),
            message_store,
            summary_store,
            container.recall_index() if container.where_index_is() == "elsewhere" else None,
            container.response_store() if container.where_responses_are() == "elsewhere" else None,
        )
        if part is not None
    }
    if container.settings().search.enabled and (embedder := container.embedder()) is not None:
        opened.push_async_callback(embedder.aclose)
    await _open_each(opened, stores.values())
    if not container.database().is_read_only:  # then nothing works in the background, where every claim would fail
        await _open_each(opened, (container.background_work(),))


async def _open_each(opened: AsyncExitStack, parts: Iterable[Any]) -> None:
    for part in parts:
        opened.push_async_callback(part.close)
        await part.open()


def _summarizers_in_use(container: Container) -> Iterator[Summarizer]:
    settings = container.settings()
    is_chat_summarizing = settings.chat_memory.strategy == SUMMARIZING
    is_shared = chat_summarizer_kind(settings) == "usual"
    if settings.summary.enabled or settings.history.strategy == PROGRESSIVE or (is_chat_summarizing and is_shared):
        yield container.summarizer()
    if is_chat_summarizing and not is_shared:
        yield container.chat_summarizer()


def _warm_up(counter: TokenCounter, opened: AsyncExitStack) -> None:
    """Let the tokenizer load in a thread while the stores open and the caller goes on: the first save needs it."""
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


__all__ = ["Container", "open_container"]
