"""Evaluations that run beside the page: in a thread of their own, on a store in memory."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from reactor_memory.errors import ReactorMemoryError
from reactor_memory.evaluation.metering import meter
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.session_replay import Outcome, replay_sessions
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.strategies import sections_of
from reactor_memory.models import Message
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.opening import open_container

BUDGETS = (500, 1000, 2000, 4000, 8000)
STRATEGIES = ("hierarchical", "take-last")
KEPT = 20
"""Results that are kept: the newest."""

MOST_DETAILS = 300
_DETAIL = re.compile(r"(?<![\w-])(?=[\w:.,/-]{0,32}\d)[A-Za-z0-9][\w:./-]{2,30}\w(?![\w-])")


@dataclass(kw_only=True)
class Evaluation:
    """One run. `outcomes` are by strategy, complete once `is_done`. `labelled`: whether the details come with labels,
    so that attributable means something; else they are what `details_of` finds.
    """

    title: str
    sessions: Sequence[LabelledSession]
    labelled: bool
    total: int
    replayed: int = 0
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])
    is_done: bool = False
    problem: str = ""

    def advance(self, count: int) -> None:
        """So many messages more were replayed."""
        self.replayed += count


class Evaluations:
    """Starts evaluations, and keeps the newest ones while the Studio runs."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._runs: dict[str, Evaluation] = {}

    def start(self, title: str, sessions: Sequence[LabelledSession], *, labelled: bool) -> str:
        """The name under which the results are found."""
        size = sum(len(session.messages) for session in sessions)
        run = Evaluation(title=title, sessions=sessions, labelled=labelled, total=size * len(STRATEGIES))
        name = secrets.token_hex(6)
        self._runs[name] = run
        while len(self._runs) > KEPT:
            del self._runs[next(iter(self._runs))]
        self._tasks.start_soon(_run, run)
        return name

    def find(self, name: str) -> Evaluation | None:
        return self._runs.get(name)

    def all(self) -> Sequence[tuple[str, Evaluation]]:
        """Newest first."""
        return list(reversed(self._runs.items()))


async def _run(run: Evaluation) -> None:
    try:
        await anyio.to_thread.run_sync(_measured, run, abandon_on_cancel=True)
    except ReactorMemoryError as error:
        run.problem = str(error)
    run.is_done = True


def _measured(run: Evaluation) -> None:
    anyio.run(_measure, run)


async def _measure(run: Evaluation) -> None:
    for strategy in STRATEGIES:
        settings = Settings(store={"url": "memory://", "delete_grace_days": 0}, **sections_of(strategy, BUDGETS))
        async with open_container(settings, configure=meter) as container:
            run.outcomes[strategy] = await replay_sessions(
                container, run.sessions, BUDGETS, "off", user_id="eval", advance=run.advance
            )


def details_of(messages: Sequence[Message]) -> Iterator[Probe]:
    """The numbers, codes, dates and times that a session without labels says: each once, with where it was said first.

    They are found by their form alone, by no part of the memory that is measured.
    """
    seen: set[str] = set()
    for position, message in enumerate(messages):
        for found in _DETAIL.finditer(message.content):
            value = found[0]
            if value not in seen and len(seen) < MOST_DETAILS:
                seen.add(value)
                yield Probe(question=value, anchor=(), value=(value,), evidence=(position,))
