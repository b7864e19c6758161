"""The background work that settings ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.kinds import Kind
from reactor_memory.background.worker import WorkOptions
from reactor_memory.database.database import Database
from reactor_memory.features.erasure.wiring import erasure_work
from reactor_memory.features.facts.wiring import summary_work
from reactor_memory.features.retention.wiring import purge_work
from reactor_memory.features.search.wiring import search_work
from reactor_memory.features.tiers.wiring import tier_work
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.settings.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore, SummaryStore
    from reactor_memory.features.erasure.eraser import Aftermath
    from reactor_memory.features.facts.jobs import SummaryJob
    from reactor_memory.features.search.work import MeaningIndexing, WordIndexing
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers


def work_kinds(
    settings: Settings,
    *,
    in_database: bool,
    summaries: SummaryStore,
    messages: MessageStore,
    clock: Clock,
    job: Callable[[], SummaryJob],
    tiers: Callable[[], ProgressiveTiers],
    index: Callable[[], tuple[WordIndexing | MeaningIndexing, ...]],
    aftermath: Callable[[], Aftermath],
    database: Database,
) -> Iterator[Kind | None]:
    """What each feature does behind a save, in the order in which it is asked; None where the settings ask for none."""
    yield summary_work(
        settings,
        job,
        in_database=in_database,
        summaries=summaries,
        messages=messages,
        database=database,
        clock=clock,
    )
    yield tier_work(settings, tiers, database)
    yield from search_work(settings, index, in_database=in_database)
    if in_database:
        yield from erasure_work(settings, aftermath)
    yield purge_work(settings, messages, clock)


def work_engine_of(
    settings: Settings,
    breaker: CircuitBreaker,
    clock: Clock,
    random: Callable[[], float],
    summaries: SummaryStore,
    *,
    in_database: str,
    **parts: Any,
) -> WorkEngine:
    kinds = work_kinds(settings, clock=clock, summaries=summaries, in_database=in_database == "on", **parts)
    return WorkEngine(
        (kind for kind in kinds if kind is not None),
        leases=summaries,
        breaker=breaker,
        clock=clock,
        random=random,
        options=WorkOptions(**settings.background.model_dump(exclude={"max_concurrent_sessions"})),
    )
