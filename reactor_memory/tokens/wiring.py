"""How tokens are counted under given settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter
    from reactor_memory.settings.settings import Settings


def tiktoken_counter(settings: Settings) -> TokenCounter:
    from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

    return TiktokenCounter(settings.tokens.encoding)


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
