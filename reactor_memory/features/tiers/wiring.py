"""How progressive tiers are wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from reactor_memory.background.kinds import Kind
from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import Strategy
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, ContextSource, MessageStore, Summarizer
    from reactor_memory.features.tiers.classification import Level
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers, TierOptions
    from reactor_memory.features.tiers.ranges import Ranges
    from reactor_memory.features.tiers.writer import TextForms, TierWriter
    from reactor_memory.settings.settings import Settings

PROGRESSIVE = "progressive"
"""The name of the strategy."""

CONDENSED_PROMPT = """\
Summarize the conversation below.
Keep what was talked about, what was decided or concluded and why, what is still open, and every name, number and date
that a later turn may need. Write few sentences, each with something in it.
"""

COMPRESSED_PROMPT = """\
Summarize the conversation below as long-term memory, as briefly as you can.
Keep only the main topics, the facts and decisions that must not be forgotten, and what is needed to understand them.
"""

CONDENSED_TOKENS, COMPRESSED_TOKENS = 1000, 500
"""A text at most."""

CHUNK_TOKENS = 8000
"""What one question holds of the conversation; longer runs take several, and one for their answers."""

SWEEP_SECONDS = 30.0
"""How often to look for sessions that no hint told of."""


def is_progressive(settings: Settings) -> bool:
    return settings.history.strategy == PROGRESSIVE


def progressive_strategy(settings: Settings) -> Strategy:
    if settings.tiers.retention == "delete" and settings.summary.enabled:
        raise ConfigurationError(
            "tiers.retention",
            "delete would destroy what facts are drawn from: archive them, or set summary.enabled: false",
        )
    from reactor_memory.features.tiers.strategy import Placement, Progressive

    return Progressive(Placement())


def condenser_of(summarizer: Summarizer, counter: MessageCounter) -> Condenser:
    """The summarizer's own, else one that makes texts of what the summarizer extracts."""
    if summarizer.condenser is not None:
        return summarizer.condenser
    from reactor_memory.features.tiers.condenser import ExtractionCondenser

    return ExtractionCondenser(summarizer, count=counter.of_text)


def tier_options(longest_turn: int, settings: Settings) -> TierOptions:
    from reactor_memory.features.tiers.classification import TierSizes
    from reactor_memory.features.tiers.progressive_tiers import DISABLED, OTHER_STRATEGY, TierOptions

    tiers = settings.tiers
    disabled = "" if is_progressive(settings) else OTHER_STRATEGY
    return TierOptions(
        sizes=TierSizes(
            recent_count=tiers.recent_count,
            condensed_count=tiers.condensed_count,
            longest_turn=longest_turn,
        ),
        auto_threshold=tiers.auto_threshold if tiers.auto_summarize else None,
        disabled=disabled if tiers.enabled else DISABLED,
    )


def tier_forms(settings: Settings) -> TextForms:
    from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED
    from reactor_memory.features.tiers.writer import TextForm, TextForms

    given = settings.tiers.prompt
    by_level: dict[Level, TextForm] = {
        CONDENSED: TextForm(prompt=given or CONDENSED_PROMPT, max_tokens=CONDENSED_TOKENS),
        COMPRESSED: TextForm(prompt=given or COMPRESSED_PROMPT, max_tokens=COMPRESSED_TOKENS),
    }
    return TextForms(by_level=by_level, chunk_tokens=CHUNK_TOKENS)


def tiers_of(
    ranges: Callable[..., Ranges],
    writer: TierWriter,
    messages: MessageStore,
    limits: ContextLimits,
    settings: Settings,
) -> ProgressiveTiers:
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers

    own = ranges(writer=writer, retention=settings.tiers.retention)
    return ProgressiveTiers(messages=messages, ranges=own, options=tier_options(limits.longest_turn, settings))


def tier_writer(*args: Any, **parts: Any) -> TierWriter:
    from reactor_memory.features.tiers.writer import TierWriter

    return TierWriter(*args, **parts)


def ranges(*args: Any, **parts: Any) -> Ranges:
    from reactor_memory.features.tiers.ranges import Ranges

    return Ranges(*args, **parts)


def tiered_limits(limits: ContextLimits, settings: Settings) -> ContextLimits:
    """A load of tiers reads what may wait to be summarised, and a long turn more."""
    tiers = settings.tiers
    waiting = tiers.auto_threshold + 1 + limits.longest_turn
    return msgspec.structs.replace(
        limits, take_last_count=max(limits.take_last_count, waiting), recent_message_count=tiers.recent_count
    )


def ranged(source: ContextSource, strategy: Strategy, database: Callable[[], Database]) -> ContextSource:
    """A strategy that says so by `reads_ranges` gets summaries of ranges, too, for one round trip more."""
    if not getattr(strategy, "reads_ranges", False):
        return source
    from reactor_memory.features.tiers.strategy import RangedContextSource

    return RangedContextSource(source, database())


def tier_work(settings: Settings, tiers: Callable[[], ProgressiveTiers], database: Database) -> Kind | None:
    """None where tiers do not grow by themselves."""
    if not (settings.tiers.enabled and settings.tiers.auto_summarize and is_progressive(settings)):
        return None
    from reactor_memory.features.tiers.background import TIERS, TierWork

    work = TierWork(tiers(), database=database)
    return Kind(
        name=TIERS,
        step=work.step,
        find=work.find,
        wants=work.wants,
        forget=work.forget,
        every_seconds=SWEEP_SECONDS,
        concurrency=settings.background.max_concurrent_sessions,
    )
