"""Runs an evaluation: every file with every strategy and variant, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import msgspec

from reactor_memory.cli.context_view import context_value
from reactor_memory.cli.invocation import Invocation
from reactor_memory.cli.output import Output
from reactor_memory.cli.terminal import progress
from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation import rolling
from reactor_memory.evaluation.delays import delay
from reactor_memory.evaluation.metering import meter
from reactor_memory.evaluation.patience import wait_for_recall
from reactor_memory.evaluation.session_files import Read
from reactor_memory.evaluation.session_replay import FinalContext, Outcome, Questions, replay_sessions
from reactor_memory.evaluation.sessions import VARIANTS, LabelledSession
from reactor_memory.evaluation.strategies import replays_of, sections_of
from reactor_memory.imports.importer import Advance, check_line
from reactor_memory.models import Value
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container
from reactor_memory.wiring.options import manager_options

SEED = 7
"""Of the delays."""

OWNER = "eval"
"""Whose the sessions are if nobody says: what has no owner is found by its words alone."""

INSTALLED: Mapping[str, Callable[[Container], None]] = {"rolling": rolling.install}
"""Strategies that bring parts of their own."""


class Result(Outcome, frozen=True, kw_only=True):
    """A row of the results. `deterministic`: whether a second replay, with delays, gave the same contexts; None: there
    was none.
    """

    file: str
    strategy: str
    variant: str
    deterministic: bool | None = None


class Plan(Value, frozen=True, kw_only=True):
    """What to measure. `read` gives the sessions of a file; `sessions`: only so many of each. `determinism`: replay
    everything twice.
    """

    files: tuple[Path, ...]
    read: Read
    strategies: tuple[str, ...]
    variants: tuple[str, ...]
    budgets: tuple[int, ...]
    questions: tuple[Questions, ...]
    sessions: int | None = None
    determinism: bool = False

    def runs(self) -> Iterator[Run]:
        for file, variant, questions, strategy in product(self.files, self.variants, self.questions, self.strategies):
            for budgets in replays_of(strategy, self.budgets):
                yield Run(file, variant, questions, strategy, budgets)


class Run(Value, frozen=True):
    """One file, replayed in one way."""

    file: Path
    variant: str
    questions: Questions
    strategy: str
    budgets: tuple[int | None, ...]

    def result(self, outcome: Outcome, again: Outcome | None) -> Result:
        return Result(
            file=self.file_name,
            strategy=self.strategy,
            variant=self.variant,
            deterministic=None if again is None else again.digest == outcome.digest,
            **msgspec.structs.asdict(outcome),
        )

    @property
    def file_name(self) -> str:
        """As it was given; what no encoding can write, as question marks."""
        return str(self.file).encode(errors="replace").decode()

    @property
    def title(self) -> str:
        budget = f" {self.budgets[0]}" if len(self.budgets) == 1 and self.budgets[0] else ""
        return f"{self.file.name} {self.variant} {self.questions} {self.strategy}{budget}"

    def configure(self, container: Container, *, delayed: bool) -> None:
        """Make a container ready for this run."""
        if self.strategy in INSTALLED:
            INSTALLED[self.strategy](container)
        if delayed:
            delay(container, SEED)
        meter(container)
        wait_for_recall(container)

    def context_line(self, final: FinalContext) -> bytes:
        value = {
            "file": self.file_name,
            "session": final.session,
            "strategy": self.strategy,
            "variant": self.variant,
            **final.case._asdict(),
            "probe": final.probe,
            "messages": context_value(final.context)["messages"],
        }
        return msgspec.json.encode(value) + b"\n"


async def evaluate(invocation: Invocation, plan: Plan, contexts: Output | None) -> list[Result]:
    """All results. Final contexts go to `contexts`, one a line, as they come.

    Nothing is stored before every file was checked.
    """
    settings = invocation.settings()
    sizes = {file: _check(file, plan, settings) for file in plan.files}
    results: list[Result] = []
    with progress() as bar:
        for run in plan.runs():
            task = bar.add_task(run.title, total=sizes[run.file] * (1 + plan.determinism))
            results += await _Replays(invocation, plan, run, partial(bar.advance, task)).results(contexts)
            bar.update(task, visible=False)
    return results


class _Replays(NamedTuple):
    """What one run takes."""

    invocation: Invocation
    plan: Plan
    run: Run
    advance: Advance

    async def results(self, contexts: Output | None) -> list[Result]:
        def keep(final: FinalContext) -> None:
            if contexts is not None:
                contexts.write(self.run.context_line(final))

        first = await self._replay(keep, delayed=False)
        again = await self._replay(lambda _: None, delayed=True) if self.plan.determinism else [None] * len(first)
        return list(map(self.run.result, first, again))

    async def _replay(self, keep: Callable[[FinalContext], None], *, delayed: bool) -> list[Outcome]:
        run = self.run
        settings = _settings(self.invocation, run)
        async with open_container(settings, configure=partial(run.configure, delayed=delayed)) as container:
            return await replay_sessions(
                container,
                map(VARIANTS[run.variant], _sessions(run.file, self.plan)),
                run.budgets,
                run.questions,
                user_id=self.invocation.user_id or OWNER,
                advance=self.advance,
                keep=keep,
            )


def _settings(invocation: Invocation, run: Run) -> Settings:
    knows_meanings = invocation.settings().search.embedder != "none"
    search = {"search": {"enabled": True}} if knows_meanings else {}
    return invocation.settings(store={"delete_grace_days": 0}, **search, **sections_of(run.strategy, run.budgets))


def _check(file: Path, plan: Plan, settings: Settings) -> int:
    """How many messages are replayed. Raises `ImportFormatError` for what cannot be stored, or is no probe."""
    limits, seen, size = manager_options(settings).limits, dict[str, str](), 0
    for line in islice(plan.read(file), plan.sessions):
        size += check_line(line, limits, seen)
        line.probes()
    if not size:
        raise ImportFormatError(str(file), "holds no session")
    return size


def _sessions(file: Path, plan: Plan) -> Iterator[LabelledSession]:
    for line in islice(plan.read(file), plan.sessions):
        yield LabelledSession(name=line.session_id, messages=line.messages, probes=line.probes())
