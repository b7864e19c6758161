"""From messages to facts, and from facts to the lines of a memory block."""

from __future__ import annotations

import asyncio

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.micro.session import BUDGET, COUNTER, QUESTION, SEGMENT, ledger, segment, summary
from reactor_memory.features.facts.merge import fold, fold_into, refold
from reactor_memory.features.facts.quoting.continued_block import chosen_block
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer


def test_count(benchmark: BenchmarkFixture) -> None:
    """A message that is not stored yet."""
    assert benchmark(COUNTER.counted, QUESTION) > 0


def test_extract(benchmark: BenchmarkFixture) -> None:
    """A segment, in the background."""
    with asyncio.Runner() as runner:
        found = benchmark(lambda: runner.run(ExtractiveSummarizer().summarize(segment())))
    assert found.facts


def test_fold(benchmark: BenchmarkFixture) -> None:
    assert benchmark(fold, ledger().facts)


def test_refold(benchmark: BenchmarkFixture) -> None:
    made = benchmark(refold, ledger(), max_fact_tokens=8_000, max_narrative_tokens=500, count=COUNTER.of_text)
    assert made == summary()


def test_fold_into(benchmark: BenchmarkFixture) -> None:
    """The next segment: what the background work does each `SEGMENT` messages."""
    last = ledger().segments[-1]
    facts = [fact for fact in ledger().facts if fact.source_seq > last.end_seq - SEGMENT]
    made = benchmark(
        fold_into, summary(), facts, last, max_fact_tokens=8_000, max_narrative_tokens=500, count=COUNTER.of_text
    )
    assert made.version == summary().version + 1


def test_render_facts(benchmark: BenchmarkFixture) -> None:
    assert benchmark(render_facts, summary().facts(), count=COUNTER.of_text)


def test_choose(benchmark: BenchmarkFixture) -> None:
    """Which lines are shown of those that were rendered."""
    lines = render_facts(summary().facts(), count=COUNTER.of_text)
    kept = benchmark(lambda: chosen_block(lines, BUDGET // 2)).lines
    assert 0 < len(kept) < len(lines)
