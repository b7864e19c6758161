"""How retention is wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor_memory.background.kinds import Kind

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore
    from reactor_memory.features.retention.pruner import Pruner
    from reactor_memory.settings.settings import Settings


def pruner(**parts: Any) -> Pruner:
    from reactor_memory.features.retention.pruner import Pruner

    return Pruner(**parts)


def purge_work(settings: Settings, messages: MessageStore, clock: Clock) -> Kind | None:
    """None where nobody set a grace time for what is deleted."""
    if not settings.store.is_grace_set:
        return None
    from reactor_memory.features.retention.purge_work import PURGE, Purging

    purging = Purging(messages, clock=clock, grace_seconds=settings.store.delete_grace_days * 86_400.0)
    return Kind(
        name=PURGE,
        step=purging.step,
        find=purging.find,
        every_seconds=settings.background.poll_seconds,
        is_leased=False,
        concurrency=settings.background.max_concurrent_sessions,
    )
