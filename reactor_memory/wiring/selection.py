"""Which part a setting selects, and values out of the settings that several features need."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.validation import MessageLimits
from reactor_memory.settings.setting_values import canonical_name
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.plugins import STORES_WITHOUT_DATABASE, ConditionReport

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter


def tiktoken_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

    return TiktokenCounter(settings.tokens.encoding, cache_dir=settings.tokens.cache_dir)


def quicktok_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.quicktok_counter import QuicktokCounter

    return QuicktokCounter(settings.tokens.encoding)


def estimate_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.estimate import EstimateCounter

    return EstimateCounter()


def counter_of(settings: Settings) -> TokenCounter:
    """The counter that the settings select among those of the library, for parts that count before they send."""
    own = {"tiktoken": tiktoken_counter, "quicktok": quicktok_counter}
    return own.get(settings.tokens.counter, estimate_counter)(settings)


PROGRESSIVE = "progressive"


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
    return tiered_limits(limits, settings) if settings.history.strategy == PROGRESSIVE else limits


def tiered_limits(limits: ContextLimits, settings: Settings) -> ContextLimits:
    """A load of tiers reads what may wait to be summarised, and a long turn more."""
    tiers = settings.tiers
    waiting = tiers.auto_threshold + 1 + limits.longest_turn
    return msgspec.structs.replace(
        limits, take_last_count=max(limits.take_last_count, waiting), recent_message_count=tiers.recent_count
    )


def is_progressive(settings: Settings) -> bool:
    return canonical_name(settings.history.strategy) == PROGRESSIVE


def message_limits(settings: Settings) -> MessageLimits:
    return MessageLimits(**settings.limits.model_dump())


def microseconds(seconds: float) -> int:
    return int(seconds * 1e6)


def on_or_off(enabled: bool) -> str:
    return "on" if enabled else "off"
