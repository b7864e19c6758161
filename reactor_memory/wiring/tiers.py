"""How progressive tiers are wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import Strategy
from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.selection import PROGRESSIVE, context_limits

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, MessageStore, Summarizer
    from reactor_memory.features.tiers.classification import Level
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers, TierOptions
    from reactor_memory.features.tiers.ranges import Ranges
    from reactor_memory.features.tiers.writer import TextForms, TierWriter


CONDENSED_TOKENS, COMPRESSED_TOKENS = 1000, 500
"""A text at most."""

CHUNK_TOKENS = 8000
"""What one question holds of the conversation; longer runs take several, and one for their answers."""


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


def tier_options(settings: Settings) -> TierOptions:
    from reactor_memory.features.tiers.classification import TierSizes
    from reactor_memory.features.tiers.progressive_tiers import DISABLED, OTHER_STRATEGY, TierOptions

    tiers = settings.tiers
    disabled = "" if settings.history.strategy == PROGRESSIVE else OTHER_STRATEGY
    return TierOptions(
        sizes=TierSizes(
            recent_count=tiers.recent_count,
            condensed_count=tiers.condensed_count,
            longest_turn=context_limits(settings).longest_turn,
        ),
        auto_threshold=tiers.auto_threshold if tiers.auto_summarize else None,
        disabled=disabled if tiers.enabled else DISABLED,
    )


def tier_forms(settings: Settings) -> TextForms:
    from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED
    from reactor_memory.features.tiers.writer import TextForm, TextForms

    tiers = settings.tiers
    by_level: dict[Level, TextForm] = {
        CONDENSED: TextForm(prompt=tiers.condensed_prompt, max_tokens=CONDENSED_TOKENS),
        COMPRESSED: TextForm(prompt=tiers.compressed_prompt, max_tokens=COMPRESSED_TOKENS),
    }
    return TextForms(by_level=by_level, chunk_tokens=CHUNK_TOKENS)


def tiers_of(
    ranges: Callable[..., Ranges], writer: TierWriter, messages: MessageStore, settings: Settings
) -> ProgressiveTiers:
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers

    own = ranges(writer=writer, retention=settings.tiers.retention)
    return ProgressiveTiers(messages=messages, ranges=own, options=tier_options(settings))


def tier_writer(*args: Any, **parts: Any) -> TierWriter:
    from reactor_memory.features.tiers.writer import TierWriter

    return TierWriter(*args, **parts)


def ranges(*args: Any, **parts: Any) -> Ranges:
    from reactor_memory.features.tiers.ranges import Ranges

    return Ranges(*args, **parts)
