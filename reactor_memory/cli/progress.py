"""From a line on the demonstration's screen to its message: commands that work as they are printed. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from reactor_memory.core.context.report import ContextReport

KEPT_STORE = "demo.db"


def commands(report: ContextReport, *, store: str | None, shared: Sequence[str], own: Sequence[str]) -> Sequence[str]:
    """The commands for the first line of memory, and for all facts.

    `store` is where the demonstration was kept (None: nowhere, so it is made once more). `shared` are further options
    of `demo` and `context`, `own` are arguments of `demo` alone.
    """
    at = ["--store", store or KEPT_STORE]
    made_again = [] if store else [["demo", *own, *shared, *at]]
    asked = ["context", report.session_id, *shared, *at, "--why", "--seq", str(_first_source(report))]
    return _lines(*made_again, asked)


def _first_source(report: ContextReport) -> int:
    return next((line.sources[0] for line in report.lines() if line.kept and line.sources), 1)


def _lines(*commands: Sequence[str]) -> list[str]:
    return [shlex.join(["reactor-memory", *command]) for command in commands]
