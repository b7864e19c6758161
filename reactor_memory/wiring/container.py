"""How the parts are put together.

The graph is synchronous and constructors do no I/O; `opening` opens what was selected and closes it in reverse. What
the library brings along is a plug-in like any other (`own_parts`), so that an installed plug-in, a setting and
``container.<part>.override(...)`` replace a part in the same way.
"""

from __future__ import annotations

import random
import secrets
from typing import Any, Self

from dependency_injector import containers, providers

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.loading import ContextLoader
from reactor_memory.core.manager import ConversationManager
from reactor_memory.features.active_sessions import wiring as active_sessions_wiring
from reactor_memory.features.archiving import wiring as archiving_wiring
from reactor_memory.features.chat import wiring as chat_wiring
from reactor_memory.features.chat_memory import wiring as chat_memory_wiring
from reactor_memory.features.erasure import wiring as erasure_wiring
from reactor_memory.features.explain import wiring as explain_wiring
from reactor_memory.features.facts import wiring as facts_wiring
from reactor_memory.features.notes import wiring as notes_wiring
from reactor_memory.features.overview import wiring as overview_wiring
from reactor_memory.features.pins import wiring as pins_wiring
from reactor_memory.features.posted_summaries import wiring as posted_summaries_wiring
from reactor_memory.features.recall import wiring as recall_wiring
from reactor_memory.features.record_store import wiring as record_store_wiring
from reactor_memory.features.replay import wiring as replay_wiring
from reactor_memory.features.retention import wiring as retention_wiring
from reactor_memory.features.search import wiring as search_wiring
from reactor_memory.features.tiers import wiring as tiers_wiring
from reactor_memory.providers import asked_models
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring import options, selection, stores, work_kinds
from reactor_memory.wiring.opened_parts import PartsContainer
from reactor_memory.wiring.recipes import recipe_of
from reactor_memory.wiring.selection import (
    asked_by,
    is_in_database,
    message_limits,
    named_by,
    refuse_without_database,
)


