"""From a draft, or a list of messages, to a context with its report."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.micro.session import (
    BUDGET,
    COUNTER,
    HIERARCHICAL,
    LIMITS,
    LONG,
    QUESTION,
    SHORT,
    plan_request,
    prose,
)
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.report import digest
from reactor_memory.core.context.verification import verify


@pytest.mark.parametrize("size", [100, 1_000, 10_000])
def test_trim(benchmark: BenchmarkFixture, size: int) -> None:
    """Flat: what is dropped costs nothing."""
    messages = prose(size)
    context = benchmark(trim, messages, BUDGET, count=COUNTER.of, count_text=COUNTER.of_text, tokenizer=COUNTER.name)
    assert verify(context, count=COUNTER.of) == []
    assert context.messages[-1] == messages[-1]


def test_assemble_take_last(benchmark: BenchmarkFixture) -> None:
    draft = Draft(strategy="take_last", session_id="s", window=prose(1_000)[-20:], unread=((1, 980),))
    context = benchmark(
        assemble, draft, [QUESTION], LIMITS, count=COUNTER.of, count_text=COUNTER.of_text, tokenizer=COUNTER.name
    )
    assert context.report.offered == {"window": 20, "current": 1}


def test_assemble_hierarchical(benchmark: BenchmarkFixture) -> None:
    """Facts and window, as at every turn between two evictions."""
    draft = HIERARCHICAL(plan_request(SHORT)).draft
    context = benchmark(
        assemble, draft, [QUESTION], LIMITS, count=COUNTER.of, count_text=COUNTER.of_text, tokenizer=COUNTER.name
    )
    assert {"facts", "window", "current"} == set(context.report.parts)


def test_digest(benchmark: BenchmarkFixture) -> None:
    """The part of a context that can be no faster than SHA-256."""
    messages = trim(prose(1_000), BUDGET, count=COUNTER.of, count_text=COUNTER.of_text).messages
    assert len(benchmark(digest, messages)) == 64


def test_evict(benchmark: BenchmarkFixture) -> None:
    """The load by which the window moves: facts are rendered, and lines chosen."""
    plan = benchmark(HIERARCHICAL, plan_request(LONG))
    assert plan.layout is not None
    assert plan.layout.fact_lines
