"""A context is shown in the budget of the agent's last load, unless --budget names another."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactor_memory.memory import open_memory
from reactor_memory.models import Message
from reactor_memory.wiring.settings import Settings
from tests.acceptance.conftest import Run, small_talk, write_sessions


async def talk(folder: Path, *budgets: int | None, **sections: Any) -> None:
    """An agent that loads once in each of these budgets."""
    settings = Settings(store={"url": f"sqlite:///{folder / 'reactor-memory.db'}"}, **sections)  # type: ignore[arg-type]
    async with open_memory(settings) as memory:
        await memory.save_history("s", [Message.user(f"My order number is QX-{number}.") for number in range(40)])
        await memory.drain()
        for number, budget in enumerate(budgets):
            async with memory.turn("s", f"question {number}", budget=budget) as turn:
                turn.answer("an answer")
        await memory.drain()


@pytest.mark.parametrize("record", ["off", "turns"])
def test_context_takes_the_budget_of_the_last_load(run: Run, folder: Path, record: str) -> None:
    anyio.run(lambda: talk(folder, 300, 400, 350, context={"record": record}))
    shown = run("context", "s", "--json").json
    assert (shown["report"]["budget"], shown["budget_from"]) == (350, "last_load")
    assert "budget: 350 tokens, as in the last load of this session" in run("context", "s").out
    assert run("context", "s", "--why", "--json").json["budget"] == 350


def test_looking_leaves_the_budget_of_the_agent(run: Run, folder: Path) -> None:
    anyio.run(lambda: talk(folder, 500))
    given = run("context", "s", "--budget", "1500", "--json").json
    assert (given["report"]["budget"], given["budget_from"]) == (1500, "option")
    assert "budget:" not in run("context", "s", "--budget", "1500").out
    assert run("context", "s", "--json").json["report"]["budget"] == 500


def test_a_load_without_a_budget_counts_too(run: Run, folder: Path) -> None:
    anyio.run(lambda: talk(folder, 500, None))
    shown = run("context", "s", "--json").json
    assert shown["budget_from"] == "last_load"
    assert shown["report"]["budget"] > 10_000
    assert "budget: context.max_tokens, as in the last load" in run("context", "s").out


def test_without_a_load_there_is_a_default(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s": small_talk(4)}))
    shown = run("context", "s", "--json").json
    assert (shown["report"]["budget"], shown["budget_from"]) == (2000, "default")
    assert "budget: 2,000 tokens, as no load of this session is known" in run("context", "s").out


def test_a_chat_goes_on_in_the_budget_of_the_agent(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(lambda: talk(folder, 500))
    monkeypatch.setattr(sys, "stdin", io.StringIO("/context\n"))
    talked = run("chat", "s")
    assert "of 500 tokens" in talked.out
    assert "budget: 500 tokens, as in the last load" in talked.err


def test_a_budget_that_holds_nothing_is_refused(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s": small_talk(4)}))
    for budget in (1, 5):
        told = f"error: {budget} tokens hold nothing of this session: give a larger --budget\n"
        assert run("context", "s", "--budget", budget) == (2, "", told)
