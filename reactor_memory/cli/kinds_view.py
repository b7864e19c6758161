"""What became of each kind of probe, below the table of an evaluation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType

from reactor_memory.cli.eval_run import Result
from reactor_memory.cli.tables import table
from reactor_memory.evaluation.scores import Scores

NUMBERS = ("budget", "probes", "attributable", "survival", "stale", "evidence", "any", "all")
ALL = "all"


class _Row(NamedTuple):
    result: Result
    kind: str
    scores: Scores


def kinds_table(results: Sequence[Result]) -> RenderableType | None:
    """A row for each result and kind of probe; None if the probes are of no kind and without evidence, and nothing was
    corrected.
    """
    rows = [row for result in results for row in _rows(result)]
    if not rows:
        return None
    made = table("strategy", "kind of detail", *NUMBERS, right=NUMBERS)
    for result, kind, scores in rows:
        made.add_row(
            result.strategy,
            kind,
            "none" if result.budget is None else f"{result.budget:,}",
            f"{scores.probes:,}",
            share(scores.attributable),
            share(scores.survival),
            f"{scores.stale:,} of {scores.corrected:,}" if scores.corrected else "-",
            share(scores.evidence_recall),
            share(scores.any_gold),
            share(scores.all_gold),
        )
    return made


def _rows(result: Result) -> Iterator[_Row]:
    for kind, scores in result.by_kind.items():
        yield _Row(result, kind, scores)
    if result.by_kind or result.corrected or result.evidence_recall is not None:
        yield _Row(result, ALL, result)


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
