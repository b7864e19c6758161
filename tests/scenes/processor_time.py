"""What tests take of the processor, told at the end of a run. Wall times say nothing on a machine that does more."""

from __future__ import annotations

import resource
from collections.abc import Generator, Iterator
from typing import Any

import pytest

FAST_SECONDS = 320
"""What `make test` may take in all: 160 seconds on two cores."""

TEST_SECONDS = 3.0
"""What one test may take that is not marked as slow, without what it shares with others."""

_TAKEN = "processor time"
_CALL = pytest.StashKey[float]()


def processor_seconds() -> float:
    """Of this process, and of those it started and waited for: a server that runs on is not among them."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    began = processor_seconds()
    try:
        return (yield)
    finally:
        item.stash[_CALL] = processor_seconds() - began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """What the test took goes with its report, from whichever process."""
    if call.when == "call" and "slow" not in item.keywords:
        item.user_properties.append((_TAKEN, item.stash.get(_CALL, 0.0)))
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [
        report for kind in terminalreporter.stats.values() for report in kind if isinstance(report, pytest.TestReport)
    ]
    taken = {
        report.nodeid: seconds
        for report in reports
        if report.when == "call"
        for name, seconds in report.user_properties
        if name == _TAKEN
    }
    if len(reports) > 1:
        terminalreporter.section("processor time")
        for line in told(taken, processor_seconds()):
            terminalreporter.write_line(line)


def told(taken: dict[str, float], in_all: float) -> Iterator[str]:
    """`taken` by each fast test, `in_all` by the run: what a person reads of it."""
    yield f"{in_all:.0f} s of processor time in all, servers not counted (all fast tests: {FAST_SECONDS} s at most)"
    for name, seconds in sorted(taken.items(), key=lambda each: -each[1]):
        if seconds > TEST_SECONDS:
            yield f"{seconds:.1f} s {name}: make it cheaper, or mark it slow (CONTRIBUTING.md)"
