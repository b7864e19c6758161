"""What a replay would cost if models were paid for it. Pure."""

from __future__ import annotations

from reactor_memory.models import Value
from reactor_memory.models.ledger import Usage
from reactor_memory.settings.sections import Price, PriceSettings

PER = 1_000_000
"""Prices are for so many tokens."""


class Traffic(Value, frozen=True, kw_only=True):
    """Tokens between an agent and its model: one call a turn.

    `cached_tokens` of the `input_tokens` are the beginning that the call of the turn before had too. `output_tokens`
    are what the assistant wrote.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


def cost_of_turns(traffic: Traffic, price: Price) -> float:
    fresh = traffic.input_tokens - traffic.cached_tokens
    return (
        traffic.cached_tokens * price.cached_input + fresh * price.input + traffic.output_tokens * price.output
    ) / PER


def cost_of_summaries(usage: Usage, price: Price) -> float:
    """Nothing of what a summarizer reads counts as cached: its instructions and the known facts stand before it."""
    return (usage.tokens_read * price.input + usage.tokens_written * price.output) / PER


def prices_of(prices: PriceSettings, *, summarizer_model: str) -> tuple[Price, Price]:
    """The prices of the model that reads contexts and of the one that summarizes."""
    return prices.default, prices.of(summarizer_model)
