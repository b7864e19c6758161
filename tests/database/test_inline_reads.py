"""Reads hold up the event loop as long as they take it little of its time: processor time, or waiting for a disk."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory.database import inline_reads
from reactor_memory.database.inline_reads import BURST_SECONDS, REST_SECONDS, SHARE, SLOW_SECONDS, InlineReads


class Thread:
    """The clock, and what the thread of the event loop has used."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.processor = 5.0
        self.blocks = 3

    def usage(self, _: object) -> Any:
        return self

    ru_stime = 0.0

    @property
    def ru_utime(self) -> float:
        return self.processor

    @property
    def ru_inblock(self) -> int:
        return self.blocks

    def read(self, reads: InlineReads, *, clock: float, processor: float = 0.0, blocks: int = 0) -> bool:
        """Whether the next one may run after one that took so much."""
        reads.began()
        self.now += clock
        self.processor += processor
        self.blocks += blocks
        reads.ended()
        return reads.may_run()


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Thread:
    thread = Thread()
    monkeypatch.setattr(inline_reads, "monotonic", lambda: thread.now)
    monkeypatch.setattr(inline_reads, "getrusage", thread.usage)
    return thread


def test_a_process_that_waits_for_its_turn_goes_on(thread: Thread) -> None:
    reads = InlineReads()
    assert all(thread.read(reads, clock=1.0, processor=SLOW_SECONDS) for _ in range(50))


def test_a_rare_slow_read_sends_none_to_the_thread(thread: Thread) -> None:
    reads = InlineReads()
    for _ in range(50):
        assert thread.read(reads, clock=0.02, processor=0.02)
        thread.now += 0.02 / SHARE


@pytest.mark.parametrize("used", [{"processor": 0.02}, {"blocks": 8}])
def test_slow_reads_in_a_row_rest_for_a_while(thread: Thread, used: dict[str, Any]) -> None:
    reads = InlineReads()
    assert thread.read(reads, clock=0.02, **used)
    assert not thread.read(reads, clock=0.02, **used)
    thread.now += REST_SECONDS - 0.1
    assert not reads.may_run()
    thread.now += 0.2
    assert reads.may_run()
    assert thread.read(reads, clock=0.02, **used)


def test_one_read_that_takes_very_long_is_enough(thread: Thread) -> None:
    assert not thread.read(InlineReads(), clock=1.0, processor=2 * BURST_SECONDS)


def test_the_clock_of_the_thread_does_where_usage_is_untold(thread: Thread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_reads, "getrusage", None)
    monkeypatch.setattr(inline_reads, "thread_time", lambda: thread.processor)
    reads = InlineReads()
    assert thread.read(reads, clock=1.0, blocks=8)
    assert not thread.read(reads, clock=1.0, processor=1.0)
