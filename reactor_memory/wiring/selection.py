"""Which part a setting selects, and values out of the settings that several features need."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn

from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.sources import Source
from reactor_memory.core.validation import MessageLimits
from reactor_memory.features.tiers.wiring import is_progressive, tiered_limits
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.plugins import STORES_WITHOUT_DATABASE, ConditionReport


def selected(report: ConditionReport, plug_point: str, name: str, key: str, settings: Settings) -> Any:
    """The implementation of a plug point that the setting `key` names."""
    return report.factory(plug_point, name, key=key)(settings)


def named_by(report: ConditionReport, plug_point: str, key: str, settings: Settings) -> Any:
    """The implementation of a plug point that the setting `key` names as it stands there."""
    return selected(report, plug_point, attrgetter(key)(settings), key, settings)


def asked_by(report: ConditionReport, plug_point: str, key: str, settings: Settings) -> Any:
    """As `named_by`, where the setting may name a model of `models`, which names its provider."""
    return selected(report, plug_point, provider_of(settings, key), key, settings)


def provider_of(settings: Settings, key: str) -> str:
    return settings.model(attrgetter(key)(settings)).provider or ""


def scheme_of(url: str) -> str:
    return url.partition("://")[0]


def refuse_without_database(settings: Settings) -> NoReturn:
    """For a part that can do nothing without a database: that shows when the part is made."""
    from reactor_memory.database.absent import no_database

    raise no_database(scheme_of(settings.store.url))


def is_in_database(report: ConditionReport, settings: Settings) -> str:
    """Whether the log is in a database, with everything that is derived from it, or in a plug-in's store."""
    return on_or_off(not is_plugged(report, scheme_of(settings.store.url)))


def is_plugged(report: ConditionReport, scheme: str) -> bool:
    """Whether the scheme of an address names a plug-in's store that is no database."""
    return any(scheme in report.factories[plug_point] for plug_point in STORES_WITHOUT_DATABASE)


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
        memory_role=summary.memory_role,
    )
    return tiered_limits(limits, settings) if is_progressive(settings) else limits


def message_limits(settings: Settings) -> MessageLimits:
    return MessageLimits(**settings.limits.model_dump())


def on_or_off(enabled: bool) -> str:
    return "on" if enabled else "off"


def sources_of(*sources: Source | None, plugged: tuple[Source, ...] = ()) -> tuple[Source, ...]:
    """Those of the features that are on, in the order in which what they bring stands; then those of plug-ins."""
    return (*[source for source in sources if source is not None], *plugged)


def plugged_sources_of(report: ConditionReport, counter: MessageCounter, settings: Settings) -> tuple[Source, ...]:
    if not report.factories["source"]:
        return ()
    from reactor_memory.wiring.plugged_sources import plugged_sources

    return plugged_sources(report, counter, settings)
