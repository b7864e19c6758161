"""The results of a benchmark, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from reactor_memory.cli.tables import heading, table
from reactor_memory.evaluation.bench.results import GROWTH, Result, Run

NUMBERS = ("size", "median us", "p99 us", "raw us", "ratio", "sync us", "rows", "queries", "facts", "memory")
RATES = ("turns/s", "raw turns/s", "ratio", "p99 ms", "raw p99 ms")


def results_json(run: Run) -> bytes:
    return msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n"


def bench_view(run: Run) -> RenderableType:
    """A table of single calls, one of many sessions at once, how times grow, and what the numbers rest on."""
    calls = [result for result in run.results if result.turns_per_second is None]
    crowds = [result for result in run.results if result.turns_per_second is not None]
    views: list[RenderableType] = []
    if calls:
        views += [heading(f"{run.store}: one call after the other"), _calls(calls), Text()]
    if crowds:
        views += [heading(f"{run.store}: 32 sessions at once, a load and an append each"), _crowds(crowds), Text()]
    return Group(*views, *(Text(line) for line in _notes(run)))


def _calls(results: Iterable[Result]) -> RenderableType:
    made = table("work", *NUMBERS, right=NUMBERS)
    for result in results:
        made.add_row(
            result.work,
            f"{result.size:,}",
            *map(microseconds, (result.median_us, result.p99_us, result.raw_median_us)),
            times(result.ratio_to_raw),
            microseconds(result.sync_sqlite3_median_us),
            *map(mean, (result.rows_read, result.queries, result.facts, result.memory_tokens)),
        )
    return made


def _crowds(results: Iterable[Result]) -> RenderableType:
    made = table("strategy", "background work", *RATES, right=RATES)
    for result in results:
        made.add_row(
            result.strategy,
            background(result),
            mean(result.turns_per_second),
            mean(result.raw_turns_per_second),
            times(result.ratio_to_raw),
            milliseconds(result.p99_us),
            milliseconds(result.raw_p99_us),
        )
    return made


def _notes(run: Run) -> Iterator[str]:
    for work, ratio in run.growth.items():
        if ratio is not None:
            short, long = GROWTH[work]
            yield f"{work}: from {short:,} to {long:,} messages the median grows {ratio:.2f} times"
    if run.empty_hop_us is not None:
        yield f"a call of the driver that does nothing: {run.empty_hop_us:,.0f} us"
    filling = run.filling
    yield f"stored {filling.messages:,} messages, {filling.messages_per_second:,.0f} a second"
    if filling.summarized_messages:
        rate = f"{filling.summarized_messages_per_second:,.0f} a second"
        yield f"summarized {filling.summarized_messages:,} messages, {rate}"
    yield f"{run.date}; {', '.join(f'{key} {value}' for key, value in {**run.machine, **run.versions}.items())}"


def background(result: Result) -> str:
    """Who does the background work of a crowd."""
    if result.strategy != "hierarchical":
        return "none"
    return "this process" if result.background else "others"


def microseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value / 1000:,.1f}"


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def mean(value: float | None) -> str:
    """As few digits as say it."""
    return "-" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
