"""Which background work there can be under given settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from reactor_memory.background.left_work import LeftWork
from reactor_memory.errors import ConfigurationError
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, SCRUB, Ahead
from reactor_memory.wiring.selection import PROGRESSIVE, microseconds
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock, SummaryStore

LEFT = (ERASE, FORGET, ERASE_USER, SCRUB)
"""The kinds of work that a call does itself, and another process goes on with if that process ended before."""


def background_work_of(
    settings: Settings,
    in_database: str,
    summaries: SummaryStore,
    clock: Clock,
    random: Callable[[], float],
    engine: Callable[[], BackgroundWork],
) -> BackgroundWork:
    """The engine, if saves and time bring work under these settings."""
    if brings_work(settings, in_database):
        return engine()
    looks = in_database == "on" and settings.background.enabled
    return LeftWork(
        engine,
        is_due=due_in(summaries, clock, settings) if looks else None,
        poll_seconds=settings.background.poll_seconds,
        random=random,
    )


def brings_work(settings: Settings, in_database: str) -> bool:
    removes_later = "delete_grace_days" in settings.store.model_fields_set
    return is_indexing(settings, in_database) or settings.summary.enabled or grows_tiers(settings) or removes_later


def due_in(summaries: SummaryStore, clock: Clock, settings: Settings) -> Callable[[], Awaitable[bool]]:
    """Whether a process left some work that is due."""
    background = settings.background
    ahead = Ahead(
        lease_microseconds=microseconds(background.lease_seconds),
        wait_microseconds=microseconds(background.max_backoff_seconds),
    )

    async def is_due() -> bool:
        due = await summaries.due(LEFT, now=clock(), limit=1, ahead=ahead)
        return any(due.values())

    return is_due


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