class Container(containers.DeclarativeContainer):
    """Every part of the library, in the order in which data flows. Override any of them before it is first used: once
    the container is open, that is refused (`PartsContainer`).

    Making a container makes all providers, which takes some 20 us each. So there are providers for named parts only.
    What a part needs of the settings is read where the part is made.
    """

    instance_type = PartsContainer
    auto_load_config = False  # there is no provider of a configuration to look for

    def __new__(cls, **parts: Any) -> Self:
        recipe = recipe_of(cls)
        if recipe is None:
            return super().__new__(cls, **parts)
        container: Any = cls.instance_type()
        container.declarative_parent = cls
        for name, provider in recipe.followed().items():
            container.set_provider(name, provider)
        container.override_providers(**parts)
        return container

    settings = providers.Dependency(instance_of=Settings)
    conditions = providers.Singleton(stores.conditions_of, settings)
    open_copy: providers.Dependency[Any] = (
        providers.Dependency()
    )  # what opens a container of other settings: `opening` hands it in

    clock = providers.Singleton(named_by, conditions, "clock", "clock", settings)
    random = providers.Object(random.SystemRandom().random)

    token_counter = providers.Singleton(named_by, conditions, "token_counter", "tokens.counter", settings)
    message_counter = providers.Singleton(MessageCounter, token_counter)

    database = providers.Singleton(stores.database_of, conditions, settings.provided.store.url, settings)
    in_database = providers.Callable(is_in_database, conditions, settings)
    needed_database = providers.Selector(
        in_database, on=database, off=providers.Callable(refuse_without_database, settings)
    )
    record_store = providers.Singleton(stores.record_store_of, conditions, settings)
    families = providers.Singleton(record_store_wiring.families_of, record_store)
    summary_store = providers.Selector(
        in_database,
        on=providers.Singleton(facts_wiring.sql_summary_store, database),
        off=providers.Singleton(stores.plugged_summary_store, conditions, families, settings),
    )
    amendments = providers.Selector(
        in_database,
        on=providers.Singleton(facts_wiring.sql_amendments, database),
        off=providers.Singleton(facts_wiring.no_amendments),
    )
    where_index_is = providers.Callable(stores.where_index_is, conditions, settings)
    recall_index = providers.Singleton(stores.recall_index_of, where_index_is, database, conditions, settings)

    context_limits = providers.Callable(selection.context_limits, settings)
    fingerprint = providers.Callable(options.settings_fingerprint, settings)
    strategy = providers.Singleton(named_by, conditions, "strategy", "history.strategy", settings)

    redactor = providers.Singleton(named_by, conditions, "redactor", "redactor", settings)
    fold = providers.Singleton(facts_wiring.fold_of, message_counter, settings)
    refold = providers.Singleton(facts_wiring.refold_of, fold.provider)
    where_responses_are = providers.Callable(stores.where_responses_are, conditions, settings)
    response_store = providers.Singleton(stores.response_store_of, where_responses_are, database, conditions, settings)
    kept_elsewhere = providers.Callable(
        erasure_wiring.kept_elsewhere_of,
        summary_store,
        in_database,
        recall_index.provider,
        where_index_is,
        response_store.provider,
        where_responses_are,
        refold,
        clock,
    )
    forget_in = providers.Callable(stores.forget_in_of, kept_elsewhere, in_database, settings)
    hot_heads = providers.Singleton(stores.hot_heads_of, in_database, database, settings)
    message_store = providers.Singleton(
        stores.message_store_of, conditions, families, database, forget_in, hot_heads, settings
    )
    context_source = providers.Singleton(
        stores.context_source_of,
        message_store,
        summary_store,
        families,
        in_database,
        strategy,
        needed_database.provider,
    )

    summarizer = providers.Singleton(asked_by, conditions, "summarizer", "summary.provider", settings)
    fallback_summarizer = providers.Singleton(facts_wiring.extractive_summarizer, settings)
    chat_model = providers.Singleton(asked_by, conditions, "chat_model", "chat.provider", settings)
    breaker = providers.Singleton(asked_models.new_breaker)
    spending_caps = providers.Singleton(facts_wiring.spending_caps_of, database, clock, settings)
    provider_guard = providers.Singleton(facts_wiring.provider_guard_of, redactor, spending_caps, breaker, settings)
    extractor = providers.Singleton(
        facts_wiring.extractor,
        summarizer,
        fallback=fallback_summarizer,
        guard=provider_guard,
    )
    indexer = providers.Singleton(
        recall_wiring.indexer,
        messages=message_store,
        summaries=summary_store,
        index=recall_index,
        redactor=redactor,
    )
    job = providers.Selector(
        settings.provided.summary.mode,
        ledger=providers.Singleton(
            facts_wiring.ledger_job_of,
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
            facts_wiring.full_job_of,
            settings,
            messages=message_store,
            summaries=summary_store,
            amendments=amendments,
            extractor=extractor,
            fold=fold,
            clock=clock,
        ),
    )
    condenser = providers.Singleton(tiers_wiring.condenser_of, summarizer, message_counter)
    fallback_condenser = providers.Singleton(tiers_wiring.condenser_of, fallback_summarizer, message_counter)
    text_forms = providers.Callable(tiers_wiring.tier_forms, settings)
    tier_writer = providers.Singleton(
        tiers_wiring.tier_writer,
        condenser,
        fallback=fallback_condenser,
        guard=provider_guard,
        counter=message_counter,
        forms=text_forms,
    )
    ranges = providers.Factory(
        tiers_wiring.ranges,
        messages=message_store,
        database=needed_database,
        counter=message_counter,
        clock=clock,
    )
    tiers = providers.Singleton(
        tiers_wiring.tiers_of, ranges.provider, tier_writer, message_store, context_limits, settings
    )

    is_purging = providers.Callable(options.purges, settings)
    embedder = providers.Singleton(
        search_wiring.guarded_embedder_of,
        providers.Callable(asked_by, conditions, "embedder", "search.embedder", settings),
        redactor,
        settings,
    )
    search_kinds = providers.Singleton(
        search_wiring.index_jobs,
        database,
        message_store,
        embedder,
        redactor,
        clock,
        settings,
    )
    message_search = providers.Singleton(search_wiring.message_search_of, database, embedder, clock, settings)
    recall_options = providers.Callable(recall_wiring.recall_options, settings)
    recaller = providers.Singleton(
        recall_wiring.recaller,
        index=providers.Singleton(
            search_wiring.recall_of,
            recall_index,
            where_index_is,
            database,
            embedder.provider,
            recall_options,
            settings,
        ),
        amendments=amendments,
        messages=message_store,
        counter=message_counter,
        redactor=redactor,
        options=recall_options,
    )
    sources = providers.Callable(
        selection.sources_of,
        providers.Singleton(pins_wiring.PinSource, settings.provided.summary.memory_role),
        providers.Singleton(notes_wiring.notes_source_of, needed_database.provider, message_counter, settings),
        providers.Singleton(posted_summaries_wiring.posted_source_of, in_database, database, message_counter),
        providers.Singleton(recall_wiring.RecallSource, recaller.provider),
        plugged=providers.Singleton(selection.plugged_sources_of, conditions, message_counter, settings),
    )
    aftermath = providers.Singleton(
        erasure_wiring.aftermath,
        database=database,
        elsewhere=kept_elsewhere,
        notes_sessions=providers.Callable(options.is_given, forget_in),
        is_in_database=providers.Callable(options.is_on, in_database),
        clock=clock,
    )
    background_work = providers.Singleton(
        work_kinds.work_engine_of,
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
    pruner = providers.Singleton(
        retention_wiring.pruner,
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
        counter=message_counter,
        options=providers.Callable(options.loading_options, settings),
        sources=sources,
        heads=hot_heads,
    )
    timeout_seconds = settings.provided.store.timeout_seconds
    pin_writer = providers.Singleton(
        pins_wiring.pin_writer,
        database=database,
        messages=message_store,
        summaries=summary_store,
        counter=message_counter,
        clock=clock,
        max_pins=settings.provided.context.max_pins,
        max_tokens=settings.provided.context.max_pin_tokens,
    )
    pins = providers.Singleton(
        pins_wiring.pins,
        database=database,
        writer=pin_writer,
        timeout_seconds=timeout_seconds,
    )
    batches = providers.Singleton(options.batches_of, message_counter, clock, conditions, settings)
    summary_poster = providers.Singleton(
        posted_summaries_wiring.posted_summaries,
        database=database,
        batches=batches,
        background=background_work,
        refold=refold,
        timeout_seconds=timeout_seconds,
    )
    archiver = providers.Singleton(
        archiving_wiring.archiver,
        database=database,
        poster=summary_poster,
        background=background_work,
        refold=refold,
        clock=clock,
        timeout_seconds=timeout_seconds,
    )
    conversation_manager = providers.Singleton(
        ConversationManager,
        messages=message_store,
        summaries=summary_store,
        database=database,
        aftermath=aftermath.provider,
        recall=recaller.provider,
        loader=context_loader,
        background=background_work,
        batches=batches,
        clock=clock,
        random=secrets.token_hex,
        options=providers.Callable(options.manager_options, settings),
        recorder=providers.Callable(
            replay_wiring.load_recorder_of,
            needed_database.provider,
            clock,
            message_counter,
            fingerprint.provider,
            settings,
        ),
        after_save=providers.Callable(overview_wiring.settings_keeper_of, settings, in_database, database, clock),
    )
    replayer = providers.Singleton(
        replay_wiring.replayer,
        manager=conversation_manager,
        database=needed_database,
        nearest=providers.Callable(replay_wiring.nearest_of, settings, open_copy),
        timeout_seconds=timeout_seconds,
    )
    erasure = providers.Singleton(
        erasure_wiring.erasure,
        database=database,
        messages=message_store,
        aftermath=aftermath,
        background=background_work,
        refold=refold,
        clock=clock,
        lease_seconds=settings.provided.background.lease_seconds,
        timeout_seconds=timeout_seconds,
    )
    facts = providers.Singleton(
        facts_wiring.facts,
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
    overview = providers.Singleton(
        overview_wiring.overview,
        database=needed_database,
        timeout_seconds=timeout_seconds,
    )
    explainer = providers.Singleton(
        explain_wiring.explainer,
        manager=conversation_manager,
        messages=message_store,
        summaries=summary_store,
        loader=context_loader,
        redactor=redactor,
        refold=refold,
        limits=providers.Callable(message_limits, settings),
    )

    session_directory = providers.Singleton(
        active_sessions_wiring.session_directory,
        database=needed_database,
        messages=message_store,
        clock=clock,
    )
    long_term_memory = providers.Singleton(notes_wiring.long_term_memory_of, needed_database, clock, settings)
    chat_summarizer = providers.Singleton(stores.chat_summarizer_of, conditions, settings)
    own_chat_writer = providers.Singleton(
        tiers_wiring.tier_writer,
        providers.Singleton(tiers_wiring.condenser_of, chat_summarizer, message_counter),
        fallback=fallback_condenser,
        guard=providers.Singleton(facts_wiring.own_guard_of, redactor, spending_caps, settings),
        counter=message_counter,
        forms=text_forms,
    )
    chat_writer = providers.Selector(
        providers.Callable(chat_memory_wiring.summarizer_kind, settings),
        usual=tier_writer,
        own=own_chat_writer,
    )
    summarization_strategy = providers.Singleton(
        chat_memory_wiring.summarization_strategy_of, ranges.provider, chat_writer, settings
    )
    memory_management = providers.Singleton(
        chat_memory_wiring.memory_management_of,
        providers.Callable(named_by, conditions, "memory_management", "chat_memory.strategy", settings),
        summarization_strategy.provider,
    )
    chat_memory = providers.Singleton(
        chat_memory_wiring.chat_memory_of,
        settings,
        manager=conversation_manager,
        erasure=erasure,
        messages=message_store,
        database=needed_database,
        strategy=memory_management,
    )

    chat = providers.Factory(
        chat_wiring.chat,
        manager=conversation_manager,
        facts=facts,
        pins=pins,
        model=chat_model,
        summaries=providers.Callable(
            chat_wiring.summaries_of,
            settings,
            database=needed_database.provider,
            tiers=tiers.provider,
            facts=facts,
            pins=pins,
            summaries=summary_store,
            background=background_work,
        ),
        system=settings.provided.chat.system,
    )
