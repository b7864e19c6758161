"""What a replay costs, done by hand."""

from __future__ import annotations

import pytest

from reactor_memory.evaluation.pricing import Traffic, cost_of_summaries, cost_of_turns, prices_of
from reactor_memory.models.ledger import Usage
from reactor_memory.settings.sections import Price, PriceSettings

SMALL = Price(cached_input=0.1, input=1.0, output=4.0)
LARGE = Price(cached_input=1.0, input=10.0, output=40.0)


def test_cached_part_the_rest_and_the_answer_have_their_prices() -> None:
    traffic = Traffic(input_tokens=3_000_000, cached_tokens=2_000_000, output_tokens=500_000)
    assert cost_of_turns(traffic, SMALL) == pytest.approx(2 * 0.1 + 1 * 1.0 + 0.5 * 4.0)


def test_nothing_that_a_summarizer_reads_is_cached() -> None:
    usage = Usage(tokens_read=2_000_000, tokens_written=250_000)
    assert cost_of_summaries(usage, SMALL) == pytest.approx(2 * 1.0 + 0.25 * 4.0)


def test_no_tokens_cost_nothing() -> None:
    assert cost_of_turns(Traffic(), SMALL) == cost_of_summaries(Usage(), SMALL) == 0


def test_a_model_that_is_not_listed_costs_the_default() -> None:
    prices = PriceSettings(default=SMALL, models={"large": LARGE})
    assert prices_of(prices, summarizer_model="unheard-of") == (SMALL, SMALL)
    assert prices_of(prices, summarizer_model="large") == (SMALL, LARGE)
