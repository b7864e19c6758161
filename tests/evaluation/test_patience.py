"""What an evaluation finds does not depend on how busy the machine is."""

from __future__ import annotations

from pathlib import Path

from reactor_memory import Container, Settings
from reactor_memory.cli.eval_run import Run
from reactor_memory.evaluation.patience import SECONDS


def test_a_replay_waits_for_what_is_recalled() -> None:
    container = Container(settings=Settings(store={"url": "memory://"}))  # pyright: ignore[reportArgumentType]
    usual = container.recall_options()
    run = Run(Path("file"), "tools", "on", "hierarchical", (1000,))
    run.configure(container, delayed=False)
    assert usual.seconds == 3
    assert (container.recall_options().seconds, container.recall_options().share) == (SECONDS, usual.share)
