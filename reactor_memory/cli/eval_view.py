"""The results of an evaluation, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from reactor_memory.cli.eval_run import Result
from reactor_memory.cli.kinds_view import kinds_table, share
from reactor_memory.cli.tables import count, heading, table
from reactor_memory.evaluation.requirements import Requirement
from reactor_memory.text.printable import printable

NUMBERS = ("budget", "attributable", "survival", "reading", "reuse", "broken", "cost", "p50 ms", "p99 ms")
READ_NUMBERS = ("budget", "probes", "legible", "fill", "told", "junk", "weighted")


def results_json(results: Sequence[Result]) -> bytes:
    return msgspec.json.format(msgspec.json.encode({"results": results}), indent=2) + b"\n"


def evaluation_view(results: Sequence[Result]) -> RenderableType:
    """A table for each way in which a file was replayed, then what rules were broken."""
    views: list[RenderableType] = []
    for title, grouped in groupby(results, _title):
        group = list(grouped)
        views += [heading(title), _table(group), Text(), _read_table(group), Text()]
        if kinds := kinds_table(group):
            views += [kinds, Text()]
    problems = dict.fromkeys(problem for result in results for problem in result.problems)
    views += [Text(f"broken: {problem}", style="red") for problem in problems]
    if behind := sum(result.behind for result in results):
        views.append(Text(f"{count(behind, 'context')} had a memory that was behind: summarizing failed", style="red"))
    if results and all(result.deterministic for result in results):
        views.append(Text("replayed twice, once with delays: the same contexts"))
    return Group(*views)


def shortcomings(results: Sequence[Result], requirements: Iterable[Requirement]) -> Iterator[str]:
    """The rows that were not the same twice, and the bounds that were not kept, each in a line."""
    for result in results:
        if result.deterministic is False:
            yield f"not deterministic: {_row(result)}"
    for requirement in requirements:
        concerned = [result for result in results if requirement.concerns(result)]
        if not concerned:
            yield f"required: {requirement}; there is no such row"
        for result in concerned:
            if not requirement.is_met(result):
                yield f"required: {requirement}; {_row(result)} has {getattr(result, requirement.measure)}"


def cost(value: float) -> str:
    """Three digits that say something, however small."""
    return f"{value:,.2f}" if value >= 10 else f"{value:#.3g}"


def milliseconds(microseconds: int) -> str:
    """Three digits: what takes seconds would make the table too wide."""
    value = microseconds / 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _row(result: Result) -> str:
    budget = "no budget" if result.budget is None else f"{result.budget:,} tokens"
    return f"{_title(result)} · {result.strategy} · {budget}"


def _title(result: Result) -> str:
    return f"{printable(result.file)} · {result.variant} · questions {result.questions}"


def _table(results: Iterable[Result]) -> RenderableType:
    made = table("strategy", *NUMBERS, right=NUMBERS)
    for result in results:
        made.add_row(
            result.strategy,
            "none" if result.budget is None else f"{result.budget:,}",
            share(result.attributable),
            share(result.survival),
            share(result.read_amplification),
            share(result.prefix_reuse),
            f"{result.violations:,}",
            cost(result.cost),
            milliseconds(result.p50_us),
            milliseconds(result.p99_us),
        )
    return made


def _read_table(results: Iterable[Result]) -> RenderableType:
    """How the lines read that were shown, and how much of the room they use."""
    made = table("strategy", *READ_NUMBERS, right=READ_NUMBERS)
    for result in results:
        shares = (result.legible, result.fill, result.told, result.junk, result.prefix_reuse_weighted)
        budget = "none" if result.budget is None else f"{result.budget:,}"
        made.add_row(result.strategy, budget, f"{result.probes:,}", *map(share, shares))
    return made
