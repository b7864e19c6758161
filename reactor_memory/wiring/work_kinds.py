"""The background work that settings ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.growth_hints import GrowthHints
from reactor_memory.background.kinds import Kind
from reactor_memory.background.worker import WorkOptions
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, StoreCorruptError
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, SCRUB, SUMMARIZE
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.selection import PROGRESSIVE

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore, SummaryStore
    from reactor_memory.features.erasure.eraser import Aftermath
    from reactor_memory.features.facts.jobs import SummaryJob
    from reactor_memory.features.facts.mending import Step
    from reactor_memory.features.search.work import MeaningIndexing, WordIndexing
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers


def grows_tiers(settings: Settings) -> bool:
    """Whether tiers grow by themselves."""
    tiers = settings.tiers
    return tiers.enabled and tiers.auto_summarize and settings.history.strategy == PROGRESSIVE


def is_indexing(settings: Settings, in_database: str) -> bool:
    """Whether this process makes messages searchable."""
    if settings.search.enabled and in_database == "off":
        raise ConfigurationError(
            "search.enabled", "needs a database: let store.url begin with sqlite://, postgresql:// or memory://"
        )
    return settings.search.enabled and settings.background.enabled


INDEXED_AT_ONCE = 2
"""Conversations that are made searchable at the same time."""

SCRUB_SECONDS = 20.0
"""How long a scrub that readers hinder is put off at most."""


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
    """The kinds of background work that these settings ask for. What does it is made when there is some."""
    background = settings.background
    usual = partial(Kind, concurrency=background.max_concurrent_sessions)
    swept = partial(usual, every_seconds=settings.search.sweep_seconds)
    if settings.summary.enabled:
        trigger = settings.summary.trigger_message_count
        summarize: Step = lambda lease: job().step(lease)  # noqa: E731 what does the work is made when there is some
        if in_database == "on":
            from reactor_memory.features.facts.mending import mended

            summarize = mended(summarize, messages=messages, database=database, clock=clock)
        every = settings.summary.segment_message_count if settings.summary.mode == "ledger" else 1
        hints = GrowthHints(summarize, covered_in(summaries), trigger=trigger, every=every)
        yield usual(name=SUMMARIZE, step=hints.step, reached=hints.reached, wants=hints.wants, forget=hints.forget)
    if grows_tiers(settings):
        from reactor_memory.features.tiers.background import TIERS, TierWork

        work = TierWork(tiers(), database=database)
        yield swept(name=TIERS, step=work.step, find=work.find, wants=work.wants, forget=work.forget)
    if is_indexing(settings, in_database):
        searching = partial(swept, concurrency=INDEXED_AT_ONCE, parks=False)
        for each in index():
            yield searching(name=each.kind, step=each.step, find=each.find, wants=lambda _, last_seq: True)
    if in_database == "on":
        yield usual(name=ERASE, step=lambda lease: aftermath().go_on_with_messages(lease), parks=False)
        yield usual(name=FORGET, step=lambda lease: aftermath().go_on_with_session(lease), parks=False)
        yield usual(name=ERASE_USER, step=lambda lease: aftermath().go_on_with_group(lease), parks=False)
        yield usual(
            name=SCRUB,
            step=lambda lease: aftermath().go_on_with_files(lease),
            parks=False,
            longest_pause_seconds=SCRUB_SECONDS,
        )
    if "delete_grace_days" in settings.store.model_fields_set:
        from reactor_memory.features.retention.purge_work import PURGE, Purging

        purging = Purging(messages, clock=clock, grace_seconds=settings.store.delete_grace_days * 86_400.0)
        yield usual(
            name=PURGE, step=purging.step, find=purging.find, every_seconds=background.poll_seconds, is_leased=False
        )


def covered_in(summaries: SummaryStore) -> Callable[[str], Awaitable[int]]:
    """How far the summary of a session covers it; not at all if it cannot be read, and has to be made again."""

    async def covered(session_id: str) -> int:
        try:
            head = await summaries.get_summary_head(session_id)
        except StoreCorruptError:
            return 0
        return head.covered_seq if head else 0

    return covered


def work_engine_of(
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


def work_options(settings: Settings) -> WorkOptions:
    return WorkOptions(**settings.background.model_dump(exclude={"max_concurrent_sessions"}))
